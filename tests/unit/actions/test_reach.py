"""Who must be in a pane before anything is done there."""

from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.actions.reach import inhabited
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import NO_AGENT
from unit.builders import BOOT, PANE, a_record, a_runtime


class Looked:
    """The last look at a pane: a shell, and what runs in it."""

    def __init__(self, pid: int) -> None:
        self._row = SimpleNamespace(pid=pid, foreground=[SimpleNamespace(pid=pid, started=5.0)], command="bash")

    def check_reachable(self, target_id: object) -> None: ...

    def pane(self, target_id: object, pane_id: object) -> Any:
        return self._row

    async def run(self, *_: object) -> Any:
        raise AssertionError("nothing may be done there")


def test_a_shell_that_was_started_anew_is_not_typed_into_for_the_old_one():
    with pytest.raises(AgtmuxError) as caught:
        inhabited(Looked(200), a_record(a_runtime(NO_AGENT, pid=100)))
    assert caught.value.code is ErrorCode.RUNTIME_STALE


@pytest.mark.parametrize(
    ("agent_type", "pid"),
    [
        (NO_AGENT, 200),
        # Nothing ran there when the pane was first seen.
        (NO_AGENT, None),
        # An agent's process is not the pane's.
        ("claude", 100),
    ],
)
def test_the_panes_process_is_the_one_that_must_be_there(agent_type: str, pid: int | None):
    who = inhabited(Looked(200), a_record(a_runtime(agent_type, pid=pid)))
    assert who == {"server": BOOT, "pane_id": PANE, "pid": 200}


def test_a_target_that_cannot_be_reached_says_nothing_about_who_has_ended() -> None:
    """Its panes are not known; that is no reason to say that nothing runs there."""

    class Lost(Looked):
        def check_reachable(self, target_id: object) -> None:
            raise AgtmuxError(ErrorCode.TARGET_UNREACHABLE, f"{target_id}: no answer")

        def pane(self, target_id: object, pane_id: object) -> Any:
            return None

    with pytest.raises(AgtmuxError) as caught:
        inhabited(Lost(200), a_record(a_runtime("claude", pid=100)))
    assert caught.value.code is ErrorCode.TARGET_UNREACHABLE
