"""Gemini CLI: how it is started alone with a model server, and the scenes it is recorded in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agents.actions import (
    BASH,
    LONG_COMMAND,
    MINUTES,
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
    work,
    write,
)
from agents.bench import AgentPane, Launch, Stage
from agents.model import gemini as protocol
from agents.model.script import Kind
from agents.scenes import Attention, Scene

NAME = "gemini"
PROTOCOLS = (protocol,)


def prepare(stage: Stage) -> Launch:
    folder = stage.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(_settings(stage)), "utf-8")
    if "untrusted" not in stage.wishes:
        (folder / "trustedFolders.json").write_text(json.dumps({str(stage.project): "TRUST_FOLDER"}), "utf-8")
    env = {"GOOGLE_GEMINI_BASE_URL": stage.url}
    if "nokey" not in stage.wishes:
        env["GEMINI_API_KEY"] = "dummy"
    if not stage.wishes & {"few-colours", "no-colours"}:
        env["COLORTERM"] = "truecolor"
    if "no-colours" in stage.wishes:
        env["NO_COLOR"] = "1"
    return Launch((), env)


def _settings(stage: Stage) -> dict[str, Any]:
    wishes = stage.wishes
    if int(stage.version.split(".")[1]) < 3:
        flat: dict[str, Any] = {
            "disableAutoUpdate": True,
            "disableUpdateNag": True,
            "usageStatisticsEnabled": False,
            "folderTrustFeature": "untrusted" in wishes,
            "folderTrust": "untrusted" in wishes,
        }
        return flat if "nokey" in wishes else flat | {"selectedAuthType": "gemini-api-key"}
    off = {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "disableAutoUpdate": True,
        "disableUpdateNag": True,
    }
    settings: dict[str, Any] = {
        "general": off,
        "security": {"folderTrust": {"enabled": True}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        # Versions before it was for all have it behind this.
        "experimental": {"plan": True},
    }
    if "nokey" not in wishes:
        settings["security"]["auth"] = {"selectedType": "gemini-api-key"}
    if "impatient" in wishes:
        off["maxAttempts"] = 1
    if "alternate" in wishes:
        settings["ui"] = {"useAlternateBuffer": True}
    if "vim" in wishes:
        off["vimMode"] = True
    if "no-footer" in wishes:
        settings["ui"] = {"hideFooter": True}
    if theme := next((wish.partition("=")[2] for wish in wishes if wish.startswith("theme=")), ""):
        settings["ui"] = {"theme": theme.replace("_", " ")}
    if "tools" in wishes:
        tools = Path(__file__).with_name("parcel_tools.py")
        copied = stage.project / "tools.py"
        copied.write_text(tools.read_text("utf-8"), "utf-8")
        settings["mcpServers"] = {"parcels": {"command": sys.executable, "args": [str(copied)]}}
    return settings


def ready(pane: AgentPane) -> None:
    pane.wait_for("Type your message|INSERT mode|NORMAL mode", START)
    rests(pane)


DIALOG = shows(r"(?i)allow once")
ASKED = play(DIALOG, rests)
STREAMING = (say(STREAM), shows("word12"))
TOOL = (say(SLEEP), ASKED, press("Enter"), runs_sleep, work())
CHOICE = f"Ask me. do:ask{{{{{QUESTION}|Red|Blue}}}}"
# Not the prompt's own words.
CHOICES = shows(r"Blue(?!\s*\}\})")
PAGES = json.dumps(
    {
        "questions": [
            {
                "question": question,
                "header": header,
                "type": "choice",
                "multiSelect": False,
                "options": [{"label": label, "description": f"Take {label}"} for label in ("Red", "Blue")],
            }
            for question, header in ((QUESTION, "First"), ("Which parcel goes last?", "Last"))
        ]
    }
)
QUEUED = play(shows(r"(?s)then print them again.*Type your message"), work(0.5))
CANCELLED = shows(r"[Cc]ancelled|^[ │]*-  Shell")


def focus_dialog(name: str, command: str, what: str, pattern: str) -> Scene:
    """A dialog of Gemini's own, in place of the composer."""
    return overlay(name, f"Opened {what}.", send(command), shows(pattern))


SCENES = (
    startup(
        "trust",
        "waiting_approval",
        "Started it in a folder that it does not know.",
        "(?i)trust (?:parent )?folder",
        "untrusted",
        Attention("trust", "trust", None),
    ),
    startup(
        "login",
        "waiting_input",
        "Started it without an account and without a key.",
        "(?i)how would you like to authenticate",
        "nokey",
        Attention("login", "How would you like to authenticate", None),
    ),
    idle("start", "Started it.", rests),
    idle("start-256", "Started it in a terminal with 256 colours.", rests, wishes=frozenset({"few-colours"})),
    idle(
        "start-alternate",
        "Started it with the setting to use the alternate screen.",
        rests,
        wishes=frozenset({"alternate"}),
    ),
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
    idle("accept-edits", "Pressed Shift+Tab.", press("BTab"), shows("(?i)accept|auto"), rests),
    idle("yolo", "Pressed Ctrl+Y.", press("C-y"), shows("(?i)yolo"), rests),
    idle("plan-mode", "Sent /plan.", send("/plan"), shows("(?i)plan mode|^ ?plan|switched to plan"), work(1), rests),
    idle("help", "Sent /help, which is an entry of the history.", send("/help"), shows("(?i)shortcuts|basics"), rests),
    idle(
        "shell-output",
        "Ran a command in shell mode.",
        press("!"),
        write("echo three labels"),
        press("Enter"),
        shows("(?s)three labels.*three labels"),
        press("Escape"),
        rests,
    ),
    idle("debug", "Opened the console above the prompt with F12.", press("F12"), shows("(?i)debug console"), rests),
    idle("ctrl-c", "Pressed Ctrl+C once.", press("C-c", pause=0.2), shows("(?i)again to exit")),
    idle("unknown-command", "Sent a command that there is not.", send("/labels"), shows("(?i)unknown command"), rests),
    draft("draft", "Typed a sentence and did not send it.", write("print three labels")),
    draft(
        "draft-lines",
        "Typed three lines and did not send them.",
        write("print three labels\\"),
        press("Enter"),
        write("one for each parcel\\"),
        press("Enter"),
        write("and stop"),
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
        paste("Allow execution of: 'rm'?\n● 1. Allow once\n  2. No (esc)"),
        shows("Allow|Pasted"),
    ),
    draft(
        "draft-after-turn",
        "Typed a sentence after a turn.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        write("print another"),
    ),
    draft("draft-esc", "Typed a sentence and pressed Esc once.", write("print three labels"), press("Escape")),
    draft("menu-slash", "Typed a slash, the commands are listed.", write("/"), shows("about|help"), kind="menu"),
    draft("menu-file", "Typed an at sign, the files are listed.", write("look at @"), shows("label.py"), kind="menu"),
    draft("shell-mode", "Typed a command in shell mode.", press("!"), write("ls -l"), kind="menu"),
    idle(
        "shell-empty",
        "Pressed ! for shell mode.",
        press("!"),
        shows("(?i)shell mode|shell command"),
        rests,
        kind="menu",
    ),
    idle(
        "menu-shortcuts",
        "Typed a question mark, the shortcuts are listed.",
        press("?"),
        shows("(?i)shortcuts"),
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
    busy(
        "streaming-alternate",
        "The model is writing, on the alternate screen.",
        *STREAMING,
        wishes=frozenset({"alternate"}),
    ),
    busy("tool", "A command is running.", *TOOL),
    busy("tool-silent", "A command has been running for a while and has not written anything.", *TOOL, work(42)),
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
        "The model's server fails, Gemini tries again.",
        say("Hello. do:error{{500}}"),
        asked_times(2),
        work(0.5),
        proof=tries_again,
    ),
    busy(
        "retrying-429",
        "The model's server says that there were too many requests, Gemini tries again.",
        say("Hello. do:error{{429}}"),
        asked_times(2),
        work(0.5),
        proof=tries_again,
    ),
    busy(
        "quoted-dialog",
        "The model thinks, the answer before quoted a dialog.",
        turn("Show me. do:show{{gemini-dialog}}"),
        say(THINK),
        work(),
    ),
    busy(
        "todo",
        "It works with a list of steps.",
        say(f"Plan it. do:todo{{{{Read labels, Print labels, Check labels}}}} then:think{{{{{MINUTES}}}}}"),
        asked_times(2),
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
    approval(
        "bash-alternate",
        "touch label.txt",
        "The model wants to run a command, on the alternate screen.",
        say(BASH),
        DIALOG,
        wishes=frozenset({"alternate"}),
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
        "bash-lines",
        "mkdir",
        "The model wants to run a command of several lines.",
        lambda pane: pane.paste("Make labels. do:bash{{mkdir -p out\nfor n in 1 2 3; do\n  touch out/$n\ndone}}"),
        work(0.5),
        press("Enter"),
        DIALOG,
    ),
    approval(
        "bash-draft",
        "touch label.txt",
        "The dialog came while a sentence was typed.",
        say("Wait. do:bash{{sleep 5}} then:bash{{touch label.txt}}"),
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
        say('Print it. do:tool{{print_label|{"parcel": "A-1"}}}'),
        DIALOG,
        tool=Kind.TOOL,
        wishes=frozenset({"tools"}),
    ),
    Scene(
        "plan",
        "waiting_approval",
        "plan",
        "The model has made a plan in plan mode.",
        play(
            send("/plan"),
            work(1),
            say("Make a plan. do:plan{{1. Read the labels\n2. Print the labels}}"),
            shows("(?i)yes, |approve|accept"),
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
        write("the green one"),
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
    question(
        "text",
        "The model asks for a text.",
        say(f"Ask me. do:ask{{{{{QUESTION}}}}}"),
        shows(r"first\?"),
        work(1),
        options=(),
    ),
    *(
        draft(f"draft-{name}{after}", f"Typed {what}{why}, and did not send it.", write(text), wishes=frozenset(extra))
        for after, why, more in (
            ("", "", ()),
            ("-256", " in a terminal with 256 colours", ("few-colours",)),
            ("-none", " with no colours", ("no-colours",)),
        )
        for name, what, text, wish in (
            ("plain", "a sentence", "print three labels", ""),
            ("japanese", "a sentence in Japanese", "小包のラベルを三つ印刷してください", ""),
            ("vim", "a sentence in vim mode", "iprint three labels", "vim"),
            ("no-footer", "a sentence without a footer", "print three labels", "no-footer"),
            ("light", "a sentence with a light theme", "print three labels", "theme=GitHub_Light"),
            ("ansi", "a sentence with the terminal's own colours", "print three labels", "theme=ANSI"),
        )
        for extra in [{*more, *([wish] if wish else [])}]
    ),
    draft(
        "draft-lines-256",
        "Typed three lines in a terminal with 256 colours and did not send them.",
        write("print three labels\\"),
        press("Enter"),
        write("one for each parcel\\"),
        press("Enter"),
        write("and stop"),
        wishes=frozenset({"few-colours"}),
    ),
    draft(
        "draft-denied-256",
        "Denied a command and typed why, in a terminal with 256 colours.",
        say(BASH),
        ASKED,
        press("Escape"),
        CANCELLED,
        write("Denied: use the other folder"),
        wishes=frozenset({"few-colours"}),
    ),
    *(
        idle(f"start-{name}", f"Started it with {what}.", rests, wishes=frozenset({wish}))
        for name, what, wish in (
            ("vim", "vim mode", "vim"),
            ("no-footer", "no footer", "no-footer"),
            ("light", "a light theme", "theme=GitHub_Light"),
            ("no-colours", "no colours", "no-colours"),
        )
    ),
    busy(
        "compress",
        "The history is being compressed.",
        turn("Tell me all. do:show{{long}} summary:think{{600}}"),
        turn("And again. do:show{{long}}"),
        turn("And again. do:show{{long}}"),
        send("/compress"),
        lambda pane: pane.wait_until(lambda: pane.server.busy, "the request for a summary", 20),
        work(2),
    ),
    *(
        question(
            f"pages{after}",
            "The model asks two questions on pages of their own.",
            say(f"Ask me. do:tool{{{{ask_user|{PAGES}}}}}"),
            shows("Blue"),
            *keys,
            options=(),
            proof=unanswered(Kind.TOOL),
            attention=Attention("question", "", ()),
        )
        for after, keys in (
            ("", ()),
            ("-second", (rests, press("Enter"))),
            ("-review", (rests, press("Enter"), work(0.5), press("Enter"))),
        )
    ),
    stopped("denied", "A command was denied with Esc.", say(BASH), ASKED, press("Escape"), CANCELLED, proof=denied),
    stopped(
        "denied-last",
        "A command was denied with the last option.",
        say(BASH),
        ASKED,
        press("Up", "Enter"),
        CANCELLED,
        proof=denied,
    ),
    stopped(
        "streaming",
        "Pressed Esc while the model was writing.",
        *STREAMING,
        press("Escape"),
        CANCELLED,
        proof=broken_off,
    ),
    stopped(
        "thinking",
        "Pressed Esc while the model was thinking.",
        say(THINK),
        work(1),
        press("Escape"),
        CANCELLED,
        proof=broken_off,
    ),
    stopped(
        "tool",
        "Pressed Esc while a command was running.",
        *TOOL,
        press("Escape"),
        lambda pane: pane.wait_until(lambda: not pane.runs("sleep"), "end of the tool"),
        work(1),
    ),
    stopped(
        "question",
        "A question was left with Esc.",
        say(CHOICE),
        CHOICES,
        rests,
        press("Escape"),
        CANCELLED,
        proof=unanswered(Kind.ASK),
    ),
    error("400", "The model's server found the request bad.", say("Hello. do:error{{400}}"), shows("API Error")),
    error("401", "The model's server did not know the key.", say("Hello. do:error{{401}}"), shows("API Error")),
    error("403", "The model's server did not allow it.", say("Hello. do:error{{403}}"), shows("API Error")),
    error(
        "429",
        "There were too many requests, and no more attempts.",
        say("Hello. do:error{{429}}"),
        shows("API Error", 100),
        wishes=frozenset({"impatient"}),
    ),
    error(
        "500",
        "The model's server failed, and no more attempts.",
        say("Hello. do:error{{500}}"),
        shows("API Error", 100),
        wishes=frozenset({"impatient"}),
    ),
    quoted("gemini-dialog", "gemini-dialog", "Gemini's dialog in a code block"),
    quoted("claude-dialog", "claude-dialog", "Claude's dialog in a code block"),
    quoted("copilot-dialog", "copilot-dialog", "Copilot's dialog in a code block"),
    quoted("busy", "busy", "busy lines of several agents"),
    quoted("yes-no", "yes-no", "a question and two numbered answers"),
    quoted("steps", "steps", "a numbered list"),
    quoted("errors", "errors", "a compiler's errors and a traceback"),
    quoted("prompt-sign", "prompt-sign", "lines that start with prompt signs"),
    quoted("question", "question", "a question at the end"),
    focus_dialog("model", "/model", "the list of models", "(?i)select model"),
    focus_dialog("theme", "/theme", "the list of themes", "(?i)select theme"),
    focus_dialog("settings", "/settings", "the settings", "(?i)^.{0,4}> ?settings|settings"),
    focus_dialog("auth", "/auth", "the ways to log in", "(?i)how would you like to authenticate"),
    idle(
        "command-usage",
        "Sent a command that wants another word, and was told so.",
        send("/permissions"),
        shows("(?i)subcommand"),
        rests,
    ),
    idle(
        "command-usage-error",
        "The same after a turn that failed.",
        say("Hello. do:error{{400}}"),
        shows("API Error"),
        rests,
        send("/permissions"),
        shows("(?i)subcommand"),
        rests,
    ),
    focus_dialog("editor", "/editor", "the list of editors", "(?i)vscodium|preferred editor"),
    focus_dialog("resume", "/resume", "the list of sessions", "(?i)sessions|no auto-saved"),
    overlay(
        "history-search",
        "Opened the search in the history.",
        turn("Hello. do:say{{Three labels are printed.}}"),
        press("C-r"),
        shows(r"\(r:\)"),
        composer="none",
    ),
    dead("dialog", "Killed it while a dialog was open.", say(BASH), ASKED),
    dead("streaming", "Killed it while the model was writing.", *STREAMING),
    dead("idle", "Killed it after a turn.", turn("Hello. do:say{{Three labels are printed.}}")),
)
