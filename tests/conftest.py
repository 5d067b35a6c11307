"""What every test shares: asyncio's debug mode, hypothesis profiles, a folder for Unix sockets."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.chance import new_seed

# pytest's asyncio_debug covers the loops that pytest-asyncio makes. This covers asyncio.run inside a test and
# the daemons that a test starts.
os.environ.setdefault("PYTHONASYNCIODEBUG", "1")

# No deadlines and no complaint about slowness: in a parallel run both measure the neighbours. Every run looks at new
# examples, and a failure prints the blob that brings it back. CI alone looks at the same ones each time, and at more:
# a change is to fail there for what it does, and not for what nobody had found before. `make fuzz` looks for that.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("default"), max_examples=300, derandomize=True, database=None)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=3_000)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# Started with `&` in a script or below nohup, a run inherits that SIGINT is ignored, and so would all that it starts.
# The programs under test are to be started as a terminal starts them.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One for all that is random in this run, so that what failed can be had again. Workers inherit it.
SEED = os.environ.setdefault("AGTMUX_TEST_SEED", new_seed())

LAST_STATUS = "agtmux/exitstatus"
LAST_SEED = "agtmux/seed"

# Minutes of work before their first test: begun last, everybody would wait for them.
_LONG = ("test_bundle.py", "test_life.py", "test_walk.py", "test_mcp_command.py")


def pytest_report_header() -> str:
    return f"AGTMUX_TEST_SEED={SEED}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """For `make again`: whether all have run, how that ended, and with which seed."""
    if not hasattr(session.config, "workerinput") and session.config.pluginmanager.has_plugin("cacheprovider"):
        session.config.cache.set(LAST_STATUS, int(exitstatus))
        session.config.cache.set(LAST_SEED, SEED)


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A temporary directory for Unix sockets, whose paths may have no more than 103 bytes on macOS."""
    # Not $TMPDIR, which alone takes about 50 of them there.
    with tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp", ignore_cleanup_errors=True) as path:
        yield Path(path).resolve()
