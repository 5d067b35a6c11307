"""What the tray has of a Linux desktop: terminals, what starts at login, one tray a user, icons."""

import configparser
import os
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("jeepney", reason="the tray's own library, on Linux alone")

from agtmux.domain.errors import AgtmuxError
from AgtmuxBar import icons, single
from AgtmuxBar.linux import login, terminals
from AgtmuxBar.linux.desktop import LinuxDesktop
from desktop.programs import program


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.delenv("TERMINAL", raising=False)
    return folder


@pytest.mark.parametrize("name", terminals.TERMINALS)
def test_each_terminal_is_given_the_command_after_its_own_words(path, name):
    file = program(path, name)
    terminals.open_terminal(["tmux", "attach", "a b"], name, stays=False)
    said = Path(f"{file}.said").read_text().splitlines()
    assert said == [*terminals.TERMINALS[name][1], "tmux", "attach", "a b"]


def test_the_users_own_terminal_is_asked_first(path, monkeypatch):
    mine, debian, kitty = (program(path, name) for name in ("myterm", "x-terminal-emulator", "kitty"))
    assert terminals.words("", {}) == [str(debian), "-e"]
    assert terminals.words("", {"TERMINAL": "myterm"}) == [str(mine), "-e"]
    assert terminals.words("kitty", {"TERMINAL": "myterm"}) == [str(kitty)]
    assert terminals.words("gone", {"TERMINAL": str(mine)}) == [str(mine), "-e"]


def test_a_terminal_that_fails_at_once_is_told(path):
    program(path, "kitty", "exit 3")
    with pytest.raises(AgtmuxError, match="ended at once with status 3"):
        terminals.open_terminal(["true"], "kitty", stays=False)


def test_a_terminal_is_in_no_tmux(path, monkeypatch):
    monkeypatch.setenv("TMUX", "/tmp/x,1,0")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    file = program(path, "kitty", 'env > "$0.said"')
    terminals.open_terminal(["true"], "kitty", stays=False)
    names = {line.partition("=")[0] for line in Path(f"{file}.said").read_text().splitlines()}
    assert not {"TMUX", "PYTHONHOME"} & names


# At login


@pytest.fixture
def config(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in login._PASSED_ON:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config"


def with_systemd(tmp_path: Path, path: Path, monkeypatch, status: int = 0) -> Path:
    """A systemctl that writes down what it is asked, as there is none in a container."""
    runtime = tmp_path / "run"
    (runtime / "systemd").mkdir(parents=True)
    (runtime / "systemd" / "private").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    program(path, "systemctl", f'echo "$@" >> "$0.said"; echo no >&2; exit {status}')
    return path / "systemctl.said"


def test_launch_at_login_leaves_nothing_when_it_is_turned_off(config, path, tmp_path, monkeypatch):
    said = with_systemd(tmp_path, path, monkeypatch)
    login.turn_on(["/opt/a b/python", "-m", "AgtmuxBar.linux"], ["/opt/a b/python", "-m", "agtmux.daemon"])
    assert login.is_on() and login.has_unit()
    assert (config / "autostart" / login.ENTRY).exists()
    assert 'ExecStart="/opt/a b/python" "-m" "agtmux.daemon"' in (config / "systemd/user" / login.UNIT).read_text()
    login.turn_off()
    assert not login.is_on()
    assert [file for file in config.rglob("*") if file.is_file()] == []
    assert said.read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable {login.UNIT}",
        f"--user disable {login.UNIT}",
        "--user daemon-reload",
    ]


def test_what_starts_at_login_imports_nothing_from_the_home_folder(config, path, tmp_path, monkeypatch):
    """Desktops and systemd start programs in the home folder, where a file may be called like a module of Python's."""
    with_systemd(tmp_path, path, monkeypatch)
    home = tmp_path / "home"
    home.mkdir()
    for module in ("logging", "asyncio", "json", "agtmux"):
        (home / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit(3)\n")
    LinuxDesktop().launch_at_login(True)
    entry = (config / "autostart" / login.ENTRY).read_text()
    unit = (config / "systemd/user" / login.UNIT).read_text()
    assert "\nPath=/\n" in entry and "\nWorkingDirectory=/\n" in unit
    for text, key in ((entry, "Exec="), (unit, "ExecStart=")):
        words = shlex.split(next(line for line in text.splitlines() if line.startswith(key)).removeprefix(key))
        # Settings that are wrong end it after everything is imported.
        settings = tmp_path / "wrong" / "config.toml"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text("wrong")
        env = os.environ | {"AGTMUX_CONFIG_DIR": str(settings.parent), "AGTMUX_STATE_DIR": str(tmp_path / "state")}
        env.pop("DBUS_SESSION_BUS_ADDRESS", None)
        done = subprocess.run(words, cwd=home, env=env, capture_output=True, timeout=60)
        assert done.returncode != 3, done.stderr
    assert not (tmp_path / "ran").exists()


def test_without_systemd_the_tray_alone_is_launched(config, path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    login.turn_on(["tray"], ["daemon"])
    assert [file.name for file in config.rglob("*") if file.is_file()] == [login.ENTRY]


def test_what_is_somebody_elses_is_left_alone(config, path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    file = config / "autostart" / login.ENTRY
    file.parent.mkdir(parents=True)
    file.write_text("[Desktop Entry]\nExec=mine\n")
    with pytest.raises(AgtmuxError, match="not agtmux's"):
        login.turn_on(["tray"], ["daemon"])
    # Its tick in the menu is there, so that it could not be taken out is said.
    assert login.is_on()
    with pytest.raises(AgtmuxError, match="not agtmux's"):
        login.turn_off()
    assert file.read_text() == "[Desktop Entry]\nExec=mine\n"


def test_a_unit_of_somebody_elses_leaves_nothing_half_done(config, path, tmp_path, monkeypatch):
    with_systemd(tmp_path, path, monkeypatch)
    file = config / "systemd" / "user" / login.UNIT
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=mine\n")
    with pytest.raises(AgtmuxError, match="not agtmux's"):
        login.turn_on(["tray"], ["daemon"])
    assert not login.is_on() and not login.has_unit()
    assert [each for each in config.rglob("*") if each.is_file()] == [file]
    assert file.read_text() == "[Service]\nExecStart=mine\n"


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_what_the_desktops_own_settings_turn_off_is_off_in_the_menu_too(config, path, monkeypatch, line):
    """Xfce's and GNOME's write it into the file, which they may rewrite without comments."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    login.turn_on(["tray"], ["daemon"])
    file = config / "autostart" / login.ENTRY
    kept = [each for each in file.read_text().splitlines() if not each.startswith(("#", line.partition("=")[0]))]
    file.write_text("\n".join([*kept, line]) + "\n")
    assert not login.is_on()
    login.turn_on(["tray"], ["daemon"])
    assert login.is_on()
    login.turn_off()
    assert not file.exists()


@pytest.mark.parametrize("word", ["plain", "with space", 'quo"te', "dol$lar", "back\\slash", "100%", "tick`", "日本"])
def test_the_entry_runs_exactly_the_words_it_was_given(config, path, monkeypatch, word):
    """Read back as the specification says: first the string, then the command line, then the codes."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    login.turn_on(["/bin/tray", word], ["daemon"])
    parser = configparser.RawConfigParser(strict=False, comment_prefixes=("#",))
    parser.read(config / "autostart" / login.ENTRY, "utf-8")
    string = parser["Desktop Entry"]["Exec"].replace("\\\\", "\\")
    # Quoting is a shell's, within what the specification allows.
    script = f"printf '%s\\0' {string}"
    words = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    assert [each.replace("%%", "%") for each in words] == ["/bin/tray", word]


def test_places_that_were_chosen_hold_at_login_too(config, path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("AGTMUX_STATE_DIR", "/data/agtmux")
    login.turn_on(["/bin/tray"], ["daemon"])
    assert 'Exec="env" "AGTMUX_STATE_DIR=/data/agtmux" "/bin/tray"' in (config / "autostart" / login.ENTRY).read_text()


# One tray

HOLD = """
import time
from AgtmuxBar import single
with single.only_one() as ours:
    print(ours, flush=True)
    time.sleep(60)
"""


def test_there_is_one_tray_a_user_and_the_next_one_comes_after_a_crash(tmp_path, monkeypatch):
    monkeypatch.setenv("AGTMUX_STATE_DIR", str(tmp_path))
    assert not single.is_running()
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "True\n"
        assert single.is_running()
        assert (tmp_path / single.LOCK).read_text() == f"{holder.pid}\n"
        assert stat.S_IMODE((tmp_path / single.LOCK).stat().st_mode) == 0o600
        with single.only_one() as ours:
            assert not ours
    finally:
        holder.kill()
        holder.communicate()
    with single.only_one() as ours:
        assert ours


def test_whoever_only_looks_keeps_nobody_from_starting(tmp_path, monkeypatch):
    monkeypatch.setenv("AGTMUX_STATE_DIR", str(tmp_path))
    (tmp_path / single.LOCK).touch()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            single.is_running()

    looking = [threading.Thread(target=look) for _ in range(2)]
    for thread in looking:
        thread.start()
    try:
        for _ in range(20):
            with single.only_one() as ours:
                assert ours
    finally:
        is_over.set()
        for thread in looking:
            thread.join()


# Icons


def opaque(icon: str, size: int = 22) -> set[int]:
    """Which pixels are mostly there."""
    drawn = icons.template(icon, size)
    return {at // 4 for at in range(0, len(drawn), 4) if drawn[at + 3] > 127}


def test_icons_differ_in_shape_and_not_only_in_colour():
    shapes = {icon: opaque(icon) for icon in icons.ICONS}
    for one in icons.ICONS:
        for other in icons.ICONS:
            if one < other:
                assert len(shapes[one] ^ shapes[other]) > 20, (one, other)


def test_every_count_has_a_picture_of_its_own():
    drawn = {icons.argb("waiting", 22, count) for count in range(100)}
    assert len(drawn) == 100
    assert icons.argb("waiting", 22, 5000) == icons.argb("waiting", 22, 99)


@pytest.mark.parametrize("panel", [0x22, 0xF0], ids=["dark", "light"])
@pytest.mark.parametrize("icon", icons.ICONS)
def test_icons_are_seen_on_any_panel(panel, icon):
    """Enough pixels differ clearly from the panel behind them."""
    drawn = icons.pixels(icon, 22)
    seen = 0
    for at in range(0, len(drawn), 4):
        opacity = drawn[at + 3] / 255
        mixed = [drawn[at + part] * opacity + panel * (1 - opacity) for part in range(3)]
        seen += max(abs(each - panel) for each in mixed) > 70
    assert seen > 40


def test_png_files_are_what_they_say(tmp_path):
    icons.main(tmp_path)
    written = sorted(file.name for file in tmp_path.iterdir())
    assert "waiting-22.png" in written and "down-template-36.png" in written
    assert all(file.read_bytes().startswith(b"\x89PNG\r\n") for file in tmp_path.iterdir())
