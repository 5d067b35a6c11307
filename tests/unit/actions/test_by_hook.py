"""What is said of an answer that a hook was handed, by what the agent does next."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agtmux.actions import answers
from agtmux.actions.answers import answer
from agtmux.actions.decisions import Handed, Waiting
from agtmux.actions.desk import Asked, Done
from agtmux.actions.typing import Typist
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.states import Reason, State
from agtmux.engine.apply import Record
from unit.builders import PANE, T0, a_record, an_attention

KEY = (HOST, PANE)
ASKED = Asked("approve", "r", KEY)


def asking(question: str = "touch label.txt") -> Record:
    record = a_record()
    return replace(record, row=replace(record.row, state=State.WAITING_APPROVAL, attention=an_attention(question)))


def moved_on(record: Record, state: State, reason: str = "said_running") -> Record:
    version = record.row.state_version + 1
    row = replace(record.row, state=state, reason_code=reason, attention=None, state_version=version)
    return replace(record, row=row)


async def answered(after: Mapping[object, Record], *, allow: bool = True, handed: Handed = Handed.HANDED_OVER) -> Done:
    record = asking()
    waiting = Waiting(record.runtime.runtime_id, "e1", record.row.attention, T0)

    async def decide(*_: object, **__: object) -> Handed:
        return handed

    decisions = cast(Any, SimpleNamespace(waiting=lambda _: waiting, decide=decide))
    known = cast(Any, SimpleNamespace(records=after))
    kind = answer(decisions, known, cast(Typist, None), allow=allow)
    return await kind.carry_out(record, ASKED, lambda **_: record)


async def test_it_was_taken_if_the_agent_goes_on() -> None:
    done = await answered({KEY: moved_on(asking(), State.RUNNING)})
    assert (done.result_code, done.about["question"]) == ("delivered", "touch label.txt")


@pytest.mark.parametrize(
    "after",
    [
        {},
        {KEY: moved_on(asking(), State.IDLE, Reason.INTERRUPTED)},
        {KEY: replace(asking(), runtime=replace(asking().runtime, runtime_id="another"))},
    ],
    ids=["ended", "stopped", "another"],
)
async def test_nobody_can_tell_if_it_ended_or_was_stopped_in_the_same_moment(after: Mapping[object, Record]) -> None:
    with pytest.raises(AgtmuxError) as error:
        await answered(after)
    assert error.value.code is ErrorCode.DELIVERY_UNCERTAIN
    # Of a no there is nothing to doubt: what was asked is not done.
    assert (await answered(after, allow=False)).result_code == "delivered"


async def test_nor_if_it_goes_on_asking_or_the_hook_was_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_PATIENCE", 0.0)
    for after, handed in (
        ({KEY: asking()}, Handed.HANDED_OVER),
        ({KEY: moved_on(asking(), State.RUNNING)}, Handed.UNCERTAIN),
    ):
        with pytest.raises(AgtmuxError) as error:
            await answered(after, handed=handed)
        assert error.value.code is ErrorCode.DELIVERY_UNCERTAIN
