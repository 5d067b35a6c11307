"""What every test shares: asyncio's debug mode, hypothesis profiles, a folder for Unix sockets."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest's asyncio_debug covers the loops that pytest-asyncio makes. This covers asyncio.run inside a test and
# the daemons that a test starts.
os.environ.setdefault("PYTHONASYNCIODEBUG", "1")

# No deadlines and no complaint about slowness: in a parallel run both measure the neighbours. Never
# derandomized: every run looks at new examples, and a failure prints the blob that brings it back. Hypothesis
# has a `ci` profile of its own, which is derandomized; this one replaces it.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("default"), max_examples=300)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# Minutes of work before their first test: begun last, everybody would wait for them.
_LONG = ("test_bundle.py", "test_life.py", "test_walk.py", "test_mcp_command.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else len(_LONG))


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A temporary directory for Unix sockets, whose paths may have no more than 103 bytes on macOS."""
    # Not $TMPDIR, which alone takes about 50 of them there.
    with tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp", ignore_cleanup_errors=True) as path:
        yield Path(path).resolve()
