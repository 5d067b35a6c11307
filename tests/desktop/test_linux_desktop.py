"""What the menu has a Linux desktop do: copy, open a file, link the command. Real programs, and a home of their own."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agtmux import __version__
from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.linux.desktop import LinuxDesktop
from desktop.programs import program
from support.home import wait_until

COPIED = "agtmux attach 'pane:host/日本 語/@1/%1' # 🚀\n  the end "
# What it is told, and what it is given to keep.
KEEPS = 'for word; do echo "$word"; done > "$0.said"; cat > "$0.given"'


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """Where all programs are, so that none is a clipboard of the user's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "sleep"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def desktop(path, tmp_path, monkeypatch) -> LinuxDesktop:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return LinuxDesktop()


def given(file: Path) -> str:
    return Path(f"{file}.given").read_bytes().decode()


@pytest.mark.parametrize(
    ("display", "name", "words"),
    [
        ("WAYLAND_DISPLAY", "wl-copy", []),
        ("DISPLAY", "xclip", ["-selection", "clipboard"]),
        ("DISPLAY", "xsel", ["--clipboard", "--input"]),
    ],
)
def test_what_is_copied_reaches_the_clipboard_to_the_letter(desktop, path, monkeypatch, display, name, words):
    monkeypatch.setenv(display, ":7")
    file = program(path, name, KEEPS)
    desktop.copy(COPIED)
    assert Path(f"{file}.said").read_text().splitlines() == words
    assert given(file) == COPIED


def test_wayland_has_its_own_clipboard_and_x_is_asked_where_it_cannot_be(desktop, path, monkeypatch):
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":7")
    xclip = program(path, "xclip", KEEPS)
    desktop.copy("one")
    wayland = program(path, "wl-copy", KEEPS)
    desktop.copy("two")
    assert (given(xclip), given(wayland)) == ("one", "two")


def test_what_hands_the_text_out_later_is_not_waited_for(desktop, path, monkeypatch):
    """xclip stays until something else is copied, and keeps open whatever it was started with."""
    monkeypatch.setenv("DISPLAY", ":7")
    file = program(path, "xclip", f'{KEEPS}; sleep 60 & echo $! > "$0.pid"')
    try:
        desktop.copy(COPIED)
        assert given(file) == COPIED
    finally:
        os.kill(int(Path(f"{file}.pid").read_text()), signal.SIGTERM)


@pytest.mark.parametrize("name", ["wl-copy", "xclip", "xsel"])
def test_without_its_display_a_clipboard_is_not_asked_and_the_text_is_told(desktop, path, name):
    file = program(path, name, KEEPS)
    with pytest.raises(AgtmuxError, match=f"install wl-clipboard or xclip .*{re.escape(COPIED)}"):
        desktop.copy(COPIED)
    assert not Path(f"{file}.said").exists()


def test_a_clipboard_that_fails_is_told(desktop, path, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":7")
    program(path, "xclip", "cat >/dev/null; exit 3")
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        desktop.copy(COPIED)


def test_a_file_is_opened_by_what_the_user_reads_such_files_with(desktop, path):
    file = program(path, "xdg-open", KEEPS)
    desktop.open_file("/a b/日本 $(x).toml")
    said = Path(f"{file}.said")
    # It lives on without the tray, which does not wait for its end.
    wait_until(lambda: said.exists() and said.read_text() == "/a b/日本 $(x).toml\n", "the file")


def test_a_file_that_nothing_opens_is_named(desktop):
    with pytest.raises(AgtmuxError, match="the file is /a b/c; install xdg-utils"):
        desktop.open_file("/a b/c")


def test_the_command_that_is_installed_is_this_one(desktop, tmp_path, monkeypatch):
    assert desktop.surroundings().has_command_line_tool is False
    desktop.install_command()
    assert desktop.surroundings().has_command_line_tool is True
    link = tmp_path / "home" / ".local" / "bin" / "agtmux"
    monkeypatch.setenv("PATH", str(link.parent))
    said = subprocess.run(["agtmux", "--version"], capture_output=True, text=True, check=True).stdout
    assert __version__ in said
    # Chosen twice in a menu that had not noticed yet.
    desktop.install_command()
    assert [each.name for each in link.parent.iterdir()] == ["agtmux"]


@pytest.mark.parametrize("is_link", [True, False])
def test_a_command_of_somebody_elses_is_left_alone(desktop, tmp_path, is_link):
    there = tmp_path / "home" / ".local" / "bin" / "agtmux"
    there.parent.mkdir(parents=True)
    if is_link:
        # To where nothing is by now, which counts as none in the menu.
        there.symlink_to("/opt/gone/agtmux")
    else:
        there.write_text("mine")
    with pytest.raises(AgtmuxError, match=f"{there} is there already; move it away"):
        desktop.install_command()
    assert str(there.readlink()) == "/opt/gone/agtmux" if is_link else there.read_text() == "mine"


def test_an_installation_without_a_command_has_none_to_install(desktop, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(AgtmuxError, match="no agtmux command"):
        desktop.install_command()
    assert not (tmp_path / "home").exists()
