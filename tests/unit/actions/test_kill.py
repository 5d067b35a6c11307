"""What is known of a process that was sent a signal."""

from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.actions.desk import Asked
from agtmux.actions.kill import kill
from agtmux.actions.typing import Typist
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.targets.messages import Did
from unit.builders import HOST, PANE, a_record
from unit.screens import registry

ENDED = AgtmuxError(ErrorCode.RUNTIME_STALE, "its process has ended")
LOST = AgtmuxError(ErrorCode.TARGET_UNREACHABLE, "the target is gone")


class Probe:
    """What a probe answers to signals, one after the other."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self.numbers: list[int] = []

    async def run(self, target_id: object, errand: dict[str, Any], kind: object) -> Any:
        assert (errand["do"], errand["agent"]) == ("signal", (100, 0.0))
        self.numbers.append(errand["number"])
        answer = self._answers.pop(0)
        if isinstance(answer, AgtmuxError):
            raise answer
        return answer

    def check_reachable(self, target_id: object) -> None: ...

    def pane(self, target_id: object, pane_id: object) -> Any:
        return SimpleNamespace(pid=99, foreground=[SimpleNamespace(pid=100, started=0.0)])


@pytest.mark.parametrize(("answer", "has_ended"), [(ENDED, True), (LOST, None)])
async def test_the_process_itself_is_asked_for_until_it_has_ended_or_nobody_can_tell(
    answer: AgtmuxError, has_ended: bool | None
) -> None:
    probe, record = Probe(Did(True), Did(True), answer), a_record()
    asked = Asked("kill", "r", (HOST, PANE), parameters={"mode": "signal", "signal": "TERM"})
    done = await kill(Typist(probe, registry()), probe).carry_out(record, asked, lambda **_: record)
    assert (done.result_code, done.about["has_ended"]) == ("delivered", has_ended)
    # Zero only asks.
    assert probe.numbers == [15, 0, 0]
