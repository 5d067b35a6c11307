"""Who is at a terminal that a person opened, with real processes on real terminals."""

import os
import pty
import sys
from pathlib import Path

import pytest

from agtmux.probe.terminals import _is_interactive_shell, at_terminal
from support.home import wait_until

# Opens a terminal and starts the shell of its arguments there, as a terminal program does.
OPENER = """#!INTERPRETER
import os, pty, select, sys
child, keys = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
os.write(keys, open(sys.argv[1], "rb").read())
while True:
    try:
        if not os.read(keys, 4096):
            break
    except OSError:
        break
"""
ASK = """import os, sys
from agtmux.probe.terminals import at_terminal
open(sys.argv[1], "w").write("[%s]" % at_terminal(os.getpid()).why_not)
"""


def asked(folder: Path, opener: str, typed: str, *shell: str) -> str:
    """What is found of a command that is typed into a shell in a terminal that a program of that name has opened. `ASK`
    in it is the command."""
    program, keys, told = folder / opener, folder / "keys", folder / "told"
    # A path with spaces cannot stand in a first line.
    interpreter = folder / "interpreter"
    interpreter.symlink_to(sys.executable)
    program.write_text(OPENER.replace("INTERPRETER", str(interpreter)))
    program.chmod(0o755)
    (folder / "ask.py").write_text(ASK)
    command = f'"{sys.executable}" {folder / "ask.py"} {told}'
    keys.write_text(typed.replace("ASK", command) + "\n")
    words = [part.replace("ASK", command) for part in shell or ("bash", "--norc", "--noprofile")]
    process = os.spawnv(os.P_NOWAIT, str(program), [str(program), str(keys), *words])
    try:
        wait_until(lambda: told.exists() and told.read_text().endswith("]"), "its answer")
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
    return told.read_text()[1:-1]


@pytest.mark.parametrize("opener", ["xterm", "sshd", "login"])
def test_a_command_in_a_shell_that_a_terminal_program_opened_is_a_persons(tmp_path: Path, opener: str) -> None:
    assert asked(tmp_path, opener, "ASK") == ""


def test_a_script_in_such_a_shell_is_too(tmp_path: Path) -> None:
    (tmp_path / "script.sh").write_text('eval "$1"\n')
    assert asked(tmp_path, "xterm", f"sh {tmp_path}/script.sh 'ASK'") == ""


@pytest.mark.parametrize(
    ("opener", "typed", "why_not"),
    [
        ("xterm", "setsid -f ASK", "no terminal"),
        ("xterm", "(setsid ASK &)", "no terminal"),
        ("xterm", "ASK &", "background"),
        ("xterm", "nohup ASK > /dev/null 2>&1 &", "background"),
        # Somebody may type there, and so may any program.
        ("screen", "ASK", "opened"),
        ("tmux", "ASK", "opened"),
        ("node", "ASK", "opened"),
    ],
)
def test_what_nothing_shows_to_be_a_persons_is_not(tmp_path: Path, opener: str, typed: str, why_not: str) -> None:
    assert why_not in asked(tmp_path, opener, typed)


def test_a_terminal_that_was_opened_for_one_command_is_nobodys(tmp_path: Path) -> None:
    assert "no shell that takes commands" in asked(tmp_path, "xterm", "", "sh", "-c", "ASK; true")


def test_a_process_that_is_gone_is_at_no_terminal() -> None:
    child = os.spawnv(os.P_NOWAIT, "/bin/true", ["true"])
    os.waitpid(child, 0)
    assert at_terminal(child).why_not == "its process has ended"


@pytest.mark.parametrize(
    ("words", "is_interactive"),
    [
        (["bash", "--norc"], True),
        (["-bash"], True),
        (["sh", "-i"], True),
        (["sh", "-c", "read x"], False),
        (["bash", "-lc", "read x"], False),
        (["bash", "/dev/stdin"], False),
        (["cat"], False),
    ],
)
def test_a_shell_that_takes_commands_is_told_by_its_words(words: list[str], is_interactive: bool) -> None:
    child, keys = pty.fork()
    if child == 0:
        os.execvp(words[0].lstrip("-"), words)
    try:
        wait_until(lambda: Path(f"/proc/{child}/comm").read_text().strip() == words[0].lstrip("-"), "the shell")
        assert _is_interactive_shell(child) is is_interactive
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(keys)
