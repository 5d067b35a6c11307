"""What a pane shows is told whole, once and redacted, whenever it is looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.conversations.allowance import Allowance
from agtmux.conversations.archive import Archive, Wanted
from agtmux.conversations.screens import Screens
from agtmux.conversations.turns import MOST_TOLD
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import State
from agtmux.store.database import Database
from agtmux.targets.messages import Output
from unit.builders import FakeTime

KEY = ("host", "%1")
SECRET = "ghp_" + "Ab1d" * 9


class Pane:
    """A fleet of one pane. What it has above its screen is told only if it is no alternate one."""

    def __init__(self) -> None:
        self.text = ""
        self.is_alternate = False
        # Happens once, while the history is on its way.
        self.meanwhile: Callable[[], None] = lambda: None

    def pane(self, *_: Any) -> Any:
        return SimpleNamespace(pid=1)

    def screen(self, *_: Any) -> str:
        return self.text

    async def run(self, *_: Any) -> Output:
        text = self.text
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return Output(text="" if self.is_alternate else text)


class Looked:
    """One agent in a pane that agtmux looks at."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.database = database
        self.pane = Pane()
        self.archive = Archive(database)
        instance = SimpleNamespace(tmux_server_boot_id="b", pane_id="%1")
        runtime = SimpleNamespace(runtime_id="r1", agent_type="claude", instance=instance)
        self.row = SimpleNamespace(state=State.IDLE)
        self.world = SimpleNamespace(records={KEY: SimpleNamespace(runtime=runtime, row=self.row)}, panes={})
        self.screens = self.daemon()

    def daemon(self) -> Screens:
        async def worktree(*_: Any) -> tuple[None, str]:
            return None, ""

        clock, registry = FakeTime().clock(), Registry.load()
        parts: Any = (self.archive, self.world, registry, self.pane, clock, lambda _: None, worktree, Allowance())
        return Screens(*parts)

    def draws(self, *blocks: str, width: int = 60) -> None:
        rule = "─" * width
        self.pane.text = "\n".join(["banner", "", *blocks, "", rule, "❯ ", rule, "  ? for shortcuts"])
        self.screens.showed("host", {"%1": self.pane.text})  # type: ignore[arg-type, dict-item]

    async def works(self, *blocks: str, width: int = 60) -> None:
        """Draws it within a turn, which then ends."""
        self.row.state = State.RUNNING
        self.draws(*blocks, width=width)
        await self.looks()
        self.row.state = State.IDLE
        await self.looks()

    async def looks(self) -> None:
        if (roll := self.screens._rolls.get("r1")) is not None:  # type: ignore[call-overload]
            # It has been still for long enough.
            roll.changed_at = -10.0
        await self.screens.take(KEY, "r1")  # type: ignore[arg-type]

    async def said(self) -> list[str]:
        return [str.__str__(each.content) for each in await self.archive.messages(Wanted(), 1000)]

    def on_disk(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.folder.iterdir())


@pytest.fixture
async def unseen(tmp_path: Path) -> AsyncIterator[Looked]:
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    yield Looked(tmp_path, database)
    await database.close()


@pytest.fixture
async def its(unseen: Looked) -> Looked:
    unseen.draws()
    await unseen.looks()
    return unseen


def drawn(sign: str, text: str, width: int = 55) -> list[str]:
    """As agents draw it: wrapped, and indented below its sign."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return [f"{sign} {lines[0]}", *(f"  {line}" for line in lines[1:]), ""]


async def test_no_secret_is_written_down(its: Looked):
    await its.works(f"❯ the token is {SECRET} keep it", "", f"● I will use {SECRET} then")
    assert await its.said() == ["the token is [redacted] keep it", "I will use ghp_[redacted] then"]
    assert SECRET.encode() not in its.on_disk()


async def test_no_secret_is_written_down_that_was_there_before(unseen: Looked):
    unseen.draws(f"❯ the token is {SECRET} keep it", "", f"● I will use {SECRET} then")
    await unseen.looks()
    assert (await unseen.said(), SECRET.encode() in unseen.on_disk()) == ([], False)


async def test_a_secret_that_was_half_drawn_is_the_same_turn_when_it_is_whole(its: Looked):
    await its.works("❯ print the token", "", f"● Here it is: {SECRET[:12]}")
    await its.works("❯ print the token", "", f"● Here it is: {SECRET} as you wished")
    assert await its.said() == ["print the token", "Here it is: ghp_[redacted] as you wished"]


@pytest.mark.parametrize("words", [20, 120, 2000])
async def test_an_answer_that_goes_on_is_told_whole_however_long_it_was(its: Looked, words: int):
    turn = [*drawn("❯", "build it in the background"), *drawn("●", "x" + " word" * words)]
    await its.works(*turn)
    # Woken by what it has left running.
    await its.works(*turn, "● The build has failed: label.py line 3.")
    assert [each[-40:] for each in await its.said()][1:] == ["\n\nThe build has failed: label.py line 3."[-40:]]


@pytest.mark.parametrize("words", [20, 120])
async def test_what_is_shown_no_longer_stays_told(its: Looked, words: int):
    prompt, answer = drawn("❯", "tell"), drawn("●", "x" + " word" * words)
    await its.works(*prompt, *answer, "● And the end of it.")
    whole = await its.said()
    its.draws(*prompt, *answer)
    await its.looks()
    await its.works(*prompt, *answer[:2])
    assert await its.said() == whole and whole[1].endswith("And the end of it.")


async def test_what_comes_while_the_history_is_on_its_way_is_told(its: Looked):
    its.pane.meanwhile = lambda: its.draws("❯ say two things", "", "● One thing.", "", "● And the other.")
    await its.works("❯ say two things", "", "● One thing.")
    await its.looks()
    assert await its.said() == ["say two things", "One thing.\n\nAnd the other."]


async def test_a_turn_that_begins_while_the_one_before_is_read_is_told(its: Looked):
    """Also if it is the same as those before it, of which the screen has no room for more than two."""
    same = ["❯ go on", "", "● ok", ""]

    def begins() -> None:
        its.row.state = State.RUNNING
        its.draws(*same, *same)

    its.draws(*same, *same)
    await its.looks()
    its.pane.meanwhile = begins
    its.draws(*same, *same)
    await its.looks()
    assert await its.said() == ["go on", "ok"] * 2
    its.row.state = State.IDLE
    await its.looks()
    assert await its.said() == ["go on", "ok"] * 3


async def test_what_comes_while_agtmux_begins_to_look_is_told(unseen: Looked):
    unseen.draws()
    unseen.pane.meanwhile = lambda: unseen.draws("❯ be quick", "", "● Done.")
    await unseen.looks()
    await unseen.looks()
    assert await unseen.said() == ["be quick", "Done."]


async def test_what_could_not_be_read_is_read_the_next_time(its: Looked):
    def fails() -> None:
        raise AgtmuxError(ErrorCode.TIMEOUT, "out of reach")

    its.pane.meanwhile = fails
    with pytest.raises(AgtmuxError):
        await its.works("❯ one", "", "● Two.")
    await its.looks()
    assert await its.said() == ["one", "Two."]


async def test_what_could_not_be_written_down_is_the_next_time(its: Looked, monkeypatch: pytest.MonkeyPatch):
    async def fails(*_: Any) -> None:
        raise AgtmuxError(ErrorCode.STORE, "the disk is full")

    with monkeypatch.context() as patch, pytest.raises(AgtmuxError):
        patch.setattr(its.archive, "write", fails)
        await its.works("❯ one", "", "● Two.")
    await its.looks()
    assert await its.said() == ["one", "Two."]


def labels(last: int, width: int) -> list[str]:
    """Turns of which no line is the same at another width."""
    turns = [*zip(*(iter(LABELS[: 2 * last]),) * 2, strict=True)]
    return [
        line for pair in turns for sign, text in zip("❯●", pair, strict=True) for line in drawn(sign, text, width - 5)
    ]


LABELS = [
    text
    for number in range(1, 4)
    for text in (
        f"tell me everything about how the label number {number} is printed in the works",
        " ".join([f"The label number {number} is printed with very much care by everybody who is there."] * 6),
    )
]


@pytest.mark.parametrize("is_alternate", [True, False])
@pytest.mark.parametrize("width", [40, 90])
async def test_a_pane_of_another_width_doubles_nothing(its: Looked, is_alternate: bool, width: int):
    its.pane.is_alternate = is_alternate
    await its.works(*labels(1, 60))
    await its.works(*labels(2, 60))
    its.draws(*labels(2, width), width=width)
    await its.looks()
    await its.works(*labels(3, width), width=width)
    its.draws(*labels(3, 60))
    await its.looks()
    assert [" ".join(each.split()) for each in await its.said()] == LABELS


@pytest.mark.parametrize("width", [40, 90])
async def test_a_pane_that_becomes_another_width_within_a_turn_doubles_nothing(its: Looked, width: int):
    its.pane.is_alternate = True
    await its.works(*labels(1, 60))
    its.row.state = State.RUNNING
    its.draws(*labels(2, 60)[:-3])
    await its.works(*labels(2, width), width=width)
    assert [" ".join(each.split()) for each in await its.said()] == LABELS[:4]


async def test_more_turns_than_are_remembered_are_told_once(its: Looked):
    turns: list[str] = []
    said: list[str] = []
    for number in range(1, MOST_TOLD + 20):
        turns += ["❯ go on", "", f"● Step {number}.", ""]
        said += ["go on", f"Step {number}."]
        await its.works(*turns)
    assert await its.said() == said
    its.screens = its.daemon()
    await its.looks()
    await its.works(*turns, "❯ go on", "", "● The last step.")
    assert await its.said() == [*said, "go on", "The last step."]


@pytest.mark.parametrize("cleared", [[], ["❯ /clear", ""]])
async def test_the_same_prompt_on_a_cleared_screen_is_another_turn(its: Looked, cleared: list[str]):
    await its.works("❯ go on", "", "● The label is printed.")
    await its.works(*cleared, "❯ go on", "", "● Nothing is left to do.")
    said = await its.said()
    assert (said[:2], said[-2:]) == (["go on", "The label is printed."], ["go on", "Nothing is left to do."])


async def test_a_screen_that_goes_back_and_on_from_there_doubles_nothing(its: Looked):
    turns = [["❯ " + asked, "", "● " + asked.title(), ""] for asked in ("one", "two", "three", "four", "five")]
    for last in range(1, 4):
        await its.works(*(line for turn in turns[:last] for line in turn))
    its.draws(*turns[0])
    await its.looks()
    await its.works(*turns[0], *turns[3])
    await its.works(*turns[0], *turns[3], *turns[4])
    assert await its.said() == ["one", "One", "two", "Two", "three", "Three", "four", "Four", "five", "Five"]


async def test_what_is_left_of_an_answer_below_its_prompt_takes_nothing_away(its: Looked):
    its.pane.is_alternate = True
    parts = [line for number in range(30) for line in drawn("●", f"Part {number} of it.")]
    await its.works("❯ tell me all", "", *parts)
    whole = await its.said()
    # Only the screen is known to the next daemon, and the prompt stays at its top while the answer scrolls.
    its.screens = its.daemon()
    await its.looks()
    its.draws("❯ tell me all", "", *parts[-20:])
    its.screens = its.daemon()
    await its.looks()
    assert await its.said() == whole and len(whole) == 2
