"""Where this copy of the app is: in a bundle or not, and whether it may be written down anywhere."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

IDENTIFIER: Final = "dev.agtmux.AgtmuxBar"
_TRANSLOCATED: Final = "/AppTranslocation/"


@dataclass(frozen=True, slots=True)
class Bundle:
    """`AgtmuxBar.app`, by its path."""

    path: Path

    @property
    def commands(self) -> Path:
        """sh scripts that find the bundle from wherever they are linked: what other programs are to be given."""
        return self.path / "Contents" / "Resources" / "bin"

    @property
    def daemon(self) -> Path:
        return self.path / "Contents" / "MacOS" / "agtmuxd"

    @property
    def is_translocated(self) -> bool:
        """Started where it was unpacked: macOS runs a copy, whose path is gone when it ends."""
        return _TRANSLOCATED in str(self.path)


def own_bundle(executable: str | None = None) -> Bundle | None:
    """The bundle that this process runs from, or None outside one."""
    path = Path(sys.executable if executable is None else executable)
    for parent in path.parents:
        if parent.name == "Contents" and parent.parent.suffix == ".app":
            return Bundle(parent.parent)
    return None


def require_settled(bundle: Bundle) -> None:
    """Nothing is to refer to a path that macOS has made up for this one run."""
    if bundle.is_translocated:
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED,
            "macOS runs this copy of AgtmuxBar from a temporary place; "
            "quit it, move AgtmuxBar.app to Applications with Finder and open it there",
        )
    if not os.access(bundle.path, os.R_OK) or str(bundle.path).startswith("/Volumes/"):
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED,
            f"{bundle.path} is on a disk that may go; move AgtmuxBar.app to Applications and open it there",
        )
