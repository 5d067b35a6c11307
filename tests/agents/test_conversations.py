"""What real agents were asked and have answered, as agtmux tells it, is what was typed and what the model has said."""

from __future__ import annotations

import json
import re
from types import ModuleType

import pytest

from agents import claude, codex, copilot, gemini
from agents.driven import TARGET, Driven
from agents.install import PINNED
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

TURNS = 30
AGENTS = [
    *((claude, version) for version in PINNED["claude"]),
    (codex, PINNED["codex"][-1]),
    (gemini, PINNED["gemini"][-1]),
    (copilot, PINNED["copilot"][-1]),
]
ANSWERS = (
    "Label {n} is printed.",
    "Parcel {n} has three labels: one for the front, one for the back and one that is kept, and this sentence is long"
    " enough to be wrapped on every screen that anybody has.",
    "Number {n}: <b>bold</b> & $HOME, 50 % of `weight`, \\\\n and 日本語 too.",
    "First {n}\n\nSecond {n}\n\nThird {n}",
)
# On the screen Markdown is drawn, and not to be seen any more.
SHOWN = (ANSWERS[0], ANSWERS[1], "The same as ever.", ANSWERS[3] + "\n\nFourth {n}")
PAIRS = [pytest.param(*each, id=f"{each[0].NAME}-{each[1]}") for each in AGENTS]

Said = list[tuple[str, str]]


def prompt(number: int, answers: tuple[str, ...] = ANSWERS) -> tuple[str, str]:
    answer = answers[number % len(answers)].replace("{n}", str(number))
    return f"Turn {number}, please. do:say{{{{{answer}}}}}", answer


def told(its: Driven, query: str = f"target={TARGET}") -> Said:
    assert its.home is not None
    items = its.home.ask("GET", f"/v1/conversations/messages?{query}&limit=1000").json["items"]
    return [(item["role"], item["content"]) for item in items]


def rest(its: Driven) -> None:
    its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
    its.expect("completed", "idle")
    its.pane.settle(0.3)


def hears(its: Driven, wanted: Said, limit: float = 15.0) -> None:
    try:
        wait_until(lambda: told(its) == wanted, "what was said", limit)
    except AssertionError:
        found = told(its)
        at = next((n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), len(wanted))
        raise AssertionError(
            f"{len(found)} of {len(wanted)}; from {at} on {found[at : at + 2]} and not {wanted[at : at + 2]}"
        ) from None


def talk(its: Driven, first: int, last: int) -> Said:
    said: Said = []
    for number in range(first, last + 1):
        asked, answer = prompt(number)
        its.say(asked)
        rest(its)
        said += [("user", asked), ("assistant", answer)]
    return said


@pytest.mark.parametrize(("agent", "version"), PAIRS)
def test_thirty_turns_are_told_as_they_were_also_after_a_crash_of_the_daemon(agent: ModuleType, version: str) -> None:
    # Without hooks where the agent's process says which file is its.
    with Driven(agent, version, hooks=agent is gemini) as its:
        assert its.home is not None
        said = talk(its, 1, TURNS // 2)
        hears(its, said)
        asked, answer = prompt(TURNS // 2 + 1)
        # In the middle of a turn, which ends without it.
        its.restart(lambda: its.say(asked))
        rest(its)
        said += [("user", asked), ("assistant", answer)]
        said += talk(its, TURNS // 2 + 2, TURNS)
        hears(its, said)
        (item,) = its.home.ask("GET", f"/v1/conversations?target={TARGET}").json["items"]
        assert (item["messages"], item["source"]) == (2 * TURNS, "transcript")
        assert item["title"].startswith("Turn 1, please.")
        printed = its.home.run("log", "--search", f"Turn {TURNS}, please", "--json").stdout
        assert [each["content"] for each in json.loads(printed)["items"]] == [said[-2][1]]
        ids = its.home.query("SELECT count(*), count(DISTINCT message_id) FROM said")
        assert ids == [(2 * TURNS, 2 * TURNS)]


@pytest.mark.parametrize(("agent", "version"), PAIRS)
def test_thirty_turns_are_cut_out_of_the_screen_where_there_is_no_transcript(agent: ModuleType, version: str) -> None:
    settings = '[conversations]\nsources = "screens"\n'
    with Driven(agent, version, hooks=False, settings=settings) as its:
        assert its.home is not None
        said: Said = []
        for number in range(1, TURNS + 1):
            asked, answer = prompt(number, SHOWN)
            if number == TURNS // 2:
                its.restart()
            its.say(asked)
            rest(its)
            said += [("user", asked), ("assistant", answer)]

        def seen() -> Said:
            # How a line was wrapped is not to be seen.
            return [(role, "".join(text.split())) for role, text in told(its)]

        wanted = [(role, "".join(text.split())) for role, text in said]
        try:
            wait_until(lambda: seen() == wanted, "what was said", 10)
        except AssertionError:
            found = seen()
            at = next((n for n, two in enumerate(zip(found, wanted, strict=False)) if two[0] != two[1]), len(found))
            raise AssertionError(f"{len(found)}; from {at} on {found[at : at + 3]} not {wanted[at : at + 3]}") from None
        assert its.home.query("SELECT DISTINCT source FROM conversations") == [("screen",)]


@pytest.mark.parametrize("agent", [claude, codex, copilot], ids=lambda it: it.NAME)
def test_two_in_one_folder_are_never_taken_for_each_other(agent: ModuleType) -> None:
    with Driven(agent, PINNED[agent.NAME][-1], hooks=False) as its:
        assert its.home is not None
        first = its.pane.format("#{pane_id}")
        its.pane.tmux("split-window", "-b", "-t", first, "-c", str(its.pane.stage.project), *its.again())
        second = its.pane.format("#{pane_id}")
        wanted: dict[str, Said] = {first: [], second: []}
        agent.ready(its.pane)
        its.pane.settle()
        for number in range(1, 7):
            pane = (first, second)[number % 2]
            its.pane.tmux("select-pane", "-t", pane)
            its.pane.only_pane = pane
            asked, answer = prompt(4 * number)
            its.say(asked)
            its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
            its.pane.settle()
            wanted[pane] += [("user", asked), ("assistant", answer)]
        for pane, said in wanted.items():
            ref = f"pane:{TARGET}/0/@0/{pane}"

            def is_told(ref: str = ref, said: Said = said) -> bool:
                return told(its, f"ref={ref}") == said

            wait_until(is_told, f"what {pane} has said", 15)


@pytest.mark.parametrize("agent", [claude, copilot, gemini], ids=lambda it: it.NAME)
def test_tools_stops_and_another_session_leave_only_what_was_said(agent: ModuleType) -> None:
    with Driven(agent, PINNED[agent.NAME][-1], hooks=True) as its:
        its.say("Make a label. do:bash{{touch label.txt}} then:say{{It is made.}}")
        its.approve()
        rest(its)
        its.say("Tell me about labels. do:slow{{600}}")
        its.pane.wait_for("word3")
        its.interrupt()
        its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
        its.pane.settle()
        its.say("And now? do:say{{Now it is over.}}")
        rest(its)
        asked = ["Make a label. do:bash{{touch label.txt}} then:say{{It is made.}}"]
        asked += ["Tell me about labels. do:slow{{600}}", "And now? do:say{{Now it is over.}}"]
        wait_until(lambda: told(its)[-1:] == [("assistant", "Now it is over.")], "the last answer")
        assert [text for role, text in told(its) if role == "user"] == asked
        answers = [text for role, text in told(its) if role == "assistant"]
        # What was said before it was stopped, some write down and some do not.
        stopped = [text for text in answers if re.match(r"word0 ", text)]
        assert [text for text in answers if text not in stopped] == [
            "I will use a tool.",
            "It is made.",
            "Now it is over.",
        ]
