"""A conversation: its turns, its requests and who answers them, with a puppet for an agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agtmux.chat.journal import Journal
from agtmux.chat.session import MOST_QUEUED, Session
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import State
from support.chat import ID, PuppetEngine


class Watched:
    def __init__(self, answer_limit: float) -> None:
        self.engines: list[PuppetEngine] = []
        self.session = Session(ID, "/work", self._engine, Journal(), answer_limit)
        self.said: list[tuple[str, str]] = []
        self.session.on_said.append(lambda role, text: self.said.append((role, text)))

    def _engine(self, ask: Any, has_spoken: bool) -> PuppetEngine:
        self.engines.append(PuppetEngine(ask, has_spoken))
        return self.engines[-1]

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(kept.line) for kept in self.session.journal.after(0, 100_000)]

    async def until(self, kind: str, number: int = 1) -> dict[str, Any]:
        """The so many-th of that type, once it is there."""
        seen = 0
        async with asyncio.timeout(10):
            while True:
                found = [each for each in self.told() if each["type"] == kind]
                if len(found) >= number:
                    return found[number - 1]
                seen = self.session.journal.last_seq
                await self.session.journal.wait(lambda seen=seen: seen)


@contextlib.asynccontextmanager
async def watched(answer_limit: float = 10.0) -> AsyncIterator[Watched]:
    made = Watched(answer_limit)
    running = asyncio.create_task(made.session.run())
    try:
        await made.until("ready")
        yield made
    finally:
        running.cancel()
        await asyncio.wait([running])
        await made.session.close()


async def test_a_turn_is_told_from_its_message_to_its_usage():
    async with watched() as it:
        it.session.say("say one two")
        done = await it.until("done")
        assert [each["type"] for each in it.told()] == ["ready", "turn", "text_delta", "text_delta", "done"]
        assert (done["outcome"], done["usage"]["output_tokens"], done["turn"]) == ("completed", 4, 1)
        assert it.session.state is State.COMPLETED
        assert it.said == [("user", "say one two"), ("assistant", "one two ")]
        assert it.session.recent == "\n› say one two\none two "


async def test_an_approval_waits_and_is_answered_once():
    async with watched() as it:
        it.session.say("ask touch a")
        request = await it.until("approval_request")
        assert (request["tool"], request["input"]) == ("Bash", {"command": "touch a"})
        assert it.session.state is State.WAITING_APPROVAL
        assert it.session.init()["pending"] == [{k: v for k, v in request.items() if k != "seq"}]
        it.session.approve("r1")
        with pytest.raises(AgtmuxError) as late:
            it.session.deny("r1")
        assert late.value.code is ErrorCode.PRECONDITION_FAILED and "approved" in late.value.message
        assert (await it.until("tool_result"))["output"] == "ran"
        assert (await it.until("answered"))["decision"] == "approved"


async def test_a_denial_hands_its_reason_to_the_agent():
    async with watched() as it:
        it.session.say("ask rm -rf /")
        await it.until("approval_request")
        it.session.deny("r1", "too dangerous")
        assert (await it.until("tool_result"))["output"] == "too dangerous"
        assert (await it.until("answered"))["reason"] == "too dangerous"


async def test_what_nobody_answers_is_denied_when_its_time_is_over():
    async with watched(answer_limit=0.05) as it:
        it.session.say("ask touch a")
        assert (await it.until("answered"))["decision"] == "timed_out"
        assert (await it.until("tool_result"))["is_error"]
        await it.until("done")
        with pytest.raises(AgtmuxError, match="timed_out"):
            it.session.approve("r1")


async def test_a_request_that_nobody_has_made_is_not_found():
    async with watched() as it:
        for answer in (it.session.approve, it.session.deny):
            with pytest.raises(AgtmuxError) as caught:
                answer("nobody's")
            assert caught.value.code is ErrorCode.NOT_FOUND


async def test_of_two_requests_the_older_is_shown_and_each_has_its_own_answer():
    async with watched() as it:
        it.session.say("twice touch")
        await it.until("approval_request", 2)
        assert it.session.asking is not None and it.session.asking.request_id == "r1"
        it.session.deny("r1", "no")
        assert it.session.asking is not None and it.session.asking.request_id == "r2"
        it.session.approve("r2")
        await it.until("done")
        results = {each["request_id"]: each["output"] for each in it.told() if each["type"] == "tool_result"}
        assert results == {"r1": "no", "r2": "ran"}


@pytest.mark.parametrize("given", [{"Which?": "Blue"}, ["Blue"], "Blue"])
async def test_a_question_takes_an_answer_in_any_form(given):
    async with watched() as it:
        it.session.say("question Which?")
        assert (await it.until("question"))["questions"][0]["options"][1]["label"] == "Blue"
        assert it.session.state is State.WAITING_INPUT
        it.session.answer("q1", given)
        assert json.loads((await it.until("tool_result"))["output"]) == {"Which?": "Blue"}


async def test_a_question_is_not_approved_and_an_approval_is_not_answered():
    async with watched() as it:
        it.session.say("question Which?")
        await it.until("question")
        for given in ({"Other?": "x"}, ["a", "b"], {}):
            with pytest.raises(AgtmuxError):
                it.session.answer("q1", given)
        with pytest.raises(AgtmuxError, match="asks a question"):
            it.session.approve("q1")
        it.session.deny("q1")
        await it.until("done")
        it.session.say("ask touch a")
        await it.until("approval_request")
        with pytest.raises(AgtmuxError, match="asks for approval"):
            it.session.answer("r1", "yes")


async def test_an_abort_breaks_the_turn_off_and_closes_what_it_asked():
    async with watched() as it:
        it.session.say("ask touch a")
        await it.until("approval_request")
        it.session.say("say later")
        await it.session.abort()
        assert (await it.until("done"))["outcome"] == "aborted"
        assert (await it.until("answered"))["decision"] == "gone"
        assert (it.session.state, it.session.outcome) == (State.IDLE, "aborted")
        it.session.say("say now")
        assert (await it.until("turn", 2))["text"] == "say now"
        await it.until("done", 2)
        with pytest.raises(AgtmuxError, match="no turn is under way"):
            await it.session.abort()


async def test_messages_wait_for_their_turn_and_too_many_are_refused():
    async with watched() as it:
        it.session.say("wait")
        await it.until("text_delta")
        for number in range(MOST_QUEUED):
            it.session.say(f"say {number}")
        with pytest.raises(AgtmuxError) as caught:
            it.session.say("one too many")
        assert caught.value.code is ErrorCode.LIMIT_RATE
        it.engines[0].tell({"type": "done", "outcome": "completed", "usage": {}})
        await it.until("done", MOST_QUEUED + 1)
        turns = [each["text"] for each in it.told() if each["type"] == "turn"]
        assert turns == ["wait", *(f"say {number}" for number in range(MOST_QUEUED))]


async def test_an_agent_that_dies_is_started_again_by_the_next_message():
    async with watched() as it:
        it.session.say("crash out of memory")
        assert (await it.until("done"))["outcome"] == "error"
        assert (await it.until("error"))["message"] == "out of memory"
        assert it.session.state is State.ERROR and it.engines[0].closed == 1
        it.session.say("say again")
        assert (await it.until("done", 2))["outcome"] == "completed"
        assert len(it.engines) == 2 and it.engines[1].has_spoken


async def test_an_agent_that_dies_at_a_request_leaves_none_open():
    async with watched() as it:
        it.session.say("ask touch a")
        await it.until("approval_request")
        await it.engines[0]._do("crash", "gone")
        await it.until("done")
        assert it.session.pending == {} and it.session.state is State.ERROR


async def test_what_the_background_asks_outlives_the_turn():
    async with watched() as it:
        it.session.say("ask touch a")
        await it.until("approval_request")
        it.engines[0].tell({"type": "done", "outcome": "completed", "usage": {}})
        await it.until("done")
        assert list(it.session.pending) == ["r1"] and it.session.state is State.WAITING_APPROVAL
        it.session.approve("r1")
        assert (await it.until("tool_result"))["output"] == "ran"


async def test_a_turn_that_leaves_something_running_is_not_over():
    async with watched() as it:
        task = {"type": "task", "task_id": "t", "about": "watch"}
        it.session.say("wait")
        await it.until("text_delta")
        it.engines[0].tell(task | {"status": "running"})
        it.engines[0].tell({"type": "done", "outcome": "completed", "usage": {}})
        await it.until("done")
        assert it.session.state is State.RUNNING
        it.engines[0].tell(task | {"status": "completed"})
        await it.until("task", 2)
        assert it.session.state is State.COMPLETED


async def test_what_the_agent_begins_by_itself_is_a_turn_too():
    async with watched() as it:
        it.engines[0].tell({"type": "text_delta", "text": "a background command has ended"})
        await it.until("text_delta")
        assert it.session.state is State.RUNNING
        assert "text" not in await it.until("turn")
        it.engines[0].tell({"type": "done", "outcome": "completed", "usage": {}})
        await it.until("done")


async def test_an_answer_in_the_moment_when_its_time_is_over_counts_or_does_not_but_never_both(
    monkeypatch: pytest.MonkeyPatch,
):
    async with watched(answer_limit=1_000) as it:
        loop = asyncio.get_running_loop()
        it.session.say("ask touch a")
        await it.until("approval_request")
        loop.call_at(loop.time() + 1_001, it.session.approve, "r1")
        # Held up, the loop finds the end of the time and the answer due in the same round, in this order.
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + 2_000)
        assert (await it.until("answered"))["decision"] == "approved"
        assert (await it.until("tool_result"))["output"] == "ran"
        await it.until("done")


async def test_a_message_while_a_dead_agent_is_put_away_is_not_taken_for_the_one_that_failed():
    async with watched() as it:
        may_close, closing = asyncio.Event(), asyncio.Event()
        close = it.engines[0].close

        async def slowly() -> None:
            closing.set()
            await may_close.wait()
            await close()

        it.engines[0].close = slowly  # type: ignore[method-assign]
        # While nobody talks to it.
        await it.engines[0]._do("crash", "out of memory")
        await closing.wait()
        it.session.say("ask touch a")
        await it.until("turn")
        may_close.set()
        await it.until("approval_request")
        await it.until("error")
        it.session.approve("r1")
        assert (await it.until("done"))["outcome"] == "completed"
        assert [each.get("text") for each in it.told() if each["type"] == "turn"] == ["ask touch a"]


async def test_an_abort_that_fails_is_no_abort():
    async with watched() as it:

        async def fails() -> None:
            raise AgtmuxError(ErrorCode.AGENT_FAILED, "it does not listen")

        it.engines[0].interrupt = fails  # type: ignore[method-assign]
        it.session.say("wait")
        await it.until("text_delta")
        with pytest.raises(AgtmuxError, match="does not listen"):
            await it.session.abort()
        it.engines[0].tell({"type": "done", "outcome": "completed", "usage": {}})
        assert (await it.until("done"))["outcome"] == "completed"


async def test_what_an_abort_forgets_is_told():
    async with watched() as it:
        it.session.say("wait")
        await it.until("text_delta")
        it.session.say("say one")
        it.session.say("say two")
        await it.session.abort()
        await it.until("done")
        assert [each["text"] for each in it.told() if each["type"] == "forgotten"] == ["say one", "say two"]


async def test_a_title_has_no_piece_of_a_secret():
    async with watched() as it:
        token = "npm_" + "aB3dE5gH7j" * 4
        it.session.say("say " + "x" * 96 + " " + token)
        await it.until("done")
        assert it.session.title.startswith("say xxx") and "aB3dE5" not in it.session.title, it.session.title


async def test_half_a_character_is_no_end_of_the_turn():
    """A tool's output that was cut in the middle of one, as the SDK hands it on."""
    async with watched() as it:
        it.session.say("ask touch \ud83d")
        request = await it.until("approval_request")
        assert request["input"] == {"command": "touch \N{REPLACEMENT CHARACTER}"}
        it.engines[0].tell({"type": "text_delta", "text": "half \ude00"})
        assert (await it.until("text_delta"))["text"] == "half \N{REPLACEMENT CHARACTER}"
        it.session.approve("r1")
        assert (await it.until("done"))["outcome"] == "completed"


async def test_a_turn_can_be_broken_off_while_its_agent_is_still_being_started(monkeypatch: pytest.MonkeyPatch):
    async with watched() as it:
        it.session.say("crash out of memory")
        await it.until("done")
        may_start, starting = asyncio.Event(), asyncio.Event()
        connect = PuppetEngine.connect

        async def slowly(engine: PuppetEngine) -> dict[str, Any]:
            starting.set()
            await may_start.wait()
            return await connect(engine)

        monkeypatch.setattr(PuppetEngine, "connect", slowly)
        it.session.say("say too late")
        await starting.wait()
        await it.session.abort()
        may_start.set()
        assert (await it.until("done", 2))["outcome"] == "aborted"
        it.session.say("say again")
        await it.until("done", 3)
        assert [each["text"] for each in it.told() if each["type"] == "text_delta"] == ["again "]
