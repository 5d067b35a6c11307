"""Windows of terminals: what is run to open one, and what runs in it."""

import stat
import subprocess
from pathlib import Path

import pytest

from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.mac import terminals

HARD = ["printf", "%s\\n", "a b", "'; rm -rf ~; '", "$(id)", "日本", "-n", "`x`", ""]


@pytest.fixture
def apps(tmp_path, monkeypatch):
    monkeypatch.setenv("AGTMUX_STATE_DIR", str(tmp_path / "state with spaces"))
    for terminal in terminals.TERMINALS:
        (tmp_path / "apps" / terminal.app).mkdir(parents=True)
    return [str(tmp_path / "apps")]


def test_each_terminal_is_opened_by_its_own_words(apps):
    expected = {
        "terminal": ["/usr/bin/open", "-b", "com.apple.Terminal"],
        "iterm2": ["/usr/bin/open", "-b", "com.googlecode.iterm2"],
        "ghostty": [
            *("/usr/bin/open", "-n", "-b", "com.mitchellh.ghostty", "--args"),
            *("--quit-after-last-window-closed=true", "-e"),
        ],
        "wezterm": [f"{apps[0]}/WezTerm.app/Contents/MacOS/wezterm", "start", "--"],
        "kitty": [f"{apps[0]}/kitty.app/Contents/MacOS/kitty", "--single-instance"],
        "alacritty": ["/usr/bin/open", "-n", "-b", "org.alacritty", "--args", "-e"],
    }
    assert {terminal.name for terminal in terminals.TERMINALS} == set(expected)
    for name, words in expected.items():
        *argv, script = terminals.argv_to_open(HARD, name, apps)
        assert argv == words
        # The one argument that differs is a path of ours, whatever is to run.
        assert Path(script).is_file() and script.endswith(".command")


def run(script):
    done = subprocess.run([str(script)], env={"PATH": "/usr/bin:/bin", "HOME": "/"}, capture_output=True, text=True)
    return done.stdout, done.stderr


def test_the_script_runs_exactly_those_words_and_is_gone(apps):
    script = terminals.write_script(HARD)
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
    assert stat.S_IMODE(script.parent.stat().st_mode) == 0o700
    assert run(script) == ("".join(f"{word}\n" for word in HARD[2:]), "")
    assert not script.exists()


def test_what_runs_there_finds_homebrew_and_has_a_locale(apps):
    out, _ = run(terminals.write_script(["sh", "-c", "echo $PATH; echo $LANG"]))
    path, locale = out.splitlines()
    assert path.startswith("/usr/bin:/bin:") and "/opt/homebrew/bin" in path
    assert locale == "en_US.UTF-8"


def test_a_window_that_is_to_stay_waits_for_return(apps):
    script = terminals.write_script(["echo", "done"], stays=True)
    done = subprocess.run([str(script)], input="\n", capture_output=True, text=True, timeout=20)
    assert done.stdout.startswith("done\n") and "Press Return" in done.stdout


def test_whoever_has_chosen_none_gets_the_one_they_installed(apps):
    assert "iterm2" in terminals.argv_to_open(["true"], "", apps)[2]


def test_one_that_is_not_installed_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("AGTMUX_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(AgtmuxError, match="'kitty' is not installed"):
        terminals.argv_to_open(["true"], "kitty", [str(tmp_path)])
    assert not (tmp_path / "state").exists()
