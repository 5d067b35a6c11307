"""What the app offers when it is first opened: each thing with what it changes, and none of it done unasked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.mac import commandline, dialogs, spawn
from AgtmuxBar.mac.bundle import Bundle, require_settled
from AgtmuxBar.mac.desktop import MacDesktop

_log = logging.getLogger(__name__)

_FILE: Final = "bar-welcomed"
_HOOKS_LIMIT: Final = 120.0


@dataclass(frozen=True, slots=True)
class Offer:
    choice: dialogs.Choice
    accept: Callable[[], object]


def offers(bundle: Bundle | None, desktop: MacDesktop) -> list[Offer]:
    """What can be offered here. A copy that macOS runs from a temporary place can link nothing to itself."""
    found = [
        Offer(
            dialogs.Choice(
                "hooks",
                "Let agents report to agtmux",
                "adds one command for each event to the settings of every agent that you use, and nothing else. "
                "`agtmux hooks uninstall` leaves those files as they were.",
            ),
            lambda: spawn.checked([*desktop.command(), "hooks", "install"], limit=_HOOKS_LIMIT),
        )
    ]
    if bundle is None:
        return found
    try:
        require_settled(bundle)
    except AgtmuxError as error:
        _log.warning("%s", error)
        # The hooks would refer to this copy too.
        return []
    if not commandline.is_ours(bundle):
        found.append(
            Offer(
                dialogs.Choice(
                    "command",
                    "Install the agtmux command",
                    f"makes the link {commandline.place()} to this app. To undo it, remove the link.",
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


def is_due() -> bool:
    return not _mark().exists()


def ask(available: Iterable[Offer]) -> list[Offer]:
    """On the main thread. What was ticked; asked once, whatever the answer."""
    available = list(available)
    if not available:
        return []
    chosen = dialogs.choose(
        "Welcome to agtmux",
        "agtmux shows in the menu bar which of your coding agents needs you. "
        "It works without any of this, and sees more, sooner, with it:",
        [offer.choice for offer in available],
        "Set Up",
        "Not Now",
    )
    paths.private_directory(paths.state_directory())
    _mark().touch(0o600)
    return [offer for offer in available if chosen is not None and offer.choice.key in chosen]


def carry_out(accepted: Iterable[Offer]) -> list[str]:
    """Off the main thread. What went wrong, in sentences; one that fails does not keep the next from being done."""
    troubles = []
    for offer in accepted:
        try:
            offer.accept()
        except (AgtmuxError, OSError) as error:
            _log.warning("%s: %s", offer.choice.label, error)
            troubles.append(f"{offer.choice.label}: {error}")
    return troubles


def _mark() -> Path:
    return Path(paths.state_directory(), _FILE)
