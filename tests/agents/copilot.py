"""Copilot CLI: how it is started alone with a model server, and the scenes it is recorded in."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from agents.actions import (
    BASH,
    LONG_COMMAND,
    MINUTES,
    PATIENCE,
    QUESTION,
    SLEEP,
    START,
    STREAM,
    THINK,
    approval,
    asked_times,
    broken_off,
    busy,
    dead,
    denied,
    draft,
    error,
    idle,
    overlay,
    paste,
    play,
    press,
    question,
    quoted,
    rests,
    runs_sleep,
    said,
    say,
    send,
    shows,
    startup,
    stopped,
    tries_again,
    turn,
    unanswered,
    unasked,
    work,
    write,
)
from agents.bench import AgentPane, Launch, Stage
from agents.model import chat
from agents.model.script import Kind
from agents.scenes import Attention, Scene

NAME = "copilot"
PROTOCOLS = (chat,)


def prepare(stage: Stage) -> Launch:
    wishes = stage.wishes
    folder = stage.home / ".copilot"
    folder.mkdir()
    config: dict[str, Any] = {"banner": "never"}
    if "untrusted" not in wishes:
        # The second is what older versions read.
        config |= {"trustedFolders": [str(stage.project)], "trusted_folders": [str(stage.project)]}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if "tools" in wishes:
        copied = stage.project / "tools.py"
        copied.write_text(Path(__file__).with_name("parcel_tools.py").read_text("utf-8"), "utf-8")
        server = {"type": "local", "command": sys.executable, "args": [str(copied)], "tools": ["*"]}
        (folder / "mcp-config.json").write_text(json.dumps({"mcpServers": {"parcels": server}}), "utf-8")
    # A new home would have it unpack itself, for seconds, with every start.
    unpacked = stage.executable.parents[2] / "unpacked"
    unpacked.mkdir(exist_ok=True)
    (stage.home / ".cache").mkdir()
    (stage.home / ".cache" / "copilot").symlink_to(unpacked)
    env = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    if "login" not in wishes:
        env |= {
            "COPILOT_PROVIDER_BASE_URL": f"{stage.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "gpt-4.1",
        }
    else:
        del env["COPILOT_OFFLINE"]
    if "few-colours" not in wishes:
        env["COLORTERM"] = "truecolor"
    return Launch((), env)


def ready(pane: AgentPane) -> None:
    pane.wait_for(r"^[│ ]*[❯>]", START)
    # What it finds in the folder is listed late, and some versions take no prompt before that.
    rests(pane)


def interrupt(pane: AgentPane) -> None:
    """Esc, and once more where it asks for that."""
    pane.keys("Escape")
    with contextlib.suppress(AssertionError):
        pane.wait_for("(?i)again to", 3.0)
        pane.keys("Escape")


DIALOG = shows(r"1\. Yes")
ASKED = play(DIALOG, rests)
STREAMING = (say(STREAM), shows("word12"))


def approve_if_asked(pane: AgentPane) -> None:
    """Some versions ask before they call a tool that only reads."""
    with contextlib.suppress(AssertionError):
        pane.wait_for(r"1\. Yes", 3.0)
        rests(pane)
        pane.keys("Enter")


APPROVED = approve_if_asked
TOOL = (say(SLEEP), ASKED, press("Enter"), runs_sleep, work())
CHOICE = f"Ask me. do:ask{{{{{QUESTION}|Red|Blue}}}}"
# Not the prompt's own words.
CHOICES = shows(r"Blue(?!\s*\}\})")
QUEUED = play(shows(r"\[(?:pending|queued)"), work(0.5))
CANCELLED = shows("(?i)operation (?:cancelled|aborted)|(?:cancelled|aborted) by user|rejected this tool")


SCENES = (
    startup(
        "trust",
        "waiting_approval",
        "Started it in a folder that it does not know.",
        "(?i)trust the files|trust",
        "untrusted",
        Attention("trust", "trust", None),
    ),
    idle(
        "no-account",
        "Started it without an account; it says to use /login.",
        shows("/login"),
        rests,
        kind="startup",
        wishes=frozenset({"login"}),
    ),
    Scene(
        "startup-login",
        "waiting_input",
        "startup",
        "Started it without an account and sent /login.",
        play(shows("/login"), send("/login"), shows("(?i)what account|github.com"), rests),
        proof=unasked,
        attention=Attention("login", "account", None),
        wishes=frozenset({"login"}),
    ),
    idle("start", "Started it.", rests),
    idle("start-256", "Started it in a terminal with 256 colours.", rests, wishes=frozenset({"few-colours"})),
    idle("completed", "A turn is over.", turn("Hello. do:say{{Three labels are printed.}}"), proof=said),
    idle(
        "completed-tool",
        "A command was approved and the turn is over.",
        say(BASH),
        ASKED,
        press("Enter"),
        shows("All done"),
        rests,
        proof=said,
    ),
    idle("completed-long", "A turn with a long answer is over.", turn("Tell me all. do:show{{long}}"), proof=said),
    idle("completed-wide", "A turn with wide characters is over.", turn("Tell me. do:show{{wide}}"), proof=said),
    idle("plan-mode", "Pressed Shift+Tab for plan mode.", press("BTab"), shows("(?i)plan"), rests),
    idle("autopilot", "Pressed Shift+Tab twice.", press("BTab", "BTab"), shows("(?i)autopilot"), rests),
    idle(
        "shell-output",
        "Ran a command in shell mode.",
        press("!"),
        write("echo three labels"),
        press("Enter"),
        work(2),
        rests,
    ),
    idle("ctrl-c", "Pressed Ctrl+C once.", press("C-c", pause=0.2), shows("(?i)again to exit")),
    idle("unknown-command", "Sent a command that there is not.", send("/labels"), shows("(?i)unknown"), rests),
    draft("draft", "Typed a sentence and did not send it.", write("print three labels")),
    draft(
        "draft-lines",
        "Pasted three lines and did not send them.",
        paste("print three labels\none for each parcel\nand stop"),
        shows("and stop|Paste"),
    ),
    draft(
        "draft-long",
        "Typed a sentence longer than the line and did not send it.",
        write("print three labels for the parcels on the second shelf, one for each, and put them on the belt " * 2),
    ),
    draft("draft-number", "Typed 1 and did not send it.", write("1")),
    draft(
        "draft-dialog",
        "Pasted the lines of a dialog and did not send them.",
        paste("Do you want to run this command?\n❯ 1. Yes\n  2. No (Esc)"),
        shows("Yes|Paste"),
    ),
    draft(
        "draft-after-turn",
        "Typed a sentence after a turn.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        write("print another"),
    ),
    draft("menu-slash", "Typed a slash, the commands are listed.", write("/"), shows("/[a-z]+"), kind="menu"),
    draft("menu-file", "Typed an at sign, the files are listed.", write("look at @"), shows("label.py"), kind="menu"),
    draft("shell-mode", "Typed a command in shell mode.", press("!"), write("ls -l"), kind="menu"),
    idle("shell-empty", "Pressed ! for shell mode.", press("!"), rests, kind="menu"),
    idle(
        "menu-shortcuts",
        "Typed a question mark, the shortcuts are listed.",
        press("?"),
        shows("(?i)shortcuts|ctrl"),
        rests,
        kind="menu",
    ),
    busy("thinking", "The model has not said anything yet.", say(THINK), work()),
    busy(
        "thought",
        "The model thinks and says about what.",
        say(f"Think. do:think{{{{{MINUTES}|Weighing the parcels}}}}"),
        work(),
    ),
    busy("streaming", "The model is writing.", *STREAMING),
    busy(
        "streaming-long", "The model is writing, after a long answer.", turn("Tell me all. do:show{{long}}"), *STREAMING
    ),
    busy(
        "streaming-256",
        "The model is writing, in a terminal with 256 colours.",
        *STREAMING,
        wishes=frozenset({"few-colours"}),
    ),
    busy("streaming-esc", "Pressed Esc once while the model was writing.", *STREAMING, press("Escape", pause=0.1)),
    busy("tool", "A command is running.", *TOOL),
    busy(
        "tool-result",
        "A command was approved and the model thinks about its result.",
        say(f"{BASH} then:think{{{{{MINUTES}}}}}"),
        ASKED,
        press("Enter"),
        asked_times(2),
        work(),
    ),
    busy(
        "queued",
        "Another prompt was sent while the model writes.",
        *STREAMING,
        send("then print them again"),
        QUEUED,
        kind="queued",
    ),
    busy(
        "queued-tool",
        "Another prompt was sent while a command runs.",
        *TOOL,
        send("then print them again"),
        QUEUED,
        kind="queued",
    ),
    busy(
        "draft",
        "A sentence was typed while the model writes.",
        *STREAMING,
        write("then print them again"),
        kind="draft",
        composer="draft",
    ),
    busy(
        "draft-thinking",
        "A sentence was typed while the model thinks.",
        say(THINK),
        work(1),
        write("then print them again"),
        kind="draft",
        composer="draft",
    ),
    busy(
        "shell",
        "A command of the user's is running in shell mode.",
        press("!"),
        write(f"sleep {MINUTES}"),
        press("Enter"),
        runs_sleep,
        work(),
    ),
    busy(
        "retrying",
        "The model's server fails, Copilot tries again.",
        say("Hello. do:error{{500}}"),
        asked_times(2),
        proof=tries_again,
    ),
    busy(
        "subagent",
        "A subagent thinks.",
        say(f"Let another look. do:sub{{{{do:think(({MINUTES}))}}}}"),
        asked_times(2),
        work(),
    ),
    busy(
        "quoted-dialog",
        "The model thinks, the answer before quoted a dialog.",
        turn("Show me. do:show{{copilot-dialog}}"),
        say(THINK),
        work(),
    ),
    approval("bash", "touch label.txt", "The model wants to run a command.", say(BASH), DIALOG),
    approval(
        "bash-256",
        "touch label.txt",
        "The model wants to run a command; 256 colours.",
        say(BASH),
        DIALOG,
        wishes=frozenset({"few-colours"}),
    ),
    approval("bash-second", "touch label.txt", "The second option is marked.", say(BASH), ASKED, press("Down")),
    approval("bash-last", "touch label.txt", "The last option is marked.", say(BASH), ASKED, press("Up")),
    approval(
        "bash-long",
        "labels/parcel-001.txt",
        "The model wants to run a long command.",
        say(f"Make labels. do:bash{{{{{LONG_COMMAND}}}}}"),
        DIALOG,
    ),
    approval(
        "bash-draft",
        "touch label.txt",
        "The dialog came while a sentence was typed.",
        say("Wait. do:bash{{sleep 6}} then:bash{{touch label.txt}}"),
        ASKED,
        press("Enter"),
        runs_sleep,
        write("then print them again"),
        asked_times(2),
        DIALOG,
        proof=lambda pane: unanswered(Kind.BASH)(pane) and len(pane.server.steps) == 2,
    ),
    approval(
        "bash-quoted-busy",
        "touch label.txt",
        "The model wants to run a command, the answer before quoted busy lines.",
        turn("Show me. do:show{{busy}}"),
        say(BASH),
        DIALOG,
    ),
    approval(
        "write",
        "labels.txt",
        "The model wants to make a file.",
        say("Make it. do:edit{{labels.txt}}"),
        DIALOG,
        tool=Kind.EDIT,
    ),
    approval(
        "edit",
        "label.py",
        "The model wants to change a file.",
        say("Change it. do:change{{label.py}}"),
        DIALOG,
        tool=Kind.CHANGE,
    ),
    approval(
        "fetch",
        "labels.invalid",
        "The model wants to fetch a page.",
        say("Look it up. do:fetch{{https://labels.invalid/list}}"),
        DIALOG,
        tool=Kind.FETCH,
    ),
    approval(
        "mcp",
        "print_label",
        "The model wants to use a tool of a server.",
        work(2),
        say('Print it. do:tool{{print_label|{"parcel": "A-1"}}}'),
        DIALOG,
        tool=Kind.TOOL,
        wishes=frozenset({"tools"}),
    ),
    approval(
        "path",
        "/etc/hostname",
        "The model wants to read a file outside of the folder.",
        say("Read it. do:bash{{cat /etc/hostname}}"),
        DIALOG,
    ),
    Scene(
        "plan",
        "waiting_approval",
        "plan",
        "The model has made a plan in plan mode.",
        play(
            press("BTab"),
            shows("(?i)plan"),
            say("Make a plan. do:plan{{Read the labels and print them}}"),
            shows(r"(?i)1\. |accept|approve"),
            rests,
        ),
        attention=Attention("plan", "", None),
        proof=unanswered(Kind.PLAN),
    ),
    question("single", "The model asks a question.", say(CHOICE), CHOICES, options=("Red", "Blue")),
    question(
        "second", "The second answer is marked.", say(CHOICE), CHOICES, rests, press("Down"), options=("Red", "Blue")
    ),
    question(
        "typed",
        "An answer of one's own was typed.",
        say(CHOICE),
        CHOICES,
        rests,
        press("Down", "Down"),
        lambda pane: pane.type("the green one"),
        work(1),
        options=("Red", "Blue"),
    ),
    question(
        "many",
        "The model asks a question with several answers.",
        say(CHOICE.replace("do:ask", "do:askmany")),
        CHOICES,
        options=("Red", "Blue"),
        proof=unanswered(Kind.ASK_MANY),
    ),
    question("text", "The model asks for a text.", say(f"Ask me. do:ask{{{{{QUESTION}}}}}"), work(2), options=()),
    question(
        "other",
        "The last answer is marked, which takes words of one's own.",
        say(CHOICE),
        CHOICES,
        rests,
        press("Down", "Down"),
        options=(),
    ),
    question(
        "other-typed",
        "Words of one's own were typed.",
        say(CHOICE),
        CHOICES,
        rests,
        press("Down", "Down"),
        lambda pane: pane.type("the green one"),
        work(1),
        options=(),
    ),
    question(
        "elicitation",
        "An MCP server asks for two values.",
        work(2),
        say("Weigh it. do:tool{{weigh_parcel|{} }}"),
        APPROVED,
        shows("(?i)needs information"),
        options=(),
        proof=unanswered(Kind.TOOL),
        wishes=frozenset({"tools"}),
        attention=Attention("question", "", ()),
    ),
    question(
        "elicitation-second",
        "An MCP server asks for two values, the first is given.",
        work(2),
        say("Weigh it. do:tool{{weigh_parcel|{} }}"),
        APPROVED,
        shows("(?i)needs information"),
        rests,
        lambda pane: pane.type("12"),
        work(0.5),
        press("Enter"),
        options=(),
        proof=unanswered(Kind.TOOL),
        wishes=frozenset({"tools"}),
        attention=Attention("question", "", ()),
    ),
    question(
        "url",
        "An MCP server asks to open a page.",
        work(2),
        say("Pay it. do:tool{{pay_postage|{} }}"),
        APPROVED,
        shows("(?i)wants you to visit"),
        options=(),
        proof=unanswered(Kind.TOOL),
        wishes=frozenset({"tools"}),
        attention=Attention("question", "", ()),
    ),
    busy(
        "compact",
        "The history is being compacted.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        send(f"/compact Be brief. do:slow{{{{{MINUTES}}}}}"),
        asked_times(2),
        work(2),
    ),
    overlay("permissions", "Opened the choice of permissions.", send("/permissions"), shows("(?i)permission mode")),
    overlay(
        "model-error",
        "Opened the list of models after an error.",
        say("Hello. do:error{{400}}"),
        work(3),
        send("/model"),
        shows("(?i)search models"),
    ),
    overlay(
        "permissions-error",
        "Opened the choice of permissions after an error.",
        say("Hello. do:error{{400}}"),
        work(3),
        send("/permissions"),
        shows("(?i)permission mode"),
    ),
    stopped("denied", "A command was denied with Esc.", say(BASH), ASKED, press("Escape"), CANCELLED, proof=denied),
    stopped(
        "streaming",
        "Pressed Esc twice while the model was writing.",
        *STREAMING,
        interrupt,
        CANCELLED,
        proof=broken_off,
    ),
    stopped(
        "thinking",
        "Pressed Esc twice while the model was thinking.",
        say(THINK),
        work(1),
        interrupt,
        work(1),
        proof=broken_off,
    ),
    stopped(
        "tool",
        "Pressed Esc twice while a command was running.",
        *TOOL,
        interrupt,
        lambda pane: pane.wait_until(lambda: not pane.runs("sleep"), "end of the tool"),
        work(1),
    ),
    stopped(
        "question", "A question was left with Esc.", say(CHOICE), CHOICES, rests, press("Escape"), work(1), proof=said
    ),
    error(
        "400",
        "The model's server found the request bad.",
        say("Hello. do:error{{400}}"),
        shows(r"\b400\b.*\n"),
        work(2),
    ),
    error("401", "The model's server did not know the key.", say("Hello. do:error{{401}}"), work(3)),
    error(
        "429",
        "There were too many requests, and no more attempts.",
        say("Hello. do:error{{429}}"),
        shows(r"^ *✗ ", 4 * PATIENCE),  # while it tries again, it is at work
    ),
    error(
        "500",
        "The model's server failed, and no more attempts.",
        say("Hello. do:error{{500}}"),
        shows(r"^ *✗ ", 4 * PATIENCE),  # while it tries again, it is at work
    ),
    error(
        "after-tool",
        "The model's server failed after a command.",
        say(f"{BASH} then:error{{{{400}}}}"),
        ASKED,
        press("Enter"),
        work(3),
    ),
    quoted("copilot-dialog", "copilot-dialog", "Copilot's dialog in a code block"),
    quoted("claude-dialog", "claude-dialog", "Claude's dialog in a code block"),
    quoted("gemini-dialog", "gemini-dialog", "Gemini's dialog in a code block"),
    quoted("busy", "busy", "busy lines of several agents"),
    quoted("yes-no", "yes-no", "a question and two numbered answers"),
    quoted("steps", "steps", "a numbered list"),
    quoted("errors", "errors", "a compiler's errors and a traceback"),
    quoted("prompt-sign", "prompt-sign", "lines that start with prompt signs"),
    quoted("question", "question", "a question at the end"),
    overlay("help", "Opened /help.", send("/help"), shows("(?i)global|shortcuts"), work(1)),
    overlay("model", "Opened the list of models.", send("/model"), shows("(?i)select (?:a )?model|choose")),
    overlay("theme", "Opened the list of themes.", send("/theme"), shows("(?i)select|theme picker|preview")),
    overlay("settings", "Opened the settings.", send("/settings"), shows("(?i)esc")),
    overlay("resume", "Opened the list of sessions.", send("/resume"), shows("(?i)resume|sessions"), work(1)),
    overlay(
        "history-search",
        "Opened the search in the history.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        press("C-r"),
        work(1),
    ),
    overlay(
        "rewind",
        "Pressed Esc twice at the prompt.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        press("Escape", "Escape", pause=0.25),
        work(1),
    ),
    overlay(
        "expanded",
        "Pressed Ctrl+O after a command.",
        say(BASH),
        ASKED,
        press("Enter"),
        shows("All done"),
        rests,
        press("C-o"),
        work(1),
    ),
    dead("dialog", "Killed it while a dialog was open.", say(BASH), ASKED),
    dead("streaming", "Killed it while the model was writing.", *STREAMING),
    dead("idle", "Killed it after a turn.", turn("Hello. do:say{{Three labels are printed.}}")),
)
