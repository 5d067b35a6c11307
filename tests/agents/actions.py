"""What scenes are made of: small actions on a pane, done in order, and proofs that ask the model server and processes.

For agents whose scenes are lists of actions. What only one agent has is in its own module.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.bench import PROMPT, SHELL, TYPING_PAUSE, AgentPane
from agents.model.script import Kind
from agents.scenes import Attention, Scene

Action = Callable[[AgentPane], object]

MINUTES = 600  # longer than any scene takes
CALM = 0.6  # of the time: less is a clock or a cursor that blinks
PATIENCE = 60.0
START = 240.0  # these agents take their time to start, more so beside others

THINK = f"Think about labels. do:think{{{{{MINUTES}}}}}"
STREAM = f"Tell me about labels. do:slow{{{{{MINUTES}}}}}"
SLEEP = f"Wait for the printer. do:bash{{{{sleep {MINUTES}}}}}"
BASH = "Make a label. do:bash{{touch label.txt}}"
LONG_COMMAND = "touch " + " ".join(f"labels/parcel-{number:03d}.txt" for number in range(1, 25))
QUESTION = "Which parcel goes first?"


# Doing


def play(*actions: Action) -> Callable[[AgentPane], None]:
    def drive(pane: AgentPane) -> None:
        for action in actions:
            action(pane)

    return drive


def say(text: str) -> Action:
    """Sends a prompt; done once the model has got it."""

    def action(pane: AgentPane) -> None:
        before = len(pane.server.main)
        send(text)(pane)
        pane.wait_until(lambda: len(pane.server.main) > before, "the prompt at the model", PATIENCE)

    return action


def send(text: str) -> Action:
    """The same for what goes no further than the agent: a command of its own, or a message that waits its turn."""

    def action(pane: AgentPane) -> None:
        if text.startswith("/"):
            write(text)(pane)
        else:
            # Typed at once, signs such as `?` may be taken for keys.
            pane.paste(text)
            pane.wait_for(_spread(text), PATIENCE)
        # Gemini takes an Enter for a part of the text if it comes with it.
        time.sleep(2 * TYPING_PAUSE)
        pane.keys("Enter")

    return action


def write(text: str) -> Action:
    """Into the composer, without sending it."""

    def action(pane: AgentPane) -> None:
        pane.type(text)
        pane.wait_for(_spread(text), PATIENCE)

    return action


def _spread(text: str) -> str:
    """A pattern for the end of that text, wherever the agent breaks the line; long pastes it may show otherwise."""
    return r"[\s│]*".join(map(re.escape, re.sub(r"\s", "", text)[-12:])) + r"|\[Past"


def paste(text: str) -> Action:
    return lambda pane: pane.paste(text)


def press(*names: str, pause: float = 0.4) -> Action:
    def action(pane: AgentPane) -> None:
        for name in names:
            pane.keys(name)
            time.sleep(pause)

    return action


def work(seconds: float = 2.5) -> Action:
    """Lets it work for a while, so that the busy line has all its parts."""
    return lambda pane: time.sleep(seconds)


# Waiting


def shows(pattern: str, limit: float = PATIENCE) -> Action:
    return lambda pane: pane.wait_for(pattern, limit)


def rests(pane: AgentPane) -> None:
    """The agent has drawn what it has to draw: it neither computes nor waits for a processor, and the screen is still.

    On a machine with much to do a screen may be still because its program gets no turn.
    """
    quiet = 0
    last = (time.monotonic(), _effort(pane))
    deadline = last[0] + PATIENCE
    while quiet < 3:
        if time.monotonic() > deadline:
            raise AssertionError(f"the agent does not come to rest\n{pane.screen()}")
        time.sleep(0.4)
        now = (time.monotonic(), _effort(pane))
        spent = max((effort - last[1].get(pid, 0.0) for pid, effort in now[1].items()), default=0.0)
        quiet = quiet + 1 if spent < CALM * (now[0] - last[0]) else 0
        last = now
    # A clock that counts the seconds of an open dialog goes on.
    with contextlib.suppress(AssertionError):
        pane.settle(0.4, limit=4.0)


def _effort(pane: AgentPane) -> dict[int, float]:
    """Seconds in which the main thread of each of the agent's processes has run or was ready to."""
    found = {}
    for pid in pane.processes():
        with contextlib.suppress(OSError, ValueError):
            running, waiting, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
            found[pid] = (int(running) + int(waiting)) / 1e9
    return found


def answered(pane: AgentPane) -> None:
    """The model has said all of it, and the agent has drawn it."""
    pane.wait_until(lambda: pane.server.main and not pane.server.busy, "an answer", PATIENCE)
    rests(pane)


def runs_sleep(pane: AgentPane) -> None:
    pane.wait_until(lambda: pane.runs("sleep"), "the tool's process", PATIENCE)


def asked_times(number: int) -> Action:
    """So many requests have come to the model."""
    return lambda pane: pane.wait_until(lambda: len(pane.server.main) >= number, f"{number} requests", 2 * PATIENCE)


def kill(pane: AgentPane) -> None:
    """The group: the program, and the one that it restarts itself as."""
    os.killpg(pane.foreground(), signal.SIGKILL)
    pane.wait_until(lambda: pane.command() == SHELL, "the shell")
    # What it had drawn may stay below the prompt.
    pane.wait_for(r"Killed\s*" + re.escape(PROMPT.strip()), PATIENCE)
    pane.settle()


def turn(text: str) -> Action:
    return play(say(text), answered)


# Being sure


def unanswered(kind: Kind) -> Callable[[AgentPane], bool]:
    """The model's last word was that tool call, and nothing has come of it."""

    def proof(pane: AgentPane) -> bool:
        done = pane.server.steps
        rests = not pane.server.busy and not pane.server.failures and not pane.runs("sleep")
        return rests and bool(done) and done[-1].kind is kind

    return proof


def unasked(pane: AgentPane) -> bool:
    """Nobody has said anything to the model."""
    return not pane.server.main


def broken_off(pane: AgentPane) -> bool:
    """The last answer was cut short by the agent."""
    return not pane.server.busy and pane.server.main[-1].aborted


def said(pane: AgentPane) -> bool:
    """The model's last word was a text, and it is out."""
    done = pane.server.steps
    return not pane.server.busy and not pane.runs("sleep") and bool(done) and done[-1].kind in (Kind.SAY, Kind.SLOW)


def denied(pane: AgentPane) -> bool:
    return unanswered(Kind.BASH)(pane) and not (pane.stage.project / "label.txt").exists()


def tries_again(pane: AgentPane) -> bool:
    """Another request comes by itself."""
    before = len(pane.server.main)
    deadline = time.monotonic() + 45
    while len(pane.server.main) == before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def is_dead(pane: AgentPane) -> bool:
    return pane.command() == SHELL


# Scenes of a kind


def idle(name: str, did: str, *actions: Action, kind: str = "prompt", composer: str = "empty", **more: Any) -> Scene:
    return Scene(f"idle-{name}", "idle", kind, did, play(*actions), composer=composer, **more)


def draft(name: str, did: str, *actions: Action, **more: Any) -> Scene:
    return idle(name, did, *actions, rests, **{"kind": "draft", "composer": "draft"} | more)


def busy(name: str, did: str, *actions: Action, kind: str = "busy", composer: str = "empty", **more: Any) -> Scene:
    return Scene(f"busy-{name}", "running", kind, did, play(*actions), composer=composer, **more)


def approval(name: str, summary: str, did: str, *actions: Action, tool: Kind = Kind.BASH, **more: Any) -> Scene:
    usual = {"proof": unanswered(tool), "attention": Attention("approval", summary, None)}
    return Scene(f"approval-{name}", "waiting_approval", "dialog", did, play(*actions, rests), **usual | more)


def question(name: str, did: str, *actions: Action, options: tuple[str, ...] | None, **more: Any) -> Scene:
    usual = {"proof": unanswered(Kind.ASK), "attention": Attention("question", QUESTION, options)}
    return Scene(f"question-{name}", "waiting_input", "question", did, play(*actions, rests), **usual | more)


def stopped(name: str, did: str, *actions: Action, **more: Any) -> Scene:
    usual: dict[str, Any] = {"composer": "empty"}
    return Scene(f"stopped-{name}", "idle", "stopped", did, play(*actions, rests), **usual | more)


def error(name: str, did: str, *actions: Action, **more: Any) -> Scene:
    return Scene(f"error-{name}", "error", "error", did, play(*actions, rests), composer="empty", **more)


def quoted(name: str, text: str, what: str) -> Scene:
    did = f"The model answered with {what}; the turn is over."
    action = turn(f"Show me. do:show{{{{{text}}}}}")
    return Scene(f"quoted-{name}", "idle", "quoted", did, action, composer="empty", proof=said)


def overlay(name: str, did: str, *actions: Action, **more: Any) -> Scene:
    return Scene(f"overlay-{name}", "unknown", "overlay", did, play(*actions, rests), **more)


def startup(name: str, state: str, did: str, pattern: str, wish: str, attention: Attention) -> Scene:
    actions = play(shows(pattern, START), rests)
    more: dict[str, Any] = {"wishes": frozenset({wish}), "ready": False, "proof": unasked}
    return Scene(f"startup-{name}", state, "startup", did, actions, attention=attention, **more)


def dead(name: str, did: str, *actions: Action) -> Scene:
    return Scene(f"dead-{name}", "unknown", "dead", did, play(*actions, kill), proof=is_dead)
