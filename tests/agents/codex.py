"""Codex: the scenes it is recorded in. How it is started alone with a model server is in codex_setup.py.

What differs between versions is asked of the screen. What stands in the composer and was not typed is always there: an
example of a prompt, or an invitation.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import time
from collections.abc import Callable
from typing import Any

from agents.bench import PROMPT, SHELL, AgentPane
from agents.codex_setup import NAME, PROTOCOLS, has_prompt, prepare, ready
from agents.model.script import Kind
from agents.scenes import Attention, Scene

__all__ = ["NAME", "PROTOCOLS", "SCENES", "prepare", "ready"]

Drive = Callable[[AgentPane], object]

MINUTES = 600  # longer than any scene takes


# Driving it


def steps(*drives: Drive) -> Callable[[AgentPane], None]:
    def drive(pane: AgentPane) -> None:
        for each in drives:
            each(pane)

    return drive


def say(text: str) -> Drive:
    """Sends a prompt, once the model has got it."""

    def drive(pane: AgentPane) -> None:
        before = len(pane.server.main)
        pane.say(text)
        entered = time.monotonic()

        def arrived() -> bool:
            nonlocal entered
            if time.monotonic() - entered > 4 and has_prompt(pane):
                # A slow machine: Enter came with the text after all, and was taken for a part of it.
                pane.keys("Enter")
                entered = time.monotonic()
            return len(pane.server.main) > before

        pane.wait_until(arrived, "the prompt at the model")

    return drive


def typed(*lines: str) -> Drive:
    """Into the composer, without sending it."""

    def drive(pane: AgentPane) -> None:
        for number, line in enumerate(lines):
            if number:
                pane.keys("C-j")
            pane.type(line)
        # Some versions draw the sign that leads to the shell apart.
        pane.wait_for(r"\s+".join(map(re.escape, lines[-1].lstrip("!").split()[-3:])))

    return drive


def keys(*names: str) -> Drive:
    def drive(pane: AgentPane) -> None:
        for name in names:
            pane.keys(name)
            time.sleep(0.3)

    return drive


def command(*names: str) -> Drive:
    """Runs the slash command, whatever this version calls it."""

    def drive(pane: AgentPane) -> None:
        for name in names:
            pane.type(name)
            pane.settle()
            pane.keys("Enter")
            pane.settle()
            if f"nrecognized command '{name}'" not in pane.screen():
                return
            pane.keys("C-u")
        raise AssertionError(f"none of {names} is known")

    return drive


def until(pattern: str, limit: float = 20.0) -> Drive:
    return lambda pane: pane.wait_for(pattern, limit)


def shows(pattern: str, limit: float = 20.0) -> Drive:
    """Waits for that and then for rest."""
    return steps(until(pattern, limit), lambda pane: pane.settle())


def answered(pane: AgentPane) -> None:
    """Waits for the end of a turn."""
    pane.wait_until(lambda: pane.server.steps and not pane.server.busy, "the end of the answer")
    pane.settle()


def turn(text: str) -> Drive:
    return steps(say(text), answered)


def work(seconds: float = 2.5) -> Drive:
    """Lets it work for a while, so that the busy line has all its parts."""
    return lambda pane: time.sleep(seconds)


def tool_runs(pane: AgentPane) -> None:
    pane.wait_until(lambda: pane.runs("sleep"), "the tool")
    time.sleep(2.5)


def escape(pane: AgentPane) -> None:
    pane.keys("Escape")
    time.sleep(2)
    if pane.server.busy:
        # While text is being written and no busy line is there, most versions take Esc for something else.
        pane.keys("C-c")


def kill(pane: AgentPane) -> None:
    # The group: npm's wrapper and the program that it started.
    os.killpg(pane.foreground(), signal.SIGKILL)


def left(pane: AgentPane) -> None:
    """Waits for the shell and its prompt, which may stand in the middle of what the agent has drawn."""

    def at_prompt() -> bool:
        x, y = pane.cursor()
        return is_dead(pane) and x == len(PROMPT) and pane.screen().splitlines()[y].startswith(PROMPT.strip())

    pane.wait_until(at_prompt, "the shell's prompt")
    pane.settle()


# Being sure


def unanswered(kind: Kind) -> Callable[[AgentPane], bool]:
    """The model's last word was that, and nothing came of it."""

    def proof(pane: AgentPane) -> bool:
        done = pane.server.steps
        return not pane.server.busy and not pane.runs("sleep") and bool(done) and done[-1].kind is kind

    return proof


def not_answering(pane: AgentPane) -> bool:
    """Nothing comes from the model; a command may still run in the background."""
    return not pane.server.busy


def tool_done(pane: AgentPane) -> bool:
    return not pane.server.busy and pane.server.steps[-1].kind is Kind.SAY


def is_dead(pane: AgentPane) -> bool:
    return pane.command() == SHELL


# What is said

OUTSIDE = "/var/lib/labels.db"
BASH = f"Make a label. do:bash{{{{touch {OUTSIDE}}}}}"
LONG_COMMAND = "touch " + " ".join(f"/var/lib/labels/parcel-{number:03d}.txt" for number in range(1, 13))
DIALOG = shows(r"1\. (Yes|Allow|Approve|Accept)|^▌Allow command")
THINK = f"Think about labels. do:think{{{{{MINUTES}}}}}"
STREAM = f"Tell me about labels. do:slow{{{{{MINUTES}}}}}"
# Most versions have a busy line beside the text; those that write at once have none.
STREAMS = until(r"word1[2-9]|orking \(([5-9]|\d\d)s")
SLEEP = f"Wait for the printer. do:bash{{{{sleep {MINUTES}}}}}"
ASK = steps(say("Ask me. do:ask{{Which parcel goes first?|Red|Blue}}"), shows(r"2\. Blue"))
PLAN_MODE = steps(keys("BTab"), shows("Plan mode"))
PLAN = "Make a plan. do:plan{{# Labels for vans|- Read label.py|- Change the weight|- Run the tests}}"
STOPPED = shows("(?i)interrupted|tell the model")
FAILED = shows("■|(?i:stream error|unexpected status|usage limit)", 40.0)
TRANSCRIPT = steps(keys("C-t"), until("T R A N S C R I P T"))


def coloured(scene: Scene) -> Scene:
    """The same in a terminal that tells its colours when asked: then the composer has a background of its own."""

    def drive(pane: AgentPane) -> None:
        # Codex asks when it has come up, which takes npm's wrapper longer than this.
        pane.tmux("set-option", "-g", "window-style", "fg=#cdd6f4,bg=#1e1e2e")
        ready(pane)
        scene.drive(pane)

    did = f"{scene.did} The terminal tells its colours."
    return dataclasses.replace(scene, name=f"{scene.name}-coloured", did=did, drive=drive, ready=False)


def scene(state: str, kind: str, name: str, did: str, *drives: Drive, wish: str = "", **more: Any) -> Scene:
    return Scene(name, state, kind, did, steps(*drives), wishes=frozenset(wish.split()), **more)


def startup(name: str, state: str, did: str, sign: str, wish: str, attention: Attention) -> Scene:
    return scene(state, "startup", f"startup-{name}", did, shows(sign), wish=wish, ready=False, attention=attention)


def idle(name: str, did: str, *drives: Drive, kind: str = "prompt", composer: str = "suggestion", **more: Any) -> Scene:
    return scene("idle", kind, f"idle-{name}", did, *drives, composer=composer, **more)


def draft(name: str, did: str, *drives: Drive, kind: str = "draft") -> Scene:
    return idle(name, did, *drives, kind=kind, composer="draft")


def busy(name: str, did: str, *drives: Drive, kind: str = "busy", composer: str = "suggestion", **more: Any) -> Scene:
    return scene("running", kind, f"busy-{name}", did, *drives, composer=composer, **more)


def dialog(name: str, summary: str, did: str, *drives: Drive, of: Kind = Kind.BASH, **more: Any) -> Scene:
    attention = Attention("approval", summary, None)
    return scene("waiting_approval", "dialog", f"approval-{name}", did, *drives, attention=attention,
                 proof=unanswered(of), **more)  # fmt: skip


def question(name: str, did: str, *drives: Drive) -> Scene:
    attention = Attention("question", "Which parcel goes first", ("Red", "Blue", "None of the above"))
    return scene("waiting_input", "question", f"question-{name}", did, *drives, attention=attention,
                 proof=unanswered(Kind.ASK))  # fmt: skip


def stopped(name: str, did: str, *drives: Drive, **more: Any) -> Scene:
    """What Esc refuses or stops; a command that ran may be left in the background."""
    return idle(name, did, *drives, escape, STOPPED, kind="stopped", proof=not_answering, **more)


def error(name: str, did: str, how: str) -> Scene:
    drives = (say(f"Hello. do:error{{{{{how}}}}}"), FAILED)
    return scene("error", "error", f"error-{name}", did, *drives, composer="suggestion")


def quoted(name: str, what: str) -> Scene:
    did = f"The model answered with {what}; the turn is over."
    return idle(f"quoted-{name}", did, turn(f"Show me. do:show{{{{{name}}}}}"), kind="quoted")


def overlay(name: str, did: str, *drives: Drive) -> Scene:
    return scene("unknown", "overlay", f"overlay-{name}", did, *drives)


def dead(name: str, did: str, *drives: Drive) -> Scene:
    return scene("unknown", "dead", f"dead-{name}", did, *drives, left, proof=is_dead)


_SCENES = (
    startup("trust", "waiting_approval", "Started it in a repository it does not know.",
            r"(?i)trust|you are running codex in", "untrusted", Attention("trust", "", None)),
    startup("login", "waiting_input", "Started it without an account.",
            "Sign in with ChatGPT", "login", Attention("login", "Sign in with ChatGPT", None)),
    startup("hooks", "waiting_approval", "Started it with hooks that nobody has trusted.",
            "(?i)hooks? need", "hooks", Attention("trust", "Hooks need review", None)),
    startup("model", "waiting_input", "Started it with a model that has a successor.",
            r"(?i)try new model|introducing our", "outdated", Attention("question", "", None)),
    startup("update", "waiting_input", "Started it when there is a newer version.",
            "(?i)update now", "update", Attention("question", "9.9.9", None)),

    idle("start", "Started it."),
    draft("draft", "Typed a sentence and did not send it.", typed("print three labels")),
    draft("draft-lines", "Typed three lines and did not send them.",
          typed("print three labels", "1. for the parcels", "2. for the vans")),
    draft("draft-long", "Typed a sentence longer than the line and did not send it.",
          typed("print three labels for the parcels on the second shelf, one for each, and put them on the belt " * 2)),
    draft("draft-number", "Typed 1 and did not send it.", typed("1")),
    draft("draft-dialog", "Pasted the lines of a dialog and did not send them.",
          lambda pane: pane.paste("Would you like to run it?\n› 1. Yes, proceed (y)\n  2. No"), shows("Yes|Pasted")),
    draft("draft-after-turn", "Typed a sentence after a turn.", turn("Hello. do:say{{Three labels are printed.}}"),
          typed("print another")),
    idle("completed", "A turn is over.", turn("Hello. do:say{{Three labels are printed.}}")),
    idle("completed-tool", "A command was approved and the turn is over.", say("Make it. do:bash{{touch label.txt}}"),
         DIALOG, keys("y"), shows("All done"), proof=tool_done),
    idle("completed-long", "A turn with a long answer is over.", turn("Tell me all. do:show{{long}}")),
    idle("completed-question", "A turn that ends in a question is over.", turn("Hello. do:show{{question}}")),
    idle("completed-after-error", "A turn went well after an error.", say("Hello. do:error{{500}}"), FAILED,
         turn("Again. do:say{{Three labels are printed.}}")),
    idle("scrolled", "A turn with a long answer is over, and the user looks at its begin.",
         turn("Tell me all. do:show{{long}}"), keys("PPage", "PPage")),
    idle("background", "A command runs in the background, the turn is over.",
         say(f"Watch. do:background{{{{sleep {MINUTES}}}}} then:say{{{{It runs.}}}}"),
         lambda pane: pane.wait_until(lambda: tool_done(pane), "the end of the turn"), lambda pane: pane.settle(1.5),
         kind="background", proof=lambda pane: tool_done(pane) and pane.runs("sleep")),
    idle("plan-mode", "Switched to plan mode.", PLAN_MODE),
    idle("status", "Asked for the status.", command("/status"), shows("(?i)session:|directory:")),
    draft("menu-slash", "Typed a slash, the commands are listed.", typed("/"), shows("/model"), kind="menu"),
    draft("menu-slash-filter", "Typed the begin of a command.", typed("/mo"), shows("/model"), kind="menu"),
    draft("menu-file", "Typed an at sign and the begin of a name, the files are listed.", typed("look at @lab"),
          shows(r"label\.py"), kind="menu"),
    draft("menu-shell", "Typed a shell command after an exclamation mark.", typed("!ls -l"), kind="menu"),
    idle("menu-shortcuts", "Typed a question mark, the shortcuts are listed.", keys("?"),
         shows("for commands|for newline|Keyboard shortcuts"), kind="menu"),

    busy("waiting", "The model has not said anything yet.", say(THINK), work()),
    busy("waiting-first", "The prompt was sent a moment ago.", say(THINK), work(0.3)),
    busy("thinking", "The model thinks, under a headline.",
         say(f"Think. do:think{{{{{MINUTES}|Weighing the labels}}}}"), work()),
    busy("streaming", "The model is writing.", say(STREAM), STREAMS),
    busy("streaming-long", "The model is writing, after a long answer.", turn("Tell me all. do:show{{long}}"),
         say(STREAM), STREAMS),
    busy("tool", "A command is running.", say(SLEEP), tool_runs),
    busy("tool-approved", "A command was approved and runs.", say(f"Wait. do:bash{{{{env sleep {MINUTES}}}}}"), DIALOG,
         keys("y"), tool_runs),
    busy("tool-done", "A command was approved and the model thinks about its result.",
         say(f"Make it. do:bash{{{{touch label.txt}}}} then:think{{{{{MINUTES}}}}}"), DIALOG, keys("y"),
         lambda pane: pane.wait_until(lambda: pane.server.busy, "the result at the model"), work()),
    busy("todo", "It works with a list of steps.",
         say(f"Plan it. do:todo{{{{Read labels, Print labels, Check labels}}}} then:think{{{{{MINUTES}}}}}"),
         lambda pane: pane.wait_until(lambda: len(pane.server.steps) > 1, "the list"), work()),
    busy("queued", "Another prompt was sent while a command runs.", say(SLEEP), tool_runs,
         lambda pane: pane.say("then print them again"), work(1), kind="queued"),
    busy("queued-tab", "Another prompt was queued with Tab while a command runs.", say(SLEEP), tool_runs,
         typed("then print them again"), keys("Tab"), until("(?i)queued|↳"), kind="queued"),
    busy("draft", "A sentence was typed while the model writes.", say(STREAM), STREAMS, typed("then print them again"),
         kind="draft", composer="draft"),
    busy("draft-waiting", "A sentence was typed while the model has not said anything.", say(THINK), work(1),
         typed("then print them again"), kind="draft", composer="draft"),
    busy("draft-tool", "A sentence was typed while a command runs.", say(SLEEP), tool_runs,
         typed("then print them again"), kind="draft", composer="draft"),
    busy("retrying", "The model's server fails, Codex tries again.", say("Hello. do:error{{500|6}}"),
         lambda pane: pane.wait_until(lambda: len(pane.server.main) > 1, "another try"), work(1), wish="retries"),
    busy("quoted-dialog", "The model thinks, the answer before quoted a dialog.",
         turn("Show me. do:show{{codex-dialog}}"), say(THINK), work()),

    dialog("bash", OUTSIDE, "The model wants to run a command.", say(BASH), DIALOG),
    dialog("bash-second", OUTSIDE, "The second option is marked.", say(BASH), DIALOG, keys("Down"), DIALOG),
    dialog("bash-last", OUTSIDE, "The last option is marked.", say(BASH), DIALOG, keys("Up"), DIALOG),
    dialog("bash-long", "parcel-001.txt", "The model wants to run a long command.",
           say(f"Make labels. do:bash{{{{{LONG_COMMAND}}}}}"), DIALOG),
    dialog("bash-draft", OUTSIDE, "The dialog came while a sentence was typed.",
           say(f"Wait. do:bash{{{{sleep 4}}}} then:bash{{{{touch {OUTSIDE}}}}}"), typed("then print them again"),
           DIALOG),
    dialog("bash-quoted-busy", OUTSIDE, "The model wants to run a command, the answer before quoted busy lines.",
           turn("Show me. do:show{{busy}}"), say(BASH), DIALOG),
    dialog("bash-again", OUTSIDE, "The model wants to run a command after another was refused.", say(BASH), DIALOG,
           keys("Escape"), STOPPED, say(BASH), DIALOG),
    dialog("edit", "vans.py", "The model wants to make a file.", say("Make it. do:edit{{vans.py}}"), DIALOG,
           of=Kind.EDIT, wish="read-only"),
    dialog("change", "label.py", "The model wants to change a file.", say("Change it. do:change{{label.py}}"), DIALOG,
           of=Kind.CHANGE, wish="read-only"),
    dialog("mcp", "print_label", "The model wants to use a tool of an MCP server.", work(2),
           say('Print it. do:tool{{print_label|{"parcel": "A-1"} }}'), DIALOG, of=Kind.TOOL, wish="mcp"),
    scene("waiting_approval", "plan", "plan", "The model has made a plan in plan mode.", PLAN_MODE, say(PLAN),
          shows("(?i)implement this plan"), attention=Attention("plan", "Implement this plan?", None),
          proof=unanswered(Kind.PLAN)),

    question("single", "The model asks a question.", ASK),
    question("single-second", "The second answer is marked.", ASK, keys("Down"), shows("Blue")),
    question("notes", "A note was typed to an answer.", ASK, keys("Tab"), typed("the green one")),
    question("plan-mode", "The model asks a question in plan mode.", PLAN_MODE, ASK),

    *(
        scene("waiting_input", "question", f"question-{name}", did, work(2), say(f"Do it. do:tool{{{{{tool}|{{}} }}}}"),
              *drives, wish="mcp", proof=unanswered(Kind.TOOL), attention=Attention("question", "", ()))
        for name, did, tool, drives in (
            ("url", "An MCP server asks to open a page.", "pay_postage", (shows("labels.invalid"),)),
            ("url-opened", "The page that an MCP server asked for was opened.", "pay_postage",
             (shows("labels.invalid"), keys("Enter"), shows("(?i)finish"))),
            ("elicitation", "An MCP server asks for two values.", "weigh_parcel", (shows("Field 1/2"),)),
            ("elicitation-text", "An MCP server asks for a text.", "weigh_parcel",
             (shows("Field 1/2"), keys("Enter"), shows("Field 2/2"))),
        )
    ),
    busy("streaming-still", "The model is writing, and nothing on the screen is animated.", say(STREAM), STREAMS,
         wish="still"),
    busy("waiting-still", "The model has not said anything yet, and nothing is animated.", say(THINK), work(),
         wish="still"),
    quoted("busy-claude", "the busy line of another agent as its first words"),
    quoted("busy-codex", "Codex's own busy line as its first words"),
    *(
        overlay(f"{name}{after}", f"Opened {name}{why}.", *before, *drives)
        for after, why, before in (
            ("", "", (turn("Hello. do:say{{Three labels are printed.}}"),)),
            ("-error", " after an error", (say("Hello. do:error{{500}}"), FAILED)),
        )
        for name, drives in (
            ("history", (keys("C-r"), shows("(?i)search"))),
            ("memories", (command("/memories"), shows("(?i)memories"))),
            ("statusline", (command("/statusline"), shows("(?i)status line"))),
            ("keymap", (command("/keymap"), shows("(?i)keymap"))),
            ("theme", (command("/theme"), shows("(?i)theme"))),
            ("skills", (command("/skills"), shows("(?i)skills"))),
        )
    ),
    overlay("shortcuts-error", "Opened the shortcuts after an error.", say("Hello. do:error{{500}}"), FAILED, keys("?"),
            shows("(?i)shortcuts|newline")),

    stopped("denied", "A command was refused with Esc.", say(BASH), DIALOG),
    stopped("denied-edit", "A change was refused with Esc.", say("Change it. do:change{{label.py}}"), DIALOG,
            wish="read-only"),
    stopped("denied-question", "A question was refused with Esc.", ASK),
    stopped("interrupted", "The model was stopped while it was writing.", say(STREAM), STREAMS),
    stopped("interrupted-waiting", "The model was stopped with Esc before it said anything.", say(THINK), work(2)),
    stopped("interrupted-tool", "A command was stopped with Esc.", say(SLEEP), tool_runs),

    error("key", "The model's server refuses the key.", "401"),
    error("rate", "The model's server has had too many requests.", "429"),
    error("limit", "The account's limit is reached.", "429|0|usage_limit_reached"),
    error("server", "The model's server fails, and fails again.", "500"),
    error("request", "The model's server does not take the request.", "400"),

    quoted("codex-dialog", "a dialog of Codex"),
    quoted("claude-dialog", "another agent's dialog"),
    quoted("busy", "lines that look busy"),
    quoted("yes-no", "a question and two numbered answers"),
    quoted("steps", "a numbered list"),
    quoted("errors", "errors"),
    quoted("prompt-sign", "the signs of prompts"),
    quoted("table", "a table"),
    quoted("wide", "wide characters"),
    quoted("code", "code"),

    # Some versions ask for the list of models first, and wait long for it.
    overlay("model", "Opened the choice of models.", work(8), command("/model"), shows("(?i)select model")),
    overlay("permissions", "Opened the choice of permissions.", command("/permissions", "/approvals"),
            shows("(?i)approval mode|permissions")),
    overlay("resume", "Opened the list of sessions.", turn("Hello. do:say{{Three labels are printed.}}"),
            command("/resume"), shows("(?i)resume a (previous )?session|sessions")),
    overlay("transcript", "Opened the transcript.", turn("Show me. do:show{{steps}}"), TRANSCRIPT),
    overlay("transcript-busy", "Opened the transcript while a command runs.", say(SLEEP), tool_runs, TRANSCRIPT),
    overlay("transcript-dialog", "Opened the transcript over a dialog.", say(BASH), DIALOG, TRANSCRIPT),
    overlay("transcript-quoted", "Opened the transcript, which ends in a quoted dialog.",
            turn("Show me. do:show{{codex-dialog}}"), TRANSCRIPT),

    dead("killed-dialog", "Was killed while it asked.", say(BASH), DIALOG, kill),
    dead("killed-busy", "Was killed while a command ran.", say(SLEEP), tool_runs, kill),
    dead("killed-idle", "Was killed after a turn.", turn("Hello. do:say{{Three labels are printed.}}"), kill),
    dead("quit", "Was left with /quit.", turn("Hello. do:say{{Three labels are printed.}}"), typed("/quit"),
         lambda pane: pane.settle(), keys("Enter")),
)  # fmt: skip

_COLOURED = (
    "idle-start",
    "idle-draft",
    "idle-draft-lines",
    "idle-completed",
    "idle-menu-slash",
    "busy-waiting",
    "busy-streaming",
    "busy-queued",
    "approval-bash",
    "approval-bash-second",
    "question-single",
    "error-server",
    "idle-quoted-codex-dialog",
    "overlay-model",
)
SCENES = (*_SCENES, *(coloured(scene) for scene in _SCENES if scene.name in _COLOURED))
