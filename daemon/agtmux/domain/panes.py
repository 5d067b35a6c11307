"""Targets and panes as they were last seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agtmux.domain.runtimes import BootId, Inhabitant, PaneId, TargetId
from agtmux.domain.states import Health
from agtmux.domain.timestamps import Timestamp

HOST: Final = TargetId("host")
# There while there are chat sessions, which are its panes.
CHAT: Final = TargetId("chat")


def machine_of(target_id: TargetId) -> TargetId:
    """The target whose probe is where an agent works: chat sessions are on this machine."""
    return HOST if target_id == CHAT else target_id


class TargetKind(StrEnum):
    LOCAL = "local"
    SSH = "ssh"
    # Sessions of this machine that tell of themselves. Nobody adds or looks at one, and no tmux server is behind it.
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class Target:
    """A tmux server that is watched. Its id is its name: what a removed target left behind is ended with it."""

    target_id: TargetId
    kind: TargetKind
    connection_ref: str = ""
    # A `-L` name or a `-S` path; empty means tmux's default.
    tmux_socket: str = ""
    is_default: bool = False
    # Removed by itself once its server is gone.
    is_ephemeral: bool = False
    health: Health = Health.OK
    last_seen_at: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Pane:
    target_id: TargetId
    pane_id: PaneId
    session_name: str
    window_id: str
    window_name: str
    title: str = ""
    cwd: str = ""
    # The git branch of `cwd`, empty where there is none.
    branch: str = ""
    # The top of the git work tree that `cwd` is in, empty where it is in none.
    worktree: str = ""


@dataclass(frozen=True, slots=True)
class ForegroundProcess:
    """A process in front in a pane, or what started it, as the system describes it."""

    pid: int
    # Seconds since the epoch, by the clock of its machine.
    started: float
    argv: tuple[str, ...]
    executable: str
    # What an interpreter was given to run, and the package it belongs to.
    script: str = ""
    package: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class SeenPane:
    pane: Pane
    inhabitant: Inhabitant


@dataclass(frozen=True, slots=True)
class Topology:
    """All panes of one target at one moment. `taken_at` is when the look began, so later events are later."""

    target_id: TargetId
    taken_at: Timestamp
    tmux_server_boot_id: BootId | None = None
    panes: tuple[SeenPane, ...] = ()
