"""macOS as the app asks for it: terminals, files, the clipboard, the login item, and the daemon under launchd."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agtmux import paths
from agtmux.client import Client, start_daemon
from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar import looking
from AgtmuxBar.mac import commandline, loginitem, spawn, terminals
from AgtmuxBar.mac.bundle import Bundle, require_settled
from AgtmuxBar.mac.launchd import Launchd
from AgtmuxBar.settings import Settings, Surroundings


class MacDesktop:
    """`AgtmuxBar.app.Desktop`. Without a bundle there is no login item, no agent of launchd's and nothing to link."""

    def __init__(self, bundle: Bundle | None, launchd: Launchd | None = None) -> None:
        self._bundle = bundle
        self._launchd = launchd or Launchd()

    def surroundings(self) -> Surroundings:
        found = tuple((terminal.name, terminal.title) for terminal, _ in terminals.installed())
        bundle = self._bundle
        return Surroundings(
            terminals=found,
            is_launched_at_login=None if bundle is None else loginitem.is_on(),
            has_command_line_tool=None if bundle is None else commandline.is_ours(bundle),
        )

    def command(self) -> Sequence[str]:
        """By the bundle's own script, or by the Python that runs us."""
        return [str(self._bundle.commands / "agtmux")] if self._bundle else paths.python_module("agtmux.cli.main")

    def open_terminal(self, argv: Sequence[str], settings: Settings, *, stays: bool = False) -> None:
        spawn.start(terminals.argv_to_open(argv, settings.terminal, stays=stays))

    def open_file(self, path: str) -> None:
        # As text: nobody has a program for .toml or .log, and Finder would only say so.
        spawn.checked(["/usr/bin/open", "-t", path])

    def copy(self, text: str) -> None:
        spawn.checked(["/usr/bin/pbcopy"], text)

    def launch_at_login(self, on: bool) -> None:
        loginitem.turn(on, self._in_bundle("started at login"))

    def install_command(self) -> None:
        commandline.install(self._in_bundle("linked"))

    def looked_at(self, targets: Sequence[Mapping[str, Any]]) -> Collection[looking.Place]:
        # tmux's word: to ask macOS what is in front would take a permission that is not worth it.
        return looking.looked_at(targets)

    def start_daemon(self) -> bool:
        """One that runs already, whoever started it, is the daemon: a second one would only be turned away, and launchd
        would try again every ten seconds."""
        if Client(start=False).is_answered() or not self._may_use_launchd():
            return False
        self._start_by_launchd()
        return True

    def restart_daemon(self) -> None:
        if self._may_use_launchd() and self._launchd.is_loaded():
            own = self._launchd.pid()
            if own is None or _answering() not in (None, own):
                # `agtmux down` leaves launchd's loaded and at rest. One from a terminal since then would turn it away.
                self._down()
            self._launchd.restart()
            return
        self._down()
        if not self.start_daemon():
            start_daemon(paths.socket_path())

    def stop_daemon(self) -> None:
        if self._may_use_launchd():
            self._launchd.remove()
        # One that a terminal has started is none of launchd's.
        self._down()

    def _start_by_launchd(self) -> None:
        assert self._bundle is not None
        logs = Path(paths.state_directory(), "logs")
        paths.private_directory(paths.state_directory())
        paths.private_directory(str(logs))
        self._launchd.start(self._bundle.daemon, logs / "agtmuxd.stderr")

    def _may_use_launchd(self) -> bool:
        """Not by a path that is gone after this run."""
        if self._bundle is None:
            return False
        try:
            require_settled(self._bundle)
        except AgtmuxError:
            return False
        return True

    def _down(self) -> None:
        # Without this word it would end us too.
        spawn.checked([*self.command(), "down", "--headless"])

    def _in_bundle(self, what: str) -> Bundle:
        if self._bundle is None:
            raise AgtmuxError(
                ErrorCode.UNSUPPORTED, f"only AgtmuxBar.app can be {what}; this one runs from {Path(__file__).parent}"
            )
        return self._bundle


def _answering() -> int | None:
    """The process that is the daemon."""
    try:
        return int(Client(start=False).get("/v1/health")["pid"])
    except AgtmuxError:
        return None
