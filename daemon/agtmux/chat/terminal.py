"""A conversation in a terminal: a client of a session's socket like any other, with a person behind it.

Plain lines, no screen of its own: it scrolls, wraps and is copied like everything else in the terminal.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import termios
from collections import deque
from typing import Any, TextIO

from agtmux.chat.protocol import Told, fitted, tool_line
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import has_unreadable
from agtmux.domain.legible import legible
from agtmux.probe.owners import connected

PROMPT = "› "
DETACH = "/detach"
_YES = ("y", "yes")
_NO = ("n", "no")
# Says yes to what is not shown whole.
_PARTIAL = ("partial",)
_COLOURS = {"dim": "2", "bold": "1", "red": "31", "yellow": "33"}


class Terminal:
    """What is told becomes text, and lines that are typed become what is said. No I/O but on `output`."""

    def __init__(self, output: TextIO, has_colours: bool, *, history: bool = False) -> None:
        self._output = output
        self._history = history
        # What is told again up to here is past; only what is still open is asked.
        self._past = 0
        self._awaits_past = False
        self._still_open: set[str] = set()
        self._has_colours = has_colours
        self._is_at_start = True
        self._own: deque[str] = deque()
        self._requests: dict[str, Told] = {}
        self._answers: list[str] = []
        self._answered: set[str] = set()
        self.is_running = False
        self.ended: str | None = None
        self.session_id = ""
        self.seq = 0

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way, or one that was asked for has yet to begin."""
        return self.is_running or bool(self._own)

    @property
    def asked(self) -> Told | None:
        return next(iter(self._requests.values()), None)

    @property
    def question(self) -> tuple[str, int] | None:
        """Which question is the last on the screen: the request's id, and which one of several."""
        asked = self.asked
        return None if asked is None else (asked["request_id"], len(self._answers))

    # What the session tells.

    def take(self, told: Told) -> None:
        seq = told.get("seq")
        if seq is not None:
            # What was told before the past begins comes once more behind it.
            self._awaits_past &= seq > self._past
            if seq <= self.seq or self._awaits_past:
                return
            self.seq = seq
        handle = getattr(self, f"_on_{told['type']}", None)
        if handle is not None:
            handle(told)
        if seq is not None and seq == self._past and not self.is_running:
            self.prompt()
        self._output.flush()

    def _on_init(self, told: Told) -> None:
        self.session_id = told["session_id"]
        self.is_running = self.is_running or told["state"] == "running" or bool(told["pending"])
        version = told.get("agent_version")
        what = f"{told['agent_type']} {version or ''}".strip() if "agent_type" in told else "starting"
        self._line(f"{what} · {_home(told['cwd'])} · session {self.session_id[:8]}", "dim")
        self._line("Ctrl-C breaks off a turn, Ctrl-D leaves", "dim")
        if self._history and told["last_seq"]:
            self._past = told["last_seq"]
            self._awaits_past = True
            self._still_open = {each["request_id"] for each in told["pending"]}
            return
        self.seq = told["last_seq"]
        for each in told["pending"]:
            self._ask(each)
        if not told["pending"]:
            self.prompt()

    def _on_ready(self, told: Told) -> None:
        if left_out := told.get("mcp_left_out"):
            names = ", ".join(left_out)
            self._line(f"left out, as nobody has agreed to them in the agent's own terminal: {names}", "yellow")
            self.prompt()

    def _on_turn(self, told: Told) -> None:
        self.is_running = True
        text = told.get("text")
        if text is not None and self._own and self._own[0] == text:
            self._own.popleft()
            self._is_at_start = True
        elif text is not None:
            self._line(f"{PROMPT}{text}", "bold")

    def _on_queued(self, told: Told) -> None:
        self._line("(it comes next)", "dim")

    def _on_forgotten(self, told: Told) -> None:
        if told["text"] in self._own:
            self._own.remove(told["text"])
        self._line(self._cut(f"(not said: {told['text']})"), "dim")

    def _on_text_delta(self, told: Told) -> None:
        self._write(legible(told["text"], keep="\n\t"))

    def _on_tool_use(self, told: Told) -> None:
        if told["tool"] != "AskUserQuestion":
            self._line(self._cut(f"· {tool_line(told['tool'], told['input'])}"), "dim")

    def _on_tool_result(self, told: Told) -> None:
        first = next((line for line in told["output"].splitlines() if line.strip()), "")
        self._line(self._cut(f"  {first}"), "red" if told.get("is_error") else "dim")

    def _on_approval_request(self, told: Told) -> None:
        self._ask(told)

    def _on_question(self, told: Told) -> None:
        self._ask(told)

    def _on_answered(self, told: Told) -> None:
        request_id = told["request_id"]
        was_asked = self._requests.pop(request_id, None)
        if request_id in self._answered:
            self._answered.discard(request_id)
            return
        if was_asked is not None:
            self._answers = []
            words = {"timed_out": "nobody answered in time: denied", "gone": "no longer asked"}
            self._line(f"({words.get(told['decision'], told['decision'] + ' elsewhere')})", "dim")
            if self.asked is not None:
                self._ask_now()

    def _on_done(self, told: Told) -> None:
        self.is_running = False
        usage = told.get("usage") or {}
        parts = [f"{usage.get('input_tokens', 0)} in, {usage.get('output_tokens', 0)} out"]
        if told.get("duration_ms"):
            parts.append(f"{told['duration_ms'] / 1000:.1f}s")
        if told["outcome"] != "completed":
            parts.insert(0, "broken off" if told["outcome"] == "aborted" else "failed")
        self._line(" · ".join(parts), "dim")
        if told["seq"] > self._past:
            self.prompt()

    def _on_error(self, told: Told) -> None:
        if "seq" not in told and self._own:
            # What was said last was not taken.
            self._own.pop()
        self._line(f"{told['code']}: {told['message']}", "red")
        if self.asked is not None:
            self._ask_now()
        elif not self.is_running:
            self.prompt()

    def _on_gap(self, told: Told) -> None:
        self._awaits_past = False
        self._line(f"({told['to'] - told['from'] + 1} events are no longer kept)", "yellow")

    def _on_end(self, told: Told) -> None:
        self.ended = str(told.get("reason", ""))

    # What is typed.

    def typed(self, line: str) -> Told | None:
        """What it says to the session; None if nothing yet."""
        self._is_at_start = True
        asked = self.asked
        if asked is None:
            if not line.strip():
                self.prompt()
                return None
            # As it will be told.
            self._own.append(fitted(line)[0])
            return {"type": "message", "text": line}
        if asked["type"] == "question":
            return self._answer(asked, line.strip())
        word, _, reason = line.strip().partition(" ")
        is_yes = word.lower() in (_YES if _is_whole(asked) else _PARTIAL) and not reason
        if not is_yes and word.lower() not in _NO:
            # A sentence is no approval, whatever it begins with.
            self._ask_now()
            return None
        self._settle(asked)
        if is_yes:
            return {"type": "approve", "request_id": asked["request_id"]}
        return {"type": "deny", "request_id": asked["request_id"], "reason": reason.strip()}

    def deny_asked(self, reason: str) -> Told | None:
        """Where nobody is left to be asked."""
        asked = self.asked
        if asked is None:
            return None
        self._settle(asked)
        return {"type": "deny", "request_id": asked["request_id"], "reason": reason}

    def _settle(self, asked: Told) -> None:
        self._answered.add(asked["request_id"])
        self._requests.pop(asked["request_id"], None)
        self._answers = []
        if self.asked is not None:
            self._ask_now()

    def _answer(self, asked: Told, line: str) -> Told | None:
        questions = asked["questions"]
        options = questions[len(self._answers)].get("options") or []
        numbers = [int(word) for word in line.replace(",", " ").split() if word.isdecimal()]
        is_choice = bool(numbers) and line.replace(",", " ").split() == list(map(str, numbers))
        if is_choice and all(1 <= number <= len(options) for number in numbers):
            line = ", ".join(str(options[number - 1].get("label", "")) for number in numbers)
        if line:
            self._answers.append(line)
        if len(self._answers) < len(questions):
            self._ask_now()
            return None
        answers = self._answers
        self._settle(asked)
        return {"type": "answer", "request_id": asked["request_id"], "answers": answers}

    def _ask(self, told: Told) -> None:
        if told.get("seq", self._past + 1) <= self._past and told["request_id"] not in self._still_open:
            return
        self._requests[told["request_id"]] = told
        if len(self._requests) == 1:
            self._ask_now()

    def _ask_now(self) -> None:
        asked = self.asked
        if asked is None:
            return
        if asked["type"] == "question":
            question = asked["questions"][len(self._answers)]
            self._line(f"? {question.get('question', '')}", "bold")
            for number, option in enumerate(question.get("options") or [], 1):
                self._line(f"  {number}. {option.get('label', '')}")
            self._write("a number, or your own words: ")
            self._output.flush()
            return
        self._line(f"! may it use {asked['tool']}?", "yellow")
        for line in _input_lines(asked["input"]):
            self._line(f"  {line}")
        if not _is_whole(asked):
            self._line("this is not all of it, or has characters that cannot be shown", "yellow")
        self._write("y, or n and why: " if _is_whole(asked) else "partial to approve it all the same, or n and why: ")
        self._output.flush()

    # Drawing.

    def prompt(self) -> None:
        if not self._is_at_start:
            self._write("\n")
        self._output.write(PROMPT)
        self._is_at_start = False
        self._output.flush()

    def _line(self, text: str, colour: str = "") -> None:
        if not self._is_at_start:
            self._output.write("\n")
        text = legible(text, keep="\n\t")
        if colour and self._has_colours:
            text = f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
        self._output.write(f"{text}\n")
        self._is_at_start = True

    def _write(self, text: str) -> None:
        if text:
            self._output.write(text)
            self._is_at_start = text.endswith("\n")

    def _cut(self, text: str) -> str:
        width = max(20, _width())
        return text if len(text) < width else text[: width - 2] + "…"


def _input_lines(given: dict[str, Any]) -> list[str]:
    """All of it: a yes is for all of it. The lines of a value stand further right than names."""
    if set(given) <= {"command", "description", "timeout"} and "command" in given:
        return str(given["command"]).splitlines()
    found: list[str] = []
    for name, value in sorted(given.items(), key=lambda each: isinstance(each[1], dict | list)):
        lines = (json.dumps(value) if isinstance(value, dict | list) else str(value)).splitlines()
        found += [f"{name}: {''.join(lines)}"] if len(lines) < 2 else [f"{name}:", *(f"    {line}" for line in lines)]
    return found


def _is_whole(asked: Told) -> bool:
    return not asked.get("is_cut") and not any(has_unreadable(line) for line in _input_lines(asked["input"]))


def _width() -> int:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 80


def _home(path: str) -> str:
    home = os.environ.get("HOME", "")
    return f"~{path[len(home) :]}" if home and (path == home or path.startswith(f"{home}/")) else path


def has_colours(output: TextIO) -> bool:
    return output.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Left(Exception):
    """The person has left; `is_detached` asks to let the session live."""

    def __init__(self, is_detached: bool) -> None:
        super().__init__()
        self.is_detached = is_detached


def talk(path: str, *, history: bool = False) -> str:
    """Until the session ends, for the reason that is returned; raises Left when the person does."""
    try:
        connection = connected(os.fsencode(path), None)
    except OSError as error:
        raise AgtmuxError(ErrorCode.NOT_FOUND, f"no session answers on {path}: {error.strerror}") from None
    with socket.socket(fileno=connection.detach()) as session:
        return _Talk(session, Terminal(sys.stdout, has_colours(sys.stdout), history=history)).run(history)


class _Talk:
    def __init__(self, session: socket.socket, terminal: Terminal) -> None:
        self._session = session
        self._terminal = terminal
        self._heard = b""
        self._typed = b""
        self._at_eof = False
        self._is_tty = os.isatty(0)

    def run(self, history: bool) -> str:
        # A signal in the middle of a write must not leave half a line behind, so it only wakes the loop.
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        before = signal.signal(signal.SIGINT, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        try:
            if history:
                self._say({"type": "replay", "after": 0})
            while (reason := self._step(woken)) is None:
                pass
            return reason
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, before)
            os.close(woken)
            os.close(wakes)

    def _step(self, woken: int) -> str | None:
        terminal = self._terminal
        sources = [self._session, woken, *([] if self._at_eof else [sys.stdin])]
        ready, _, _ = select.select(sources, [], [])
        question = terminal.question
        if woken in ready:
            os.read(woken, 64)
            self._interrupt()
        if self._session in ready:
            part = self._session.recv(65_536)
            *lines, self._heard = (self._heard + part).split(b"\n")
            for line in lines:
                terminal.take(json.loads(line))
            if terminal.ended is not None:
                return terminal.ended
            if not part:
                return "the session is gone"
            if not self._is_tty:
                while (denied := terminal.deny_asked("nobody is there to be asked")) is not None:
                    self._say(denied)
        # What was typed before a question was there is no answer to it, and there may be nothing left to read then.
        is_asked_anew = self._is_asked_anew(question)
        if sys.stdin in ready and not is_asked_anew:
            self._read()
        if self._at_eof and not terminal.is_busy and terminal.session_id:
            raise Left(is_detached=False)
        return None

    def _is_asked_anew(self, before: tuple[str, int] | None) -> bool:
        """Whether there is another question now; what was typed up to here is forgotten then."""
        question = self._terminal.question
        if not self._is_tty or question is None or question == before:
            return False
        termios.tcflush(0, termios.TCIFLUSH)
        return True

    def _interrupt(self) -> None:
        terminal = self._terminal
        if terminal.is_busy or terminal.asked is not None:
            self._say({"type": "abort"})
        else:
            print("\n(Ctrl-D leaves)")
            terminal.prompt()

    def _read(self) -> None:
        part = os.read(0, 65_536)
        if not part:
            if self._is_tty:
                raise Left(is_detached=False)
            # What was piped in is all there is; its answer is waited for.
            self._at_eof = True
            part = b"\n" if self._typed else b""
        *lines, self._typed = (self._typed + part).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            if text.strip() == DETACH:
                raise Left(is_detached=True)
            question = self._terminal.question
            if (said := self._terminal.typed(text)) is not None:
                self._say(said)
            if self._is_asked_anew(question):
                return

    def _say(self, said: Told) -> None:
        self._session.sendall(json.dumps(said).encode() + b"\n")
