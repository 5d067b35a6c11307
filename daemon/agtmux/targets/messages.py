"""What a probe says, as types. A probe on a VM may say anything: what does not fit here is not taken."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import ForegroundProcess
from agtmux.probe.bridges import PIECE
from agtmux.probe.excerpts import LeftOut
from agtmux.probe.files import MOST_BYTES, FileState
from agtmux.probe.watching import LONGEST_TEXT

T = TypeVar("T")

_Line = Annotated[str, msgspec.Meta(max_length=4_096)]
_Word = Annotated[str, msgspec.Meta(max_length=512)]
_PaneId = Annotated[str, msgspec.Meta(pattern=r"\A%[0-9]{1,18}\Z")]
_Pid = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]

MOST_PANES = 5_000


class ForegroundRow(msgspec.Struct, frozen=True):
    pid: _Pid
    started: Annotated[float, msgspec.Meta(ge=0, le=2**33)]
    argv: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=16)]
    executable: _Word
    script: _Line
    package: _Word
    version: _Word

    def as_process(self) -> ForegroundProcess:
        return ForegroundProcess(
            self.pid, self.started, self.argv, self.executable, self.script, self.package, self.version
        )


class PaneRow(msgspec.Struct, frozen=True):
    pane_id: _PaneId
    pid: _Pid | None
    session_name: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
    window_id: Annotated[str, msgspec.Meta(pattern=r"\A@[0-9]{1,18}\Z")]
    window_name: _Line
    title: _Line
    cwd: _Line
    branch: _Word
    command: _Line
    mark: _Line
    foreground: Annotated[tuple[ForegroundRow, ...], msgspec.Meta(max_length=64)]
    worktree: _Line = ""


class Screen(msgspec.Struct, frozen=True):
    pane_id: _PaneId
    text: Annotated[str, msgspec.Meta(max_length=200_000)]


class Looked(msgspec.Struct, frozen=True):
    """What differs from the look before, on the same line."""

    # Pid and start of the tmux server, empty when there is none.
    server: Annotated[str, msgspec.Meta(pattern=r"\A([0-9]{1,10}-[0-9]{1,20})?\Z")]
    # By the clock over there.
    now: Annotated[float, msgspec.Meta(ge=0, le=2**40)]
    panes: Annotated[list[PaneRow], msgspec.Meta(max_length=MOST_PANES)]
    gone: Annotated[list[_PaneId], msgspec.Meta(max_length=MOST_PANES)]
    screens: Annotated[list[Screen], msgspec.Meta(max_length=MOST_PANES)]
    is_metered: bool
    # What tmux over there calls itself.
    tmux: _Word = ""


class Begun(msgspec.Struct, frozen=True):
    python: _Word
    # Where the tmux server's socket is, over there: with links followed, and as those within are told.
    sockets: Annotated[list[_Line], msgspec.Meta(max_length=4)]


class Door(msgspec.Struct, frozen=True):
    """Why the hooks over there are not heard; empty if they are."""

    complaint: _Line


class Hook(msgspec.Struct, frozen=True):
    type: _Line
    body: str
    lineage: Annotated[list[_Pid], msgspec.Meta(max_length=64)] | None = None


class SessionFile(msgspec.Struct, frozen=True):
    name: _Word
    path: _Line
    gone: bool
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
    # What is in the same folder.
    beside: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=64)] = ()


class Grown(msgspec.Struct, frozen=True):
    """Files that are followed have changed."""

    paths: Annotated[list[_Line], msgspec.Meta(max_length=500)]


class Stirred(msgspec.Struct, frozen=True):
    """There may be something to see."""


class Woken(msgspec.Struct, frozen=True):
    """There is something to see: tmux itself says so."""


_Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
_Pids = Annotated[tuple[_Pid, ...], msgspec.Meta(max_length=64)]


class BridgeCame(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The words about bridges have no place for a pane or a target: whose they are is worked out here."""

    notice: str
    bridge: _Number


class BridgeSaid(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A piece of a line; with the last one the processes that say it, first those with a terminal or none, then only
    those with one."""

    notice: str
    bridge: _Number
    data: Annotated[bytes, msgspec.Meta(max_length=PIECE)]
    is_last: bool
    lineage: _Pids | None = None
    on_terminal: _Pids | None = None
    service: _Word = ""


class BridgeTook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    notice: str
    bridge: _Number


class BridgeLeft(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    notice: str
    bridge: _Number


BridgeNotice = BridgeCame | BridgeSaid | BridgeTook | BridgeLeft
Notice = Begun | Door | Hook | SessionFile | Grown | Stirred | Woken | BridgeNotice
_NOTICES: dict[str, type[Notice]] = {
    "begun": Begun,
    "door": Door,
    "hook": Hook,
    "file": SessionFile,
    "grown": Grown,
    "stirred": Stirred,
    "woken": Woken,
    "bridge": BridgeCame,
    "said": BridgeSaid,
    "took": BridgeTook,
    "left": BridgeLeft,
}


class Environ(msgspec.Struct, frozen=True):
    """What was asked for of the environment over there. Paths are made of it, which people are shown."""

    values: Annotated[dict[_Word, _Line], msgspec.Meta(max_length=64)]

    def __post_init__(self) -> None:
        if not all(value.isprintable() for value in self.values.values()):
            raise ValueError("a variable that is not text")


class Versions(msgspec.Struct, frozen=True):
    """Of the programs that were asked for and are there; empty where it cannot be told."""

    versions: Annotated[dict[_Word, _Word], msgspec.Meta(max_length=64)]


class FileRead(msgspec.Struct, frozen=True):
    data: Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)] | None
    mode: Annotated[int, msgspec.Meta(ge=0, le=0o7777)] = 0
    target: _Line | None = None
    # Of an excerpt, what is not in it, and the digest of the file.
    left_out: LeftOut | None = None
    whole_digest: Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{64})?\Z")] = ""

    def __post_init__(self) -> None:
        if self.target is not None and not self.target.isprintable():
            raise ValueError("a path that is not text")
        if (self.left_out is None) != (not self.whole_digest):
            raise ValueError("an excerpt without the digest of its file")
        if self.left_out is not None:
            self.left_out.check(self.data or b"")

    def as_state(self) -> FileState | None:
        if self.data is None:
            return None
        return FileState(self.data, self.mode, self.target, self.left_out, self.whole_digest)


class Folder(msgspec.Struct, frozen=True):
    is_folder: bool


class Answered(msgspec.Struct, frozen=True):
    """Whether anybody listens on a socket."""

    is_answered: bool


class Made(msgspec.Struct, frozen=True):
    """The folders that had to be made for a file."""

    folders: Annotated[list[_Line], msgspec.Meta(max_length=64)]


class Removed(msgspec.Struct, frozen=True):
    """A file is gone."""


class TmuxHooks(msgspec.Struct, frozen=True):
    is_running: bool
    there: Annotated[list[_Word], msgspec.Meta(max_length=64)]
    changed: Annotated[list[_Word], msgspec.Meta(max_length=64)]
    other: _Word


class Output(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=4_000_000)]


class TranscriptFound(msgspec.Struct, frozen=True):
    """The file of an agent's conversation; empty if none is known to be its."""

    path: _Line
    session_id: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{0,128}\Z")]
    # Whether its process says so, and not a hook alone.
    is_proven: bool


class Slice(msgspec.Struct, frozen=True):
    """Whole lines of a file, and the place after them."""

    is_there: bool
    # Nothing before this place is what was there: it was read from there on anew.
    is_anew: bool = False
    # Bytes at its beginning that are not told.
    skipped: Annotated[int, msgspec.Meta(ge=0)] = 0
    lines: Annotated[bytes, msgspec.Meta(max_length=4_000_000)] = b""
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    mark: Annotated[str, msgspec.Meta(max_length=64)] = ""
    is_within: bool = False
    has_more: bool = False


class LogKept(msgspec.Struct, frozen=True):
    """Where a log was written to, which people are shown."""

    path: _Line

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or not self.path.isprintable():
            raise ValueError("a path that is none")


class Glanced(msgspec.Struct, frozen=True):
    """What a pane shows now, and what has its terminal."""

    text: Annotated[str, msgspec.Meta(max_length=200_000)]
    title: _Line
    command: _Line
    group: int | None
    # How many lines have scrolled away.
    history: Annotated[int, msgspec.Meta(ge=0)]
    # Why tmux would not give a key to what runs there, or to more than that; empty if it would.
    hindrance: _Word
    # Whether the process that is meant has the terminal.
    is_in_front: bool
    # The columns of the pane.
    width: Annotated[int, msgspec.Meta(ge=0)] = 0


class Did(msgspec.Struct, frozen=True):
    """Whether a key was pressed; it was not if the pane did not show any more what it was meant for."""

    is_done: bool


class Placed(msgspec.Struct, frozen=True):
    """Where a pane is, and how tmux over there is called. A command is made of it, which people are shown."""

    tmux: _Line
    socket: _Line
    session_id: Annotated[str, msgspec.Meta(pattern=r"\A\$[0-9]{1,18}\Z")]
    window_id: Annotated[str, msgspec.Meta(pattern=r"\A@[0-9]{1,18}\Z")]
    # The terminal that shows it now, or is to be moved; empty if none was asked for.
    client: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9/._:-]{0,256}\Z")]

    def __post_init__(self) -> None:
        for path in (self.tmux, self.socket):
            if not path.startswith("/") or not path.isprintable():
                raise ValueError("a path that is none")


class Declined(msgspec.Struct, frozen=True):
    """Why what was asked for was not done."""

    code: Literal[
        "E_CONFIG", "E_PRECONDITION_FAILED", "E_TIMEOUT", "E_TARGET_UNREACHABLE", "E_INTERNAL", "E_RUNTIME_STALE"
    ]
    message: _Line


class Reply(msgspec.Struct, frozen=True):
    id: int
    looked: Looked | None = None
    failed: str | None = None
    # Of the form that the question calls for; empty if there is none.
    done: msgspec.Raw = msgspec.Raw()
    declined: Declined | None = None


class _Said(msgspec.Struct, frozen=True):
    notice: str | None = None


_SAID = msgspec.json.Decoder(_Said)
_REPLY = msgspec.json.Decoder(Reply)


def read(frame: bytes) -> Reply | Notice:
    """Raises AgtmuxError for what no probe of ours would say."""
    try:
        said = _SAID.decode(frame)
        if said.notice is not None:
            kind = _NOTICES.get(said.notice)
            if kind is None:
                raise refused(f"it asks for {said.notice[:40]!r}, and a target may only report")
            notice: Notice = msgspec.json.decode(frame, type=kind)
            return notice
        reply = _REPLY.decode(frame)
        if [reply.looked, reply.failed, reply.done or None, reply.declined].count(None) != 3:
            raise refused("it said something that is neither an answer nor a report")
        return reply
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from None


def answer(done: msgspec.Raw, kind: type[T]) -> T:
    """Raises AgtmuxError for what is no answer to that question."""
    try:
        return msgspec.json.decode(done, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> AgtmuxError:
    return refused(f"it said something that cannot be read: {str(error)[:200]}")


def refused(what: str, **details: Any) -> AgtmuxError:
    return AgtmuxError(ErrorCode.FORBIDDEN, f"what this target says is not taken: {what}", details)
