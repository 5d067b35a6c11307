"""How a pane is named in commands and requests.

    <ref>         ::= <runtime-ref> | <pane-ref>
    <runtime-ref> ::= "runtime:" <runtime-id>
    <runtime-id>  ::= /[A-Za-z0-9._:-]{16,128}/
    <pane-ref>    ::= "pane:" <target> "/" <session-enc> "/" <window-id> "/" <pane-id>
    <target>      ::= /[A-Za-z0-9._-]+/
    <session-enc> ::= RFC 3986 percent-encoded session name
    <window-id>   ::= "@" <digits>
    <pane-id>     ::= "%" <digits>

A session name may hold anything tmux allows, slashes included, which is why it is encoded and why the two ids
are tmux's immutable ones. Looking a ref up is the daemon's business; this file only reads and writes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

_RUNTIME_ID = re.compile(r"[A-Za-z0-9._:-]{16,128}")
_TARGET = re.compile(r"[A-Za-z0-9._-]+")
# What is handed to ssh must not be taken for an option, and is shown to people who paste it.
# A password has no place in it.
_SSH_TARGET = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][A-Za-z0-9._+-]*@)*(?:[A-Za-z0-9_][A-Za-z0-9._%:-]*|\[[0-9A-Fa-f:.%]+\](?::[0-9]+)?)/?"
)
_WINDOW_ID = re.compile(r"@[0-9]+")
_PANE_ID = re.compile(r"%[0-9]+")
_SESSION_ENC = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_EXPECTED: Final = (
    "write a pane as `agtmux list panes` shows it, its number (%3, or host/%3), its agent's name, or"
    " runtime:<runtime_id>"
)


@dataclass(frozen=True, slots=True)
class RuntimeRef:
    runtime_id: str

    def __str__(self) -> str:
        return f"runtime:{self.runtime_id}"


@dataclass(frozen=True, slots=True)
class PaneRef:
    target: str
    session_name: str
    window_id: str
    pane_id: str

    def __str__(self) -> str:
        return f"pane:{self.target}/{encode_session(self.session_name)}/{self.window_id}/{self.pane_id}"


@dataclass(frozen=True, slots=True)
class SessionRef:
    """`<target>/<session-enc>`, the form that `--target-session` takes."""

    target: str
    session_name: str

    def __str__(self) -> str:
        return f"{self.target}/{encode_session(self.session_name)}"


Ref = RuntimeRef | PaneRef


def parse_ref(text: str) -> Ref:
    kind, colon, rest = text.partition(":")
    if colon and kind == "runtime" and _RUNTIME_ID.fullmatch(rest):
        return RuntimeRef(rest)
    if colon and kind == "pane":
        parts = rest.split("/")
        if len(parts) == 4 and _WINDOW_ID.fullmatch(parts[2]) and _PANE_ID.fullmatch(parts[3]):
            return PaneRef(_target(parts[0], text), decode_session(parts[1]), parts[2], parts[3])
    raise _invalid(text)


def parse_session_ref(text: str) -> SessionRef:
    target, slash, session_enc = text.partition("/")
    if not slash:
        raise AgtmuxError(
            ErrorCode.REF_INVALID, f"{text[:200]!r} is not <target>/<session>, the session percent-encoded"
        )
    return SessionRef(_target(target, text), decode_session(session_enc))


def encode_session(session_name: str) -> str:
    raw = session_name.encode("utf-8")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in raw)


def decode_session(session_enc: str) -> str:
    if not _SESSION_ENC.fullmatch(session_enc):
        raise _bad_encoding(session_enc)
    raw = bytearray()
    position = 0
    while position < len(session_enc):
        if session_enc[position] == "%":
            raw.append(int(session_enc[position + 1 : position + 3], 16))
            position += 3
        else:
            raw.append(ord(session_enc[position]))
            position += 1
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad_encoding(session_enc) from None


def is_target_name(text: str) -> bool:
    return len(text) <= 64 and _TARGET.fullmatch(text) is not None


def is_ssh_target(text: str) -> bool:
    return len(text) <= 255 and _SSH_TARGET.fullmatch(text) is not None


def is_pane_id(text: str) -> bool:
    return len(text) <= 20 and _PANE_ID.fullmatch(text) is not None


def is_runtime_id(text: str) -> bool:
    return _RUNTIME_ID.fullmatch(text) is not None


def _target(name: str, text: str) -> str:
    if not is_target_name(name):
        raise _invalid(text)
    return name


def _invalid(text: str) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.REF_INVALID, f"{text[:200]!r} is no pane and no agent; {_EXPECTED}", {"ref": text[:200]}
    )


def _bad_encoding(session_enc: str) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.REF_INVALID_ENCODING,
        f"{session_enc[:200]!r} is not a percent-encoded UTF-8 session name; copy the ref from `list panes`",
        {"session_enc": session_enc[:200]},
    )
