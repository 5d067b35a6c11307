"""Names that others choose and git or tmux has to take: of branches, and of sessions. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

SESSION_PREFIX: Final = "cw_"
_LONGEST_BRANCH: Final = 200
_LONGEST_SESSION: Final = 64
# The rules of git-check-ref-format: what no part of a name may hold, begin or end with.
_NOT_IN_A_BRANCH: Final = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|\.$|^/|/$|^-|^@$|^HEAD$"
)
# To tmux a number sign begins a format, and the others say which part of a place is meant.
_NOT_IN_A_SESSION: Final = re.compile(r"[#:.=*?\[\]{}$@%!+~'\"\\;]|^-")


def check_branch(name: str) -> None:
    """Raises for what git would not take as a branch's name, or might take for something else."""
    if not name or len(name.encode("utf-8", "replace")) > _LONGEST_BRANCH or _NOT_IN_A_BRANCH.search(name):
        raise AgtmuxError(
            ErrorCode.USAGE, f"{name[:60]!r} is no name for a branch; git takes names such as feature/labels"
        )
    if not name.isprintable():
        raise AgtmuxError(ErrorCode.USAGE, f"{name[:60]!r} has characters that cannot be shown; name it otherwise")


def check_session(name: str) -> None:
    if not name or len(name) > _LONGEST_SESSION or not name.isprintable() or _NOT_IN_A_SESSION.search(name):
        raise AgtmuxError(
            ErrorCode.USAGE,
            f"{name[:60]!r} is no name for a session; use letters, digits, - and _, up to {_LONGEST_SESSION}",
        )


def session_of(folder: str) -> str:
    """The session of a work tree, named after its folder."""
    name = re.sub(r"[^\w-]+", "_", PurePosixPath(folder).name) or "root"
    return (SESSION_PREFIX + name)[:_LONGEST_SESSION]
