"""What Claude's scenes are made of beside what other agents' are: checked typing, waits, proofs, kinds of scenes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from typing import Any

from agents.actions import MINUTES, Action, is_dead, play
from agents.bench import PROMPT, AgentPane
from agents.model.script import Kind
from agents.scenes import Attention, Scene, plain, tool_runs

BASH = "Make a label. do:bash{{touch label.txt}}"
LONG_COMMAND = "touch " + " ".join(f"labels/parcel-{number:03d}.txt" for number in range(1, 13))
THINK = f"Think about labels. do:think{{{{{MINUTES}}}}}"
STREAM = f"Tell me about labels. do:slow{{{{{MINUTES}}}}}"
# Not sleep: newer versions refuse to.
LASTING = "tail -f README.md"
# Auto mode lets no command pass that sends something, if the server does not check it.
UNCHECKED = "Send it. do:bash{{curl -X POST http://labels.invalid/send}}"
WATCH = f"Wait for the printer. do:bash{{{{{LASTING}}}}}"


# Driving it


def start(pane: AgentPane) -> None:
    """Leaves the agent as it starts."""


def say(text: str) -> Action:
    """Sends a prompt, once the model has got it."""

    def action(pane: AgentPane) -> None:
        before = len(pane.server.main)
        enter_text(pane, text)
        for _ in range(3):
            pane.keys("Enter")
            # A slow machine makes a paste of the text and a newline of the Enter.
            with contextlib.suppress(AssertionError):
                pane.wait_until(lambda: len(pane.server.main) > before, "the prompt at the model", 10)
                return
        raise AssertionError(f"the prompt did not get to the model\n{pane.screen()}")

    return action


def enter_text(pane: AgentPane, text: str) -> None:
    for _ in range(3):
        pane.type(text)
        with contextlib.suppress(AssertionError):
            pane.wait_until(lambda: pane.shows(text), "the text", 12)
            time.sleep(0.3)
            return
    raise AssertionError(f"the text did not get into the composer\n{pane.screen()}")


def calm(pane: AgentPane) -> None:
    """Waits until the words stay: beside a dialog, and in its mascot, 2.1.x has signs that blink."""
    pane.settle(0.8)


def still(pane: AgentPane, quiet: float = 1.2, limit: float = 40.0) -> None:
    """Waits until nothing moves in the lower half, not even a sign: what works has a sign that turns."""

    def shown() -> list[str]:
        lines = pane.screen(ansi=True).splitlines()
        return lines[len(lines) // 2 :]

    last, since, deadline = shown(), time.monotonic(), time.monotonic() + limit
    while time.monotonic() - since < quiet:
        if time.monotonic() > deadline:
            raise AssertionError(f"the screen does not come to rest\n{pane.screen()}")
        time.sleep(0.15)
        if (now := shown()) != last:
            last, since = now, time.monotonic()


def typed(text: str) -> Action:
    def action(pane: AgentPane) -> None:
        enter_text(pane, text)
        calm(pane)

    return action


def typed_while_busy(text: str) -> Action:
    return lambda pane: enter_text(pane, text)


def shows(pattern: str, limit: float = 40.0) -> Action:
    """Waits for that and then for rest."""

    def action(pane: AgentPane) -> None:
        pane.wait_for(pattern, limit)
        calm(pane)

    return action


def until(pattern: str) -> Action:
    """Waits for that only: what is at work does not come to rest."""
    return lambda pane: pane.wait_for(pattern)


def streams(word: str) -> Action:
    """Waits for that word of the answer, or for a while: 1.0.x shows an answer only once it is complete."""

    def action(pane: AgentPane) -> None:
        with contextlib.suppress(AssertionError):
            pane.wait_for(word, 8)

    return action


def answered(pane: AgentPane) -> None:
    """Waits for the end of a turn."""
    pane.wait_until(lambda: pane.server.steps and not pane.server.busy, "end of the answer")
    # A screen that stands still may be one whose program gets no turn.
    pane.wait_until(lambda: not re.search(r"^[·*✢✳✶✻✽] \S+…", pane.screen(), re.MULTILINE), "end of the work")
    calm(pane)
    still(pane)


def given_up(pane: AgentPane) -> None:
    """Waits for the message that ends an attempt; while it tries again it may name the error too."""
    pane.wait_until(
        lambda: re.search(r"API Error|/login", shown := pane.screen()) and not re.search(r"Retrying|attempt", shown),
        "the error",
        60,
    )
    still(pane)


def turn(text: str) -> Action:
    return play(say(text), answered)


def command_runs(pane: AgentPane) -> None:
    pane.wait_until(lambda: tool_runs(pane), "the tool")
    time.sleep(2.5)


def choose_last(pane: AgentPane) -> None:
    """Chooses the last option of the dialog, which is the refusal."""
    options = re.findall(r"^[│\s]*❯?\s*([1-9])\. ", pane.screen(), re.MULTILINE)
    pane.type(options[-1])
    time.sleep(0.5)
    if "Do you want to" in pane.screen():
        pane.keys("Enter")
    still(pane)


def amend(pane: AgentPane) -> None:
    """Types what to do differently into the dialog, the way this version has it."""
    if "Tab to" in pane.screen():
        pane.keys("Tab")
    else:
        assert re.search(r"Type here|tell Claude", pane.screen())
        pane.keys("Up")
    time.sleep(0.5)
    pane.type("use the other folder")
    pane.wait_for("use the other folder")
    pane.settle()


def tools_listed(pane: AgentPane) -> None:
    """Waits for the MCP server to be asked what it has."""
    pane.wait_until((pane.stage.home / "listed").exists, "the MCP server")
    time.sleep(1.5)


def tools_known(pane: AgentPane) -> None:
    """Waits for the server that asks the user to be listed; it takes a moment to start."""
    time.sleep(3)


def kill(pane: AgentPane) -> None:
    os.kill(pane.foreground(), signal.SIGKILL)
    left(pane)


def left(pane: AgentPane) -> None:
    """Waits for the shell, whose prompt may be anywhere in what the agent has drawn."""
    pane.wait_until(lambda: is_dead(pane), "the shell")
    pane.wait_for(re.escape(PROMPT.strip()))
    pane.settle()


def suggested(taken: dict[str, Any]) -> str:
    """Nothing was typed: what stands in the composer is the agent's."""
    lines = plain(taken["screen"]).splitlines()
    line = lines[taken["cursor"][1]] if taken["cursor"][1] < len(lines) else ""
    inside = [text for text in (line, *reversed(lines)) if re.match(r"[│\s]*[>❯](?:\s|$)", text)]
    return "suggestion" if inside and inside[0].strip("│>❯ \xa0\t") else "empty"


def prompt_back(taken: dict[str, Any]) -> str:
    """Some versions give a prompt back that nothing was answered to."""
    return "draft" if suggested(taken) == "suggestion" else "empty"


DIALOG = shows(r"1\. Yes")


# Being sure


def unanswered(kind: Kind) -> Callable[[AgentPane], bool]:
    """The model's last word was that tool call, and nothing came of it."""

    def proof(pane: AgentPane) -> bool:
        done = pane.server.steps
        return not pane.server.busy and not tool_runs(pane) and bool(done) and done[-1].kind is kind

    return proof


def asked_of_subagent(pane: AgentPane) -> bool:
    return not pane.server.busy and any(step.kind is Kind.BASH for step in pane.server.steps)


def background_runs(pane: AgentPane) -> bool:
    return not pane.server.busy and tool_runs(pane)


def approval(summary: str) -> Attention:
    return Attention("approval", summary, None)


def startup(name: str, state: str, did: str, action: Action, wish: str, attention: Attention | None = None) -> Scene:
    wishes = frozenset({wish})
    return Scene(f"startup-{name}", state, "startup", did, action, wishes=wishes, ready=False, attention=attention)


def quoted(name: str, text: str, what: str) -> Scene:
    did = f"The model answered with {what}; the turn is over."
    return Scene(f"quoted-{name}", "idle", "quoted", did, turn(f"Show me. do:show{{{{{text}}}}}"), composer=suggested)


def overlay(name: str, did: str, *actions: Action) -> Scene:
    return Scene(f"overlay-{name}", "unknown", "overlay", did, play(*actions))


def busy(name: str, did: str, *actions: Action, kind: str = "busy", composer: Any = suggested, **more: Any) -> Scene:
    return Scene(f"busy-{name}", "running", kind, did, play(*actions), composer=composer, **more)


def idle(name: str, did: str, *actions: Action, kind: str = "prompt", composer: Any = suggested, **more: Any) -> Scene:
    return Scene(f"idle-{name}", "idle", kind, did, play(*actions), composer=composer, **more)


def dialog(name: str, summary: str, did: str, *actions: Action, kind: Kind = Kind.BASH, **more: Any) -> Scene:
    more = {"proof": unanswered(kind), "attention": approval(summary)} | more
    return Scene(f"approval-{name}", "waiting_approval", "dialog", did, play(*actions), **more)


def question(
    name: str, did: str, *actions: Action, options: tuple[str, ...], kind: Kind = Kind.ASK, **more: Any
) -> Scene:
    attention = Attention("question", "Which parcel goes first?", options)
    more = {"proof": unanswered(kind), "attention": attention} | more
    return Scene(f"question-{name}", "waiting_input", "question", did, play(*actions), **more)


def error(name: str, did: str, *actions: Action) -> Scene:
    wishes = frozenset({"few-tries"})
    return Scene(f"error-{name}", "error", "error", did, play(*actions), composer=suggested, wishes=wishes)


def dead(name: str, did: str, *actions: Action) -> Scene:
    return Scene(f"dead-{name}", "unknown", "dead", did, play(*actions), proof=is_dead)
