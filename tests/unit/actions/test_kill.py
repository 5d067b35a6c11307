"""What is known of a process that was sent a signal."""

from typing import Any

import pytest

from agtmux.actions.desk import Asked
from agtmux.actions.kill import kill
from agtmux.actions.typing import Typist
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.targets.messages import Did
from unit.actions.test_typing import LOST, Probe
from unit.builders import HOST, PANE, a_record
from unit.screens import registry

ENDED = AgtmuxError(ErrorCode.RUNTIME_STALE, "its process has ended")


class Asking(Probe):
    def __init__(self, *answers: object) -> None:
        super().__init__(*answers)
        self.numbers: list[int] = []

    async def run(self, target_id: object, errand: Any, kind: object) -> Any:
        assert (errand["do"], errand["agent"]) == ("signal", (100, 0.0))
        self.numbers.append(errand["number"])
        return await super().run(target_id, errand, kind)


@pytest.mark.parametrize(("answers", "has_ended"), [([Did(True), ENDED], True), ([Did(True), LOST], None)])
async def test_the_process_itself_is_asked_for_until_it_has_ended_or_nobody_can_tell(
    answers: list[object], has_ended: bool | None
) -> None:
    probe, record = Asking(Did(True), *answers), a_record()
    asked = Asked("kill", "r", (HOST, PANE), parameters={"mode": "signal", "signal": "TERM"})
    done = await kill(Typist(probe, registry()), probe).carry_out(record, asked, lambda **_: record)
    assert (done.result_code, done.about["has_ended"]) == ("delivered", has_ended)
    assert probe.numbers == [15, 0, 0]
