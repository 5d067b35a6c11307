"""What starts at login: the tray by an autostart entry, the daemon by a systemd user unit where there is systemd.

Both are written when the user asks for it, and taken away when the user asks for that. A file of the same name that is
not ours is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode

UNIT: Final = "dev.agtmux.daemon.service"
ENTRY: Final = "dev.agtmux.bar.desktop"
_MARK: Final = "Written by agtmux; `Launch at login` in its menu removes it."
# What a desktop's own settings write into an entry that is not to be started.
_DISABLED: Final = ("hidden=true", "x-gnome-autostart-enabled=false")
_TIME_LIMIT: Final = 10.0

_ENTRY: Final = """\
[Desktop Entry]
Type=Application
Name=agtmux
Comment=Which coding agent needs you
Exec={command}
Path=/
Terminal=false
X-GNOME-Autostart-enabled=true
X-Agtmux-Note={mark}
"""
_UNIT: Final = """\
# {mark}
[Unit]
Description=agtmux: which coding agent needs you
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
ExecStart={command}
WorkingDirectory=/
Restart=on-failure
RestartSec=10
{environment}
[Install]
WantedBy=default.target
"""
# Where somebody keeps things elsewhere, what starts by itself must find them too.
_PASSED_ON: Final = ("AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "AGTMUX_SOCKET", "TMUX_TMPDIR")


def is_on() -> bool:
    lines = {line.replace(" ", "").lower() for line in _read(_entry_file()).splitlines()}
    return bool(lines) and not lines.intersection(_DISABLED)


def turn_on(tray: Sequence[str], daemon: Sequence[str]) -> None:
    # Both or none.
    _require_ours(_entry_file())
    if has_systemd():
        _require_ours(_unit_file())
    passed = [f"{name}={os.environ[name]}" for name in _PASSED_ON if os.environ.get(name)]
    # env(1), as an autostart entry has no way of its own.
    words = ["env", *passed, *tray] if passed else tray
    _write(_entry_file(), _ENTRY.format(mark=_MARK, command=" ".join(map(_quoted_for_entry, words))))
    if not has_systemd():
        return
    environment = "".join(f"Environment={_quoted_for_unit(each)}\n" for each in passed)
    command = " ".join(map(_quoted_for_unit, daemon))
    _write(_unit_file(), _UNIT.format(mark=_MARK, command=command, environment=environment))
    systemctl("daemon-reload")
    systemctl("enable", UNIT)


def turn_off() -> None:
    _require_ours(_entry_file())
    if _is_ours(_unit_file()):
        if has_systemd():
            systemctl("disable", UNIT)
        _unit_file().unlink()
        if has_systemd():
            systemctl("daemon-reload")
    _entry_file().unlink(missing_ok=True)


def has_unit() -> bool:
    return _is_ours(_unit_file()) and has_systemd()


def is_active() -> bool:
    """Whether the daemon is one that systemd has started."""
    return _systemctl("is-active", UNIT).returncode == 0


def start() -> None:
    """Nothing to one that runs, or is about to."""
    _forgive()
    systemctl("start", UNIT)


def restart() -> None:
    _forgive()
    systemctl("restart", UNIT)


def _forgive() -> None:
    # After five crashes systemd would refuse it for minutes, to whoever asks. One that it does not know has had none.
    _systemctl("reset-failed", UNIT)


def has_systemd() -> bool:
    """One of this user's, that answers."""
    if shutil.which("systemctl") is None or "XDG_RUNTIME_DIR" not in os.environ:
        return False
    return Path(os.environ["XDG_RUNTIME_DIR"], "systemd", "private").exists()


def systemctl(*words: str) -> None:
    done = _systemctl(*words)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise AgtmuxError(ErrorCode.INTERNAL, f"systemctl --user {' '.join(words)}: {said[-1]}")


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemctl", "--user", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIME_LIMIT,
        check=False,
    )


def _require_ours(file: Path) -> None:
    if file.exists() and not _is_ours(file):
        raise AgtmuxError(ErrorCode.CONFIG, f"{file} is there and not agtmux's; move it away, then try again")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(text, "utf-8")
    beside.replace(file)


def _is_ours(file: Path) -> bool:
    return _MARK in _read(file)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _entry_file() -> Path:
    return _config_home() / "autostart" / ENTRY


def _unit_file() -> Path:
    return _config_home() / "systemd" / "user" / UNIT


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _quoted_for_entry(word: str) -> str:
    """By the rules of desktop entries: a quoted word, in which these are escaped, and the whole escaped once more."""
    inside = word.translate({ord(char): f"\\{char}" for char in '"`$\\'})
    return f'"{inside}"'.replace("\\", "\\\\").replace("%", "%%")


def _quoted_for_unit(word: str) -> str:
    """By systemd's: a quoted word without specifiers and variables."""
    inside = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inside}"'.replace("%", "%%").replace("$", "$$")


def log_file() -> Path:
    return Path(paths.state_directory(), "logs", "agtmux-bar.log")
