"""How far a message came when it was cut short, by what the prompt shows; the screen is played, all else is real."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agtmux.actions.chats import Sessions
from agtmux.actions.desk import Desk
from agtmux.actions.ledger import Ledger
from agtmux.actions.typing import Typist
from agtmux.agents.registry import Registry
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, Party, Stage, Status
from agtmux.domain.states import State
from agtmux.messages import gate as gate_module
from agtmux.messages.gate import ACTION, Gate
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox
from agtmux.messages.postman import Postman
from agtmux.observe.supervisor import Supervisor
from unit.builders import Core, a_core, seen

PATIENCE = 10.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "_BELIEVED_AFTER", 0.01)


@dataclass
class Screen:
    """In place of the typist: a prompt, what was submitted at it, and a dialog that may cover both."""

    draft: str = ""
    history: str = ""
    has_dialog: bool = False
    # Opens one while the next text is typed, before Enter.
    asks_next: bool = False
    typed: int = 0

    def check_reachable(self, record: object) -> None: ...

    @contextlib.asynccontextmanager
    async def writer(self, record: object) -> AsyncIterator[None]:
        yield

    async def look(self, record: object) -> Any:
        state = State.WAITING_APPROVAL if self.has_dialog else State.IDLE
        composer = "none" if self.has_dialog else "draft" if self.draft else "empty"
        return SimpleNamespace(
            seen=SimpleNamespace(state=state, composer=composer, draft="" if self.has_dialog else self.draft),
            footing=SimpleNamespace(hold=SimpleNamespace(anchors=() if self.has_dialog else ("a line",)), mode=""),
            text=self.history + ("May I?" if self.has_dialog else self.draft),
        )

    async def prompt(self, record: object, still_there: object) -> Any:
        if self.has_dialog or self.draft:
            raise AgtmuxError(ErrorCode.DIALOG_OPEN if self.has_dialog else ErrorCode.DRAFT_PRESENT, "not now")
        return await self.look(record)

    def holds(self, record: object, sight: Any, text: str) -> bool:
        return bool(sight.seen.draft == text)

    async def submit(self, record: object, sight: object, text: str, still_there: object) -> str:
        self.history, self.draft = f"{self.history}{text}\n", ""
        return "delivered"

    async def type(
        self, record: object, text: str, still_there: object, *, enter: bool, before_enter: Callable[[], Any]
    ) -> str:
        await self.prompt(record, still_there)
        self.typed, self.draft = self.typed + 1, text
        if self.asks_next:
            self.asks_next, self.has_dialog = False, True
            raise AgtmuxError(ErrorCode.DIALOG_OPEN, "Enter was not pressed", {"result_code": "typed_not_submitted"})
        await before_enter()
        return await self.submit(record, None, text, still_there)


@dataclass
class Chat:
    """A session that does not answer the first time."""

    said: list[str] = field(default_factory=list)

    def of(self, record: object) -> "Chat":
        return self

    async def ask(self, word: str, *, text: str) -> str:
        self.said.append(text)
        if len(self.said) == 1:
            raise AgtmuxError(ErrorCode.DELIVERY_UNCERTAIN, "the session was asked and has not answered")
        return ""


NO_CHATS = SimpleNamespace(of=lambda record: None)


@contextlib.asynccontextmanager
async def a_daemon(core: Core, screen: Screen, sessions: Any = NO_CHATS) -> AsyncIterator[Postman]:
    mailbox, supervisor = Mailbox(core.database), Supervisor()
    gate = Gate(mailbox, core.world, Registry.load(), cast(Typist, screen), cast(Sessions, sessions))
    postman = Postman(mailbox, gate, core.world, core.clock, supervisor)
    try:
        await postman.start(Desk(core.world, Ledger(core.database), core.clock, {ACTION: gate.kind}))
        yield postman
    finally:
        await supervisor.close()
        assert not supervisor.failures


async def accepted(core: Core, text: str) -> Message:
    receiver = Party("claude-1", core.record.runtime.runtime_id)
    message = message_of(Party("user"), receiver, Letter(text), core.clock.now(), 3_600 * SECOND)
    [put] = await Mailbox(core.database).put([message])
    return put


async def found(core: Core, message: Message, is_so: Callable[[Message], bool]) -> Message:
    async with asyncio.timeout(PATIENCE):
        # Nobody tells of every step.
        while not is_so(now := await Mailbox(core.database).find(message.message_id)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return now


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_what_its_user_submits_after_a_dialog_had_come_before_enter_does_not_come_again(
    tmp_path: Path, is_restarted: bool
) -> None:
    screen = Screen(asks_next=True)
    async with a_core(tmp_path) as core:
        await core.look(seen())
        message = await accepted(core, "hello")
        async with contextlib.AsyncExitStack() as daemons:
            first = await daemons.enter_async_context(contextlib.AsyncExitStack())
            await first.enter_async_context(a_daemon(core, screen))
            await found(core, message, lambda now: now.stage is Stage.TYPED)
            if is_restarted:
                await first.aclose()
            # The dialog is answered, and what stands in the prompt is submitted by hand.
            screen.has_dialog = False
            await screen.submit(None, None, screen.draft, None)
            if is_restarted:
                await daemons.enter_async_context(a_daemon(core, screen))
            await found(core, message, lambda now: now.status is Status.DELIVERED)
    assert screen.history.count("hello") == 1


async def test_what_its_user_deletes_meanwhile_is_typed_anew(tmp_path: Path) -> None:
    screen = Screen(asks_next=True)
    async with a_core(tmp_path) as core:
        await core.look(seen())
        message = await accepted(core, "hello")
        async with a_daemon(core, screen):
            await found(core, message, lambda now: now.stage is Stage.TYPED)
            screen.draft, screen.has_dialog = "", False
            await found(core, message, lambda now: now.status is Status.DELIVERED)
    assert (screen.history.count("hello"), screen.typed) == (1, 2)


async def test_a_chat_that_does_not_answer_once_keeps_nothing_else_waiting(tmp_path: Path) -> None:
    chat = Chat()
    async with a_core(tmp_path) as core:
        await core.look(seen())
        first, second = await accepted(core, "first"), await accepted(core, "second")
        async with a_daemon(core, Screen(), chat):
            await found(core, first, lambda now: now.status is Status.UNCERTAIN)
            await found(core, second, lambda now: now.status is Status.DELIVERED)
    assert [text.rpartition(" ")[2] for text in chat.said] == ["first", "second"]
