"""The command as scripts and people meet it: exit codes, error lines, JSON, help, and odd terminals."""

import contextlib
import json
import os
import re
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module

import pytest

from agtmux import __version__
from agtmux.cli.commands import COMMANDS
from support.home import COMMANDS as BIN
from support.home import Home, event, shared_home, wait_until

ERROR_LINE = re.compile(r"agtmux: (E_[A-Z_]+): .+\n")


@pytest.fixture(scope="module")
def lively() -> Iterator[Home]:
    """A home whose daemon has something to show."""
    with shared_home() as home:
        panes = [home.pane("claude"), home.pane("codex"), home.pane("claude")]
        home.tmux("select-pane", "-t", panes[2], "-T", "日本語 title ✳")
        home.start()
        wait_until(lambda: home.panes().get(panes[2], {}).get("title", "").startswith("日本語"), "the panes")
        payload = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /tmp/naïve…"}}
        home.ask("POST", "/v1/events", event(panes[0], "claude.PermissionRequest", raw_payload=payload))
        home.ask("POST", "/v1/events", event(panes[1], "state.running"))
        yield home


def refused(done: subprocess.CompletedProcess, status: int, code: str) -> str:
    assert done.returncode == status, done
    last = done.stderr.splitlines(keepends=True)[-1]
    line = ERROR_LINE.fullmatch(last)
    assert line is not None, done.stderr
    assert line[1] == code
    assert "Traceback" not in done.stderr
    return last


# Exit codes and error lines


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["lst"], 2, "E_USAGE"),
        (["--nonsense"], 2, "E_USAGE"),
        (["list", "shoes"], 2, "E_USAGE"),
        (["list", "panes", "--nonsense"], 2, "E_USAGE"),
        (["list", "panes", "--al"], 2, "E_USAGE"),
        (["status", "extra"], 2, "E_USAGE"),
        (["daemon", "walk"], 2, "E_USAGE"),
        (["completion", "powershell"], 2, "E_USAGE"),
        (["completion"], 2, "E_USAGE"),
        (["status"], 3, "E_DAEMON_UNAVAILABLE"),
        (["list", "panes", "--no-start"], 3, "E_DAEMON_UNAVAILABLE"),
        (["\udcff\udcfe"], 2, "E_USAGE"),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "replace").decode() if isinstance(value, list) else None,
)
def test_a_refusal_has_its_exit_code_and_its_line_and_starts_nothing(
    home: Home, words: list[str], status: int, code: str
):
    done = home.run(*words)
    refused(done, status, code)
    assert done.stdout == ""
    assert not home.state.exists()
    with_json = home.run(*words, "--json")
    assert with_json.returncode == (status if words[0] not in ("daemon", "completion") else 2)
    error = json.loads(with_json.stdout)
    assert set(error) == {"error"} and set(error["error"]) == {"code", "message", "details"}
    assert error["error"]["code"] == code
    refused(with_json, status, code)


def test_an_unknown_command_suggests_the_nearest(home: Home):
    assert "did you mean status?" in refused(home.run("statsu"), 2, "E_USAGE")
    assert "did you mean" not in refused(home.run("xyzzy"), 2, "E_USAGE")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "pane"], "'pane' is not one of panes, windows, sessions (did you mean panes?)"),
        (["hooks", "instal"], "did you mean install?"),
        (["target", "xyzzy"], "'xyzzy' is not one of add, connect, list, remove; see agtmux target --help"),
        (["list", "panes", "--need-action"], "there is no --need-action here (did you mean --needs-action?)"),
        (["target", "add", "x", "--ssh-targt=y"], "did you mean --ssh-target?"),
        (["message", "send", "codex-1", "--text", "hi"], "see agtmux message send --help"),
        (["status", "now"], "there is no now here; see agtmux status --help"),
    ],
)
def test_a_misspelt_word_or_option_suggests_the_nearest(home: Home, words: list[str], says: str):
    assert says in refused(home.run(*words), 2, "E_USAGE")


def test_no_command_gives_the_overview(home: Home):
    for words in ([], ["--help"], ["-h"], ["help"]):
        done = home.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        for name, command in COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(command.summary)}$", done.stdout, re.MULTILINE)


def test_version(home: Home):
    for word in ("--version", "-V"):
        done = home.run(word)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"agtmux {__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(home: Home, name: str):
    done = home.run(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: agtmux {name} ")
    assert f"example:\n  {COMMANDS[name].example}\n" in done.stdout
    assert home.run("help", name).stdout == done.stdout
    assert not home.state.exists()


# Starting and stopping


def test_a_command_starts_the_daemon_with_one_line_on_stderr(home: Home):
    done = home.run("list", "panes", "--json")
    assert (done.returncode, done.stderr) == (0, "agtmux: starting agtmuxd\n")
    assert json.loads(done.stdout)["schema_version"] == 1
    again = home.run("list", "panes", "--json")
    assert (again.returncode, again.stderr) == (0, "")


def test_the_first_answer_already_knows_what_is_there(home: Home):
    """`No agent is running` from a daemon that has not looked yet is wrong with confidence."""
    pane = home.pane()
    done = home.run("list", "panes", "--json")
    assert [item["identity"]["pane_id"] for item in json.loads(done.stdout)["items"]] == [pane]


def test_that_line_never_gets_into_the_output(home: Home):
    command = f'"{BIN}/agtmux" list panes --json 2>&-'
    done = subprocess.run(["sh", "-c", command], env=home.env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert json.loads(done.stdout)["items"] == []


def test_up_headless_starts_it_and_shows_nothing(home: Home):
    done = home.run("up", "--headless")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "agtmux: starting agtmuxd\n")
    again = home.run("up", "--headless")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_down_twice(home: Home):
    home.run("up", "--headless")
    pid = home.health()["pid"]
    done = home.run("down")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"agtmuxd (process {pid}) has stopped\n", "")
    done = home.run("down")
    assert (done.returncode, done.stdout, done.stderr) == (0, "agtmuxd was not running\n", "")
    assert json.loads(home.run("down", "--json").stdout) == {"schema_version": 1, "stopped": None, "stopped_app": None}


def test_the_daemon_outlives_the_terminal_of_the_command_that_started_it(home: Home):
    home.run("up", "--headless")
    daemon = home.health()["pid"]
    assert os.getsid(daemon) == daemon
    assert os.getpgid(daemon) == daemon


def test_agtmuxd_is_agtmux_daemon_run(home: Home):
    daemon = home.spawn(BIN / "agtmux", "daemon", "run")
    assert wait_until(home.answering_pid, "an answer") == daemon.pid
    home.end(daemon)
    assert home.run("--help", command="agtmuxd").stdout == home.run("daemon", "run", "--help").stdout
    refused(home.run("--nonsense", command="agtmuxd"), 2, "E_USAGE")


def test_status_says_how_it_is(lively: Home):
    done = lively.run("status")
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"agtmuxd {__version__} is ok: process {lively.health()['pid']}, ")
    assert json.loads(lively.run("status", "--json").stdout)["pid"] == lively.health()["pid"]


def test_what_answers_on_the_socket_is_not_agtmuxd(home: Home):
    """Neither a stranger's answer nor his silence is a traceback."""
    home.state.mkdir(mode=0o700)
    for answer in ("SSH-2.0-OpenSSH_9.2\\n", "", "HTTP/1.1 200 OK\\r\\n\\r\\n", "HTTP/1.1 500 Oops\\r\\n\\r\\n<html>"):
        script = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(flush=True);"
            f"c, _ = s.accept(); c.recv(9999); c.sendall(b'{answer}'); c.close()"
        )
        stranger = home.spawn(BIN / "python3", "-c", script, home.socket)
        stranger.stdout.readline()
        done = home.run("status")
        assert "Traceback" not in done.stderr, (answer, done.stderr)
        assert done.returncode in (1, 3), (answer, done)
        assert ERROR_LINE.fullmatch(done.stderr)
        stranger.wait(20)
        home.socket.unlink()


# Output


def test_output_that_nobody_reads_is_no_traceback(lively: Home):
    for words in (
        ["list", "panes"],
        ["list", "panes", "--json"],
        ["status"],
        ["--help"],
        ["list", "--help"],
        ["lst", "--json"],
    ):
        reader, writer = os.pipe()
        os.close(reader)
        done = lively.run(*words, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, (words, done.stderr)
        assert done.returncode == (2 if words[0] == "lst" else 0), words


def test_list_into_head(lively: Home):
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"{BIN}/agtmux" list panes | head -c 0'],
        env=lively.env, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&-"])
def test_closed_standard_streams_are_no_traceback(lively: Home, redirection: str):
    for words, status in (("list panes", 0), ("status", 0), ("lst", 2), ("list panes --json", 0), ("up", 0)):
        done = subprocess.run(
            ["sh", "-c", f'"{BIN}/agtmux" {words} {redirection}'],
            env=lively.env, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == status, (words, done)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        if "2>&-" in redirection and words == "lst":
            assert done.stdout == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_output_that_cannot_be_written_is_an_error(lively: Home):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = lively.run("list", "panes", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert ERROR_LINE.fullmatch(done.stderr)
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "LANG": "C"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "no_SUCH.locale"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda locale: " ".join(f"{key}={value}" for key, value in locale.items()),
)
def test_a_terminal_without_our_signs_gets_the_table_all_the_same(lively: Home, locale: dict[str, str]):
    done = subprocess.run(
        [BIN / "agtmux", "list", "panes"], env=lively.env | locale, capture_output=True, timeout=30
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"waiting_approval" in done.stdout
    # What cannot be shown does not become the sign of one that asks something.
    assert not any(line.startswith(b"?") for line in done.stdout.splitlines())
    as_json = subprocess.run(
        [BIN / "agtmux", "list", "panes", "--json"], env=lively.env | locale, capture_output=True, timeout=30
    )
    items = json.loads(as_json.stdout.decode("utf-8", "replace"))["items"]
    assert len(items) == 3


def test_the_table_is_plain_without_a_terminal(lively: Home):
    done = lively.run("list", "panes")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "3 agents, 1 needs you (1 waiting_approval); 1 running, 1 unknown"
    assert lines[1].split() == ["STATE", "AGENT", "AGE", "PANE", "ASKS", "/", "TITLE"]
    assert lines[2].startswith("!  waiting_approval") and lines[2].endswith("rm -rf /tmp/naïve…")
    assert lines[3].startswith("▶  running")
    assert "日本語 title ✳" in lines[4]
    assert lively.run("up").stdout.splitlines()[0] == lines[0]


def test_colour_only_on_a_terminal_that_wants_it(lively: Home):
    assert "\x1b[33m" in on_a_terminal(lively, {})
    assert "\x1b[" not in on_a_terminal(lively, {"NO_COLOR": "1"})
    assert "\x1b[" not in on_a_terminal(lively, {"TERM": "dumb"})
    assert "\x1b[33m" in on_a_terminal(lively, {"NO_COLOR": ""})


def on_a_terminal(home: Home, env: dict[str, str]) -> str:
    import pty

    controller, terminal = pty.openpty()
    try:
        done = home.run("list", "panes", env=env, capture_output=False, stdout=terminal, stderr=terminal)
        assert done.returncode == 0
        os.close(terminal)
        parts = []
        with contextlib.suppress(OSError):
            while part := os.read(controller, 65_536):
                parts.append(part)
        return b"".join(parts).decode()
    finally:
        os.close(controller)


def test_json_is_one_document_with_its_envelope(lively: Home):
    listing = json.loads(lively.run("list", "panes", "--json").stdout)
    assert {"schema_version", "generated_at", "filters", "summary", "items", "partial"} <= set(listing)
    assert listing["summary"]["needs_action"] == 1
    item = listing["items"][0]
    assert set(item) == {
        *("identity", "ref", "runtime_id", "agent_type", "agent_version", "state", "reason_code", "confidence"),
        *("state_version", "source", "updated_at", "state_since", "title", "cwd", "branch", "name", "attention"),
        *("remembered", "worktree_path", "session_id", "capabilities"),
    }
    assert item["attention"] == {"kind": "approval", "summary": "rm -rf /tmp/naïve…", "detail": None, "options": []} | {
        "fingerprint": None,
        "whole": True,
        "incomplete_reason": None,
        "brief": False,
    }
    with_all = json.loads(lively.run("list", "panes", "--all", "--json").stdout)
    assert len(with_all["items"]) == len(lively.panes())


# Completion


def options_of(name: str) -> set[str]:
    parser = ArgumentParser(add_help=True)
    import_module(COMMANDS[name].module).configure(parser)
    return words_of(parser)


def words_of(parser: ArgumentParser) -> set[str]:
    found: set[str] = set()
    for action in parser._actions:
        found |= {option for option in action.option_strings if option.startswith("--")}
        if not action.option_strings and action.choices:
            found |= set(action.choices)
        if isinstance(action.choices, dict):
            found = found.union(*(words_of(below) for below in action.choices.values()))
    return found


# Words that a command takes where others stand for a pane.
INSTEAD_OF_A_REF = {"log": {"actions", "conversations"}}


@pytest.mark.parametrize("name", COMMANDS)
def test_completion_offers_what_the_command_takes(name: str):
    assert set(COMMANDS[name].words) == options_of(name) | INSTEAD_OF_A_REF.get(name, set())


def completed(home: Home, *words: str) -> set[str]:
    """What bash would offer for the last word."""
    script = home.run("completion", "bash").stdout
    line = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _agtmux; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_bash_accepts_the_script_and_completes(home: Home):
    script = home.run("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=20).stderr == ""
    assert completed(home, "agtmux", "") == {*COMMANDS, "--help", "--version"}
    assert completed(home, "agtmux", "sta") == {"status"}
    assert completed(home, "agtmux", "list", "p") == {"panes"}
    assert completed(home, "agtmux", "list", "panes", "--n") == {"--needs-action", "--no-start"}
    assert completed(home, "agtmux", "nonsense", "") == set()
    assert completed(home, "agtmux", "completion", "") == {"bash", "zsh", "fish", "--help"}


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_accept_their_scripts(home: Home, shell: str, check: list[str]):
    script = home.run("completion", shell)
    assert script.returncode == 0
    assert all(name in script.stdout for name in COMMANDS)
    try:
        done = subprocess.run(check, input=script.stdout, text=True, capture_output=True, timeout=20)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert (done.returncode, done.stderr) == (0, "")
