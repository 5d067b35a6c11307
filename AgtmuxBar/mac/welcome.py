"""What the app offers when it is first opened: each thing with what it changes, and none of it done unasked."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError
from AgtmuxBar import bridge
from AgtmuxBar.mac import commandline, dialogs, spawn
from AgtmuxBar.mac.bundle import Bundle, require_settled
from AgtmuxBar.mac.desktop import MacDesktop

_log = logging.getLogger(__name__)

_FILE: Final = "bar-welcomed"
_HOOKS_LIMIT: Final = 120.0
# What is there already when the window opens.
_DAEMON: Final = (
    "Its daemon is run by launchd, also when you log in (~/Library/LaunchAgents/dev.agtmux.daemon.plist), "
    "until you hold ⌥ and choose Quit and stop the daemon. "
)


@dataclass(frozen=True, slots=True)
class Offer:
    choice: dialogs.Choice
    accept: Callable[[], object]
    # For what would come by itself later on if nobody had said no.
    decline: Callable[[], object] = lambda: None


def may_install(bundle: Bundle | None) -> bool:
    """A copy that macOS runs from a temporary place is to be named in nobody's settings."""
    if bundle is None:
        return True
    try:
        require_settled(bundle)
    except AgtmuxError as error:
        _log.warning("%s", error)
        return False
    return True


def offers(
    bundle: Bundle | None, desktop: MacDesktop, hooks: Iterable[str] = (), bridges: Mapping[str, str] | None = None
) -> list[Offer]:
    """What can be offered here, of the files that hooks would be written to and of those that each agent has the bridge
    from."""
    if not may_install(bundle):
        return []
    found = [_hooks(desktop, hooks), *_bridges(bridges or {})]
    if bundle is None:
        return found
    if not commandline.is_ours(bundle):
        found.append(
            Offer(
                dialogs.Choice(
                    "command",
                    "Install the agtmux command",
                    f"makes the link {_shown(str(commandline.place()))} to this app. To undo it, remove the link.",
                ),
                desktop.install_command,
            )
        )
    found.append(
        Offer(
            dialogs.Choice(
                "login",
                "Open at login",
                "adds AgtmuxBar to the Login Items in System Settings, where you can take it out.",
                is_on=False,
            ),
            lambda: desktop.launch_at_login(True),
        )
    )
    return found


def _hooks(desktop: MacDesktop, files: Iterable[str]) -> Offer:
    where = ", ".join(map(_shown, files)) or "the settings of every agent that you use"
    changes = (
        f"adds one command for each event to {where}, and nothing else. "
        "`agtmux hooks uninstall` leaves those files as they were."
    )
    return Offer(
        dialogs.Choice("hooks", "Let agents report to agtmux", changes),
        lambda: spawn.checked([*desktop.command(), "hooks", "install"], limit=_HOOKS_LIMIT),
    )


def _bridges(files: Mapping[str, str]) -> list[Offer]:
    """One an agent. It would be told at each start of the app, so a no has to be kept."""
    found: list[Offer] = []
    for agent, path in files.items():
        changes = f"the same in {_shown(path)}."
        if not found:
            changes = (
                f"adds agtmux's MCP server to {_shown(path)} while agtmux is open, and takes it out when you quit. "
                "MCP bridge in the menu turns it on and off for each agent."
            )
        found.append(
            Offer(
                dialogs.Choice(f"bridge {agent}", f"Let {agent} see the other agents", changes),
                accept=lambda agent=agent: bridge.choose([agent], on=True),  # type: ignore[misc]
                decline=lambda agent=agent: bridge.choose([agent], on=False),  # type: ignore[misc]
            )
        )
    return found


def _shown(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def hook_files() -> list[str]:
    """Those that `agtmux hooks install` would write to; none if nobody knows."""
    asked = {"action": "status", "search_path": os.environ.get("PATH", "")}
    try:
        items = Client(start=False, time_limit=_HOOKS_LIMIT).post("/v1/hooks", asked)["items"]
    except AgtmuxError as error:
        _log.info("hooks: %s", error)
        return []
    return list(dict.fromkeys(item["path"] for item in items if not item["error"]))


def is_due() -> bool:
    return not _mark().exists()


def ask(available: Iterable[Offer], bundle: Bundle | None = None) -> list[Offer]:
    """On the main thread. What was ticked; asked once, whatever the answer."""
    available = list(available)
    if not available:
        return []
    chosen = dialogs.choose(
        "Welcome to agtmux",
        f"agtmux shows in the menu bar which of your coding agents needs you. {'' if bundle is None else _DAEMON}"
        "It works without any of this, and sees more, sooner, with it:",
        [offer.choice for offer in available],
        "Set Up",
        "Not Now",
    )
    paths.private_directory(paths.state_directory())
    _mark().touch(0o600)
    return [offer for offer in available if chosen is not None and offer.choice.key in chosen]


def carry_out(available: Iterable[Offer], accepted: Collection[Offer]) -> list[str]:
    """Off the main thread. What went wrong, in sentences; one that fails does not keep the next from being done."""
    troubles = []
    for offer in available:
        try:
            (offer.accept if offer in accepted else offer.decline)()
        except (AgtmuxError, OSError) as error:
            _log.warning("%s: %s", offer.choice.label, error)
            troubles.append(f"{offer.choice.label}: {error}")
    return troubles


def _mark() -> Path:
    return Path(paths.state_directory(), _FILE)
