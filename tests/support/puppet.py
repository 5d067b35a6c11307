"""An agent on strings: draws a prompt and dialogs as a real one does, and writes down every byte it is given.

    bash -c 'exec -a claude python puppet.py NAME FOLDER'
    bash -c 'exec -a shell python puppet.py NAME FOLDER shell'

Told what to do by datagrams to FOLDER/NAME.sock: `ask ID TEXT` opens a dialog, `busy` and `idle` change what it does,
`draft TEXT` types for the user, `answer` has the user answer the dialog, `clear` has the user take back what is
typed, `reset` leaves an empty prompt, `muddle` has it take the next Enter for a part of the text, `run N COMMAND`
starts something below it, `exit` ends it. What it was given goes to FOLDER/NAME.log, a line of JSON each: the keys and
pastes, and what was open when they came. A dialog is `on_screen` once the
terminal has answered a question that was asked behind it: what comes before that answer was pressed before the terminal
could know of the dialog.

`await N ORDER` obeys that order and writes a line `drawn` with N once the terminal has drawn what it led to. The keys
that tmux was given before are in the log by then: its answer comes behind them.

As a `shell` it has the puppet run in its foreground, and what comes after that has ended goes to NAME-shell.log.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path

DIM, OFF = "\x1b[2m", "\x1b[0m"
PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"
DIALOG = "dialog"
WHERE, HERE, HERE_BEGUN = "\x1b[6n", re.compile(rb"\x1b\[\d+;\d+R"), re.compile(rb"\x1b\[\d*;?\d*")


class Puppet:
    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.log = Path(folder, name + ".log")
        self.strings = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.strings.bind(str(Path(folder, name + ".sock")))
        self.draft = ""
        self.sent: list[str] = []
        self.dialog: tuple[str, str] | None = None
        self.is_busy = False
        self.is_muddled = False
        self.beats = 0
        self.buffer = b""
        # What the terminal was asked for and has not answered yet, in order: a dialog, or the number of an order.
        self.unanswered: list[str] = []

    def run(self) -> None:
        before = termios.tcgetattr(0)
        tty.setraw(0)
        sys.stdout.write("\x1b[?2004h\x1b[?25l")
        self.draw()
        self.note("began", str(os.getpid()))
        try:
            while True:
                # A spinner turns while it is busy.
                ready, _, _ = select.select([0, self.strings], [], [], 0.1 if self.is_busy else None)
                self.beats += 1
                # Keys first, as they came first.
                if 0 in ready:
                    self.take(os.read(0, 65_536))
                number = ""
                if self.strings in ready:
                    order = self.strings.recv(65_536).decode()
                    if order.startswith("await "):
                        _, number, order = order.split(" ", 2)
                    if not self.obey(order):
                        break
                self.draw()
                if number:
                    self.question(number)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            sys.stdout.write("\x1b[?2004l\x1b[?25h\x1b[2J\x1b[H")
            sys.stdout.flush()

    def obey(self, order: str) -> bool:
        word, _, rest = order.partition(" ")
        if word == "ask":
            dialog_id, _, text = rest.partition(" ")
            # What was typed before it opened was not typed at it.
            while select.select([0], [], [], 0)[0]:
                self.take(os.read(0, 65_536))
            self.dialog = (dialog_id, text)
            # It is open from here on, and not once this has been written down.
            self.draw()
            self.question(DIALOG)
        elif word == "answer":
            self.dialog, self.is_busy = None, True
        elif word == "draft":
            self.draft = rest
        elif word == "clear":
            self.draft = ""
        elif word == "reset":
            self.dialog, self.draft, self.is_busy = None, "", False
        elif word == "run":
            # As an agent runs its tools and MCP servers: below itself, and not at its terminal's input.
            number, _, command = rest.partition(" ")
            with self.log.with_suffix(f".{number}.out").open("wb") as out:
                subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        elif word == "muddle":
            self.is_muddled = True
        elif word in ("busy", "idle"):
            self.is_busy = word == "busy"
        elif word == "exit":
            return False
        self.note("obeyed", order)
        return True

    def question(self, about: str) -> None:
        """Asks the terminal for something that it answers once it has drawn all that was written before."""
        self.unanswered.append(about)
        sys.stdout.write(WHERE)
        sys.stdout.flush()

    def note(self, what: str, data: str) -> None:
        open_dialog = None if self.dialog is None else self.dialog[0]
        line = {"t": time.monotonic(), "who": self.name, "dialog": open_dialog, "what": what, "data": data}
        line["on_screen"] = DIALOG not in self.unanswered
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def take(self, data: bytes) -> None:
        if not data:
            raise SystemExit
        self.buffer += data
        while self.buffer:
            if self.buffer.startswith(PASTE):
                if PASTED not in self.buffer:
                    return
                text, _, self.buffer = self.buffer[len(PASTE) :].partition(PASTED)
                self.note("paste", text.decode("utf-8", "replace"))
                if self.dialog is None:
                    self.draft += text.decode("utf-8", "replace").replace("\r", "\n")
                continue
            if here := HERE.match(self.buffer):
                self.buffer = self.buffer[here.end() :]
                if self.unanswered and (about := self.unanswered.pop(0)) != DIALOG:
                    self.note("drawn", about)
                continue
            is_begun = PASTE.startswith(self.buffer[: len(PASTE)]) or HERE_BEGUN.fullmatch(self.buffer)
            if is_begun and len(self.buffer) > 1:
                return
            key, self.buffer = self.buffer[:1], self.buffer[1:]
            self.press(key)

    def press(self, key: bytes) -> None:
        self.note("key", key.decode("latin-1"))
        if self.dialog is not None:
            if key in (b"1", b"\r", b"2", b"\x1b"):
                self.is_busy = key != b"\x1b"
                self.dialog = None
            return
        if key == b"\r" and self.is_muddled:
            self.is_muddled = False
            self.draft += "\n"
        elif key == b"\r":
            self.note("submit", self.draft)
            self.sent.append(self.draft)
            self.draft, self.is_busy = "", True
        elif key == b"\x15":
            self.draft = ""
        elif key == b"\x1b":
            self.is_busy = False
        elif key >= b" ":
            self.draft += key.decode("latin-1")

    def draw(self) -> None:
        # Frames go from side to side, as a real agent's do.
        rule = "─" * os.get_terminal_size(1).columns
        lines = ["", *(f"❯ {text.splitlines()[0][:60]}" for text in self.sent[-3:]), ""]
        if self.dialog is not None:
            lines += [rule, " Bash command", "", f"   {self.dialog[1]}", f"   {DIM}Make a label{OFF}", ""]
            lines += [" Do you want to proceed?", " ❯ 1. Yes", "   2. Yes, and don't ask again for touch commands"]
            lines += ["   3. No, and tell Claude what to do differently (esc)", "", " Esc to cancel"]
        else:
            if self.is_busy:
                lines += [f"{'·✢✳✶✻✽'[self.beats % 6]} Printing… ({self.beats}s · esc to interrupt)", ""]
            shown = self.draft.expandtabs(4).split("\n")
            if len(shown) > 4:
                shown = [f"[Pasted text #1 +{len(shown) - 1} lines]"]
            lines += [rule, f"❯ {shown[0]}", *(f"  {line}" for line in shown[1:]), rule, "  ? for shortcuts"]
        # In one piece, so that nobody sees half of it.
        sys.stdout.write("\x1b[?2026h\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in lines) + "\x1b[J\x1b[?2026l")
        sys.stdout.flush()


def shell(name: str, folder: str) -> None:
    """What a shell does with a program in its foreground, and then nothing but listen."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        # Python takes itself for whatever it is called.
        os.execv("/proc/self/exe", ["claude", __file__, name, folder])
    with contextlib.suppress(PermissionError):
        # It may have done so itself by now.
        os.setpgid(child, child)
    os.waitpid(child, 0)
    os.tcsetpgrp(0, os.getpgrp())
    tty.setraw(0)
    sys.stdout.write("\x1b[2J\x1b[Hdev@host$ ")
    sys.stdout.flush()
    listener = Puppet(name + "-shell", folder)
    listener.note("began", str(os.getpid()))
    while data := os.read(0, 65_536):
        # What the terminal answers to a puppet that has ended meanwhile was typed by no one.
        if keys := HERE.sub(b"", data):
            listener.note("key", keys.decode("latin-1"))


if __name__ == "__main__":
    if sys.argv[3:] == ["shell"]:
        shell(*sys.argv[1:3])
    else:
        Puppet(*sys.argv[1:3]).run()
