"""What is known of Enter when the pane, or the way to it, is lost around it."""

from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.actions.typing import Typist
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.targets.messages import Did, Glanced
from unit.builders import a_record
from unit.screens import OFF, claude_prompt, registry

LOST = AgtmuxError(ErrorCode.TARGET_UNREACHABLE, "the target is gone")
OTHER = AgtmuxError(ErrorCode.RUNTIME_STALE, "another is there")
COPYING = "it is in copy mode"


def showing(*typed: str, hindrance: str = "") -> Glanced:
    text = "\n".join(["", *claude_prompt(*typed), OFF, ""])
    return Glanced(text, "", "claude", 100, 0, hindrance, is_in_front=True)


class Probe:
    """What a probe answers, one after the other."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    async def run(self, target_id: object, errand: object, kind: object) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, AgtmuxError):
            raise answer
        return answer

    def check_reachable(self, target_id: object) -> None: ...

    def pane(self, target_id: object, pane_id: object) -> Any:
        return SimpleNamespace(pid=99, foreground=[SimpleNamespace(pid=100, started=0.0)], command="claude")


@pytest.mark.parametrize(
    ("answers", "is_known"),
    [
        # Its lines had moved, and then it could not be looked at again.
        ([Did(False), LOST], True),
        ([Did(False), showing("hello", hindrance=COPYING)], True),
        ([Did(False), showing("hello, you")], True),
        ([OTHER], True),
        # The key may have got there.
        ([LOST], False),
        ([Did(True), LOST], False),
    ],
)
async def test_whether_enter_was_surely_not_pressed(answers: list[object], is_known: bool) -> None:
    record = a_record()
    typist = Typist(Probe(showing("hello"), *answers), registry())
    sight = await typist.look(record)
    with pytest.raises(AgtmuxError) as caught:
        await typist.submit(record, sight, "hello", lambda **_: record)
    assert (caught.value.details.get("entered") is False) is is_known, caught.value


@pytest.mark.parametrize("lost", [LOST, OTHER])
async def test_what_was_entered_is_not_said_to_be_refused_though_its_agent_is_gone(lost: AgtmuxError) -> None:
    record = a_record()
    typist = Typist(Probe(showing("/exit"), Did(True), lost), registry())
    sight = await typist.look(record)
    with pytest.raises(AgtmuxError, match="Enter was pressed") as caught:
        await typist.submit(record, sight, "/exit", lambda **_: record)
    assert caught.value.code is ErrorCode.DELIVERY_UNCERTAIN
    assert caught.value.details["result_code"] == "uncertain"
