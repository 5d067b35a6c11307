"""What a doctor looks at, as plain values: what anybody can find out here, and what only the daemon knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agtmux.domain.states import Health


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder as it was found."""

    path: str
    # Permission bits; None if it is not there.
    mode: int | None = None
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class TmuxProgram:
    path: str | None = None
    # What it calls itself: "tmux 3.3a".
    said: str = ""
    is_too_old: bool = False
    # Why it cannot be used, if it cannot.
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HookProgram:
    """agtmux-hook, and whether an event that it was given came out at the other end."""

    path: str | None = None
    is_executable: bool = False
    # None if it could not be tried.
    works: bool | None = None


@dataclass(frozen=True, slots=True)
class Here:
    """What can be found out without a daemon."""

    state: Place
    # None where there is no state directory yet.
    free_bytes: int | None
    # None, and the reason, where no daemon could listen.
    socket: Place | None
    socket_folder: Place | None
    socket_trouble: str
    log_path: str
    config_path: str
    config_exists: bool
    config_trouble: str
    # Seconds since the epoch: of config.toml and the agents' files beside it, the latest change.
    settings_changed_at: float | None
    # A sentence for each file that cannot be read.
    agent_file_troubles: tuple[str, ...]
    tmux: TmuxProgram
    hook: HookProgram
    # What hooks had to keep for a daemon, and for how long the oldest of it may have been there.
    spool_bytes: int
    spool_seconds: float


@dataclass(frozen=True, slots=True)
class Daemon:
    """What a running daemon knows of itself."""

    version: str
    pid: int
    # Seconds since the epoch.
    started_at: float
    uptime_seconds: int
    database_notice: str | None
    failed_commits: int
    # Whether the last one did.
    is_failing: bool
    clock_ahead_seconds: int
    # Parts of it that failed and were begun again.
    failures: Mapping[str, int]
    refused: Mapping[str, int]
    spool: Mapping[str, int]
    # Events from no tmux server that is watched.
    homeless: int


@dataclass(frozen=True, slots=True)
class NoDaemon:
    """Nobody answers, or somebody who does not know the question."""

    # Who holds the daemon's lock all the same.
    pid: int | None = None
    # Of a daemon that does not know the question.
    version: str | None = None
    # Whether anybody listens on the socket.
    is_heard: bool = False
    # Others could replace its socket, so nothing is sent to it.
    is_unsafe: bool = False


@dataclass(frozen=True, slots=True)
class WatchedTarget:
    name: str
    kind: str
    health: Health
    panes: int = 0
    error: str | None = None
    # The command that mends that, where one does.
    mend: str = ""
    # Why its hooks are not heard.
    warning: str | None = None
    # What it has, or reports, more of than is taken in.
    excess: str | None = None
    # None before it was looked at.
    has_server: bool | None = None
    tmux_said: str = ""
    # By how many seconds this machine's clock is ahead of its.
    clock_ahead: float = 0.0


@dataclass(frozen=True, slots=True)
class OtherServer:
    """A tmux server of this machine that nobody watches."""

    socket: str
    panes: int
    # Whether whoever asks sits in it.
    is_callers: bool


@dataclass(frozen=True, slots=True)
class AgentHooks:
    """What an agent's settings say, by names of events."""

    # None where not even that can be told.
    agent: str | None
    path: str = ""
    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    # Run another command than they should, or should not be there.
    stale: tuple[str, ...] = ()
    # Names of settings in the same file that switch all hooks off.
    off: tuple[str, ...] = ()
    # Names of settings without which the file may be ignored.
    lacking: tuple[str, ...] = ()
    # Not for the version in use, or not known to be.
    left_out: tuple[str, ...] = ()
    # Why they cannot be told.
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentBridge:
    """What stands under the bridge's name in an agent's settings."""

    # None where not even that can be told.
    agent: str | None
    path: str = ""
    # As `agtmux mcp status` tells it.
    entry: str = ""
    # Whose it is.
    socket: str | None = None
    # Why it cannot be told.
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """One version of an agent, None if it cannot be told."""

    agent: str
    version: str | None
    # The panes it runs in, by their refs.
    refs: tuple[str, ...]
    is_installed: bool
    # Whether its screens were looked at when the rules were made, and whether there are any rules.
    is_verified: bool
    reads_screens: bool


@dataclass(frozen=True, slots=True)
class UnknownPane:
    ref: str
    target: str
    agent: str
    reason_code: str


@dataclass(frozen=True, slots=True)
class Facts:
    here: Here
    daemon: Daemon | NoDaemon
    # Of whoever asks.
    client_version: str
    # Only this one is asked about.
    target: str | None = None
    targets: tuple[WatchedTarget, ...] = ()
    other_servers: tuple[OtherServer, ...] = ()
    hooks: tuple[AgentHooks, ...] = ()
    bridges: tuple[AgentBridge, ...] = ()
    # Whether settings let agents be told of the bridge without being asked.
    wants_bridge: bool = True
    agents: tuple[AgentVersion, ...] = ()
    unknown_panes: tuple[UnknownPane, ...] = ()
    # Panes of watched tmux servers with an agent in them, by target.
    agent_panes: Mapping[str, int] = field(default_factory=dict)
