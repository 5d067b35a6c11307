"""What a probe says of git and of what it started, as types. A probe on a VM may say anything: what does not fit here
is not taken."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

# A path of 4096 bytes, each of them told as an escape.
_Path = Annotated[str, msgspec.Meta(max_length=16_384)]
_Word = Annotated[str, msgspec.Meta(max_length=512)]
_Files = Annotated[list[_Path], msgspec.Meta(max_length=20_000)]
FileStatus = Literal["added", "modified", "deleted", "renamed", "untracked"]


class Found(msgspec.Struct, frozen=True):
    """A folder's place in a repository."""

    # Empty in a bare one.
    top: _Path
    main: _Path
    branch: _Word
    commit: _Word
    is_main: bool
    is_bare: bool
    is_submodule: bool


class ChangedFile(msgspec.Struct, frozen=True, rename={"before": "from"}):
    path: _Path
    status: FileStatus
    before: _Path = ""


class Changes(msgspec.Struct, frozen=True):
    top: _Path
    branch: _Word
    files: Annotated[list[ChangedFile], msgspec.Meta(max_length=20_000)]
    total: Annotated[int, msgspec.Meta(ge=0)]


class Difference(msgspec.Struct, frozen=True):
    top: _Path
    branch: _Word
    diff: Annotated[str, msgspec.Meta(max_length=1_000_000)]
    is_cut: bool
    untracked: _Files


class Worktree(msgspec.Struct, frozen=True):
    path: _Path
    repository: _Path
    branch: _Word
    commit: _Word
    is_main: bool
    is_bare: bool
    # Its folder is not there any more.
    is_gone: bool
    # None if that could not be told in time.
    is_dirty: bool | None


class Survey(msgspec.Struct, frozen=True):
    worktrees: Annotated[list[Worktree], msgspec.Meta(max_length=5_000)]
    # Folder → the work tree it is in.
    places: dict[_Path, _Path]


class Added(msgspec.Struct, frozen=True):
    top: _Path
    branch: _Word
    is_new: bool
    is_new_branch: bool
    # Files that a filter of the settings would have made other than they are.
    unfiltered: Annotated[int, msgspec.Meta(ge=0)] = 0


class Removed(msgspec.Struct, frozen=True):
    """Or would be."""

    top: _Path
    branch: _Word


class Started(msgspec.Struct, frozen=True):
    """A pane that was made."""

    server: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,10}-[0-9]{1,20}\Z")]
    pane_id: Annotated[str, msgspec.Meta(pattern=r"\A%[0-9]{1,18}\Z")]
    pid: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    window_id: Annotated[str, msgspec.Meta(pattern=r"\A@[0-9]{1,18}\Z")]


class Showing(msgspec.Struct, frozen=True):
    is_dead: bool
    text: Annotated[str, msgspec.Meta(max_length=20_000)]
