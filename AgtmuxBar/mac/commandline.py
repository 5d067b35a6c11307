"""`agtmux` for the terminal: a link to the script in the bundle, where a shell finds it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar.mac.bundle import Bundle, require_settled
from AgtmuxBar.mac.environment import search_path

NAME: Final = "agtmux"
# Where one needs no password, those that a shell looks in first. The last one is made if need be.
_FOLDERS: Final = ("/opt/homebrew/bin", "/usr/local/bin", "~/.local/bin")


def is_ours(bundle: Bundle, path: str | None = None) -> bool:
    """Whether the `agtmux` that a shell would find is this bundle's."""
    found = shutil.which(NAME, path=search_path() if path is None else path)
    return found is not None and Path(found).resolve() == (bundle.commands / NAME).resolve()


def place(folders: Sequence[str] = _FOLDERS) -> Path:
    """Where the link goes."""
    candidates = [Path(folder).expanduser() for folder in folders]
    for folder in candidates:
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / NAME
    return candidates[-1] / NAME


def install(bundle: Bundle, folders: Sequence[str] = _FOLDERS) -> Path:
    """Made or pointed here anew. What somebody else put there is left."""
    require_settled(bundle)
    link, goal = place(folders), bundle.commands / NAME
    if link.is_symlink() and link.readlink() == goal:
        return link
    if os.path.lexists(link) and not _is_link_of_ours(link):
        raise AgtmuxError(
            ErrorCode.CONFIG, f"{link} is there already and is not AgtmuxBar's; remove it, or link {goal} yourself"
        )
    link.parent.mkdir(parents=True, exist_ok=True)
    # In one step: a shell that looks meanwhile finds the old one or the new one.
    made = link.with_name(f".{NAME}.{os.getpid()}")
    made.unlink(missing_ok=True)
    made.symlink_to(goal)
    made.replace(link)
    return link


def uninstall(bundle: Bundle, folders: Sequence[str] = _FOLDERS) -> None:
    for folder in folders:
        link = Path(folder).expanduser() / NAME
        if link.is_symlink() and link.readlink() == bundle.commands / NAME:
            link.unlink()


def _is_link_of_ours(path: Path) -> bool:
    """To a bundle of ours, perhaps in a place where it no longer is."""
    return path.is_symlink() and str(path.readlink()).endswith(f"AgtmuxBar.app/Contents/Resources/bin/{NAME}")
