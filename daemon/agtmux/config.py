"""`config.toml`: every setting with its default. A misspelt key is an error that names it, never a silence."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import inspect

from agtmux.domain.durations import format_duration, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.health import HealthPolicy
from agtmux.domain.limits import LaunchLimits, Limits, MailLimits
from agtmux.domain.states import State
from agtmux.engine.transitions import Policy
from agtmux.probe.owners import NotOurs, check_path

Duration = Annotated[str, msgspec.Meta(max_length=32)]
# Two patterns of names.
Pair = Annotated[str, msgspec.Meta(pattern=r"\A[^\s>]{1,80} -> [^\s>]{1,80}\Z")]
# From the root, below the home, or beside a repository. The others are durations.
Folder = Annotated[str, msgspec.Meta(max_length=1_024, pattern=r"\A(?:/|~/|\{repository\})[^\x00-\x1f]*\Z")]
# From the root or below the home; empty is none.
File = Annotated[str, msgspec.Meta(max_length=1_024, pattern=r"\A(?:(?:/|~/)[^\x00-\x1f]*)?\Z")]
Host = Annotated[str, msgspec.Meta(max_length=253, pattern=r"\A[A-Za-z0-9:](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?\Z")]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
_DEFAULT = Policy()
_MAIL = MailLimits()
_LIMITS = Limits()
_LAUNCHES = LaunchLimits()


class StatesConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How long what was told or seen counts."""

    completed_to_idle: Duration = format_duration(_DEFAULT.completed_to_idle)
    skew_budget: Duration = format_duration(_DEFAULT.skew_budget)
    running_ttl: Duration = format_duration(_DEFAULT.told_ttl[State.RUNNING])
    settled_ttl: Duration = format_duration(_DEFAULT.told_ttl[State.IDLE])
    seen_ttl: Duration = format_duration(_DEFAULT.seen_ttl)
    bind_window: Duration = format_duration(_DEFAULT.bind_window)
    pending_bind_ttl: Duration = format_duration(_DEFAULT.pending_bind_ttl)


class HealthConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """When a target that cannot be looked at counts as down, and when it is well again."""

    failures_to_down: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    within: Duration = "30s"
    successes_to_ok: Annotated[int, msgspec.Meta(ge=1, le=100)] = 2


class TargetsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How long a target may take, and how soon one that failed is tried again."""

    connect_timeout: Duration = format_duration(_LIMITS.connect)
    command_timeout: Duration = format_duration(_LIMITS.command)
    retry_after: tuple[Duration, ...] = tuple(map(format_duration, _LIMITS.retries))
    longest_pause: Duration = format_duration(_LIMITS.longest_pause)


class RetentionConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    payload: Duration = "7d"
    metadata: Duration = "14d"
    conversations: Duration = "30d"
    # Of the database. Beyond it the oldest goes first, of the target that takes the most room.
    max_bytes: Annotated[int, msgspec.Meta(ge=10_000_000)] = 512_000_000


class LogConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    max_bytes: Annotated[int, msgspec.Meta(ge=10_000)] = 2_000_000
    files: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


class McpConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # Whether agents are told of the bridge when agtmux comes up; without it, whatever the user has decided elsewhere.
    register: bool | None = None


class MessagesConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What agents may say to each other."""

    # How long a message waits for its receiver, if its sender does not say.
    ttl: Duration = "1h"
    # Messages a minute, from one to another and from one to all.
    per_pair: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = _MAIL.per_pair
    per_sender: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = _MAIL.per_sender
    # How many may wait for one agent.
    waiting: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = _MAIL.waiting
    # Who must not write to whom, by name: "writer -> reviewer".
    deny: tuple[Pair, ...] = ()
    # How long each step of a task outside teams may take before whoever gave it is told; "0s" is no limit.
    send_timeout: Duration = "10s"
    receive_timeout: Duration = "60s"
    task_timeout: Duration = "300s"
    idle_timeout: Duration = "120s"


class LaunchConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How many agents may be launched, and where their work trees lie."""

    most_agents: Count = _LAUNCHES.most_agents
    most_per_agent: Count = _LAUNCHES.most_per_agent
    per_minute: Count = _LAUNCHES.per_minute
    per_minute_overall: Count = _LAUNCHES.per_minute_overall
    # How long one may take until it is up.
    start_timeout: Duration = "30s"
    # A folder for each repository, or for all; `{repository}` is the repository's own path.
    worktrees: Folder = "{repository}.worktrees"
    # Whether a process of which nobody knows who started it has the user's rights: a script's, and also what an agent
    # has let go of.
    trust_outside: bool = False


AgentType = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9_-]{0,63}\Z")]


class AgentsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # Types of agents that are not to be watched, as "cursor".
    disable: tuple[AgentType, ...] = ()


class ConversationsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # What they are taken from: the files that agents write, what panes show where there is none, or nothing at all.
    sources: Literal["all", "transcripts", "screens", "none"] = "all"


class BoardConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The web page."""

    # Whether it is there as soon as the daemon is.
    open: bool = False
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 4127
    bind: Host = "127.0.0.1"
    # What else this machine is called, where it is reached from others.
    hosts: tuple[Host, ...] = ()
    # Where the token is kept instead of in the keyring.
    token_file: File = ""


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    states: StatesConfig = StatesConfig()
    health: HealthConfig = HealthConfig()
    targets: TargetsConfig = TargetsConfig()
    retention: RetentionConfig = RetentionConfig()
    log: LogConfig = LogConfig()
    mcp: McpConfig = McpConfig()
    messages: MessagesConfig = MessagesConfig()
    launch: LaunchConfig = LaunchConfig()
    agents: AgentsConfig = AgentsConfig()
    conversations: ConversationsConfig = ConversationsConfig()
    board: BoardConfig = BoardConfig()

    def policy(self) -> Policy:
        told = {
            state: parse_duration(self.states.running_ttl if state is State.RUNNING else self.states.settled_ttl)
            for state in State
        }
        return Policy(
            skew_budget=parse_duration(self.states.skew_budget),
            completed_to_idle=parse_duration(self.states.completed_to_idle),
            told_ttl=told,
            seen_ttl=parse_duration(self.states.seen_ttl),
            bind_window=parse_duration(self.states.bind_window),
            pending_bind_ttl=parse_duration(self.states.pending_bind_ttl),
        )

    def health_policy(self) -> HealthPolicy:
        return HealthPolicy(
            failures_to_down=self.health.failures_to_down,
            within=parse_duration(self.health.within),
            successes_to_ok=self.health.successes_to_ok,
        )

    def mail_limits(self) -> MailLimits:
        return MailLimits(self.messages.per_pair, self.messages.per_sender, self.messages.waiting)

    def launch_limits(self) -> LaunchLimits:
        return LaunchLimits(
            most_agents=self.launch.most_agents,
            most_per_agent=self.launch.most_per_agent,
            per_minute=self.launch.per_minute,
            per_minute_overall=self.launch.per_minute_overall,
        )

    def limits(self) -> Limits:
        return Limits(
            connect=parse_duration(self.targets.connect_timeout),
            command=parse_duration(self.targets.command_timeout),
            retries=tuple(parse_duration(pause) for pause in self.targets.retry_after),
            longest_pause=parse_duration(self.targets.longest_pause),
        )


def load_config(path: Path) -> Config:
    """The user's settings over the defaults; no file means the defaults."""
    try:
        check_path(os.fsencode(path.absolute()))
        text = path.read_bytes()
    except NotOurs as error:
        raise AgtmuxError(
            ErrorCode.CONFIG, f"{path} is not read: {error.strerror}; take that right away (`chmod go-w`)"
        ) from None
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"cannot read {path}: {error.strerror}") from None
    try:
        return _checked(tomllib.loads(text.decode("utf-8")))
    except UnicodeDecodeError:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: this is not UTF-8; save it as that") from None
    except tomllib.TOMLDecodeError as error:
        raise AgtmuxError(
            ErrorCode.CONFIG, f"{path}: this is not TOML: {error}; correct it or remove the line"
        ) from None
    except _Wrong as wrong:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {wrong}") from None


class _Wrong(Exception):
    """What is wrong with a setting, and what is allowed, without the file's name."""


def _checked(found: dict[str, Any]) -> Config:
    tables = {field.name: field.type for field in msgspec.structs.fields(Config)}
    for name, content in found.items():
        if name not in tables:
            raise _Wrong(f"there is no table [{name[:40]}]{_guess(name, tables)}")
        if not isinstance(content, dict):
            raise _Wrong(f"{name} is a table and no value; write [{name}] and its settings below")
        kinds = {field.name: field.type for field in msgspec.structs.fields(tables[name])}
        for key, value in content.items():
            if key not in kinds:
                raise _Wrong(f"[{name}] has no setting {key[:40]}{_guess(key, kinds)}")
            if not _is_allowed(value, kinds[key]):
                shown = str(value) if isinstance(value, (bool, int, float)) else repr(value)
                raise _Wrong(f"{name}.{key} is {shown[:60]} and must be {_allowed(kinds[key])}")
    return msgspec.convert(found, Config)


def _is_allowed(value: Any, kind: Any) -> bool:
    try:
        read = msgspec.convert(value, kind)
        for each in read if isinstance(read, tuple) else [read]:
            # A text is a duration, unless it is said otherwise what it may be.
            if isinstance(each, str) and _is_duration(kind):
                parse_duration(each)
    except (msgspec.ValidationError, AgtmuxError):
        return False
    return True


def _is_duration(kind: Any) -> bool:
    match inspect.type_info(kind):
        case inspect.StrType(pattern=None) | inspect.VarTupleType(item_type=inspect.StrType(pattern=None)):
            return True
    return False


def _allowed(kind: Any) -> str:
    if kind is Folder:
        return 'a path that begins with "/", "~/" or "{repository}"'
    if kind is File:
        return 'a path that begins with "/" or "~/"'
    if kind is Host:
        return 'an address, such as "127.0.0.1"'
    if kind == tuple[Host, ...]:
        return 'a list of names, such as ["laptop.local"]'
    if kind == tuple[AgentType, ...]:
        return 'a list of agents, such as ["cursor"]'
    match inspect.type_info(kind):
        case inspect.LiteralType():
            return "one of " + ", ".join(f'"{value}"' for value in get_args(kind))
        case inspect.IntType(ge=least, le=None):
            return f"a number, {least} or more"
        case inspect.IntType(ge=least, le=most):
            return f"a number from {least} to {most}"
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType(item_type=inspect.StrType(pattern=pattern)) if pattern is not None:
            return 'a list of pairs of names, such as ["writer -> reviewer"]'
        case inspect.VarTupleType():
            return 'a list of durations, such as ["250ms", "1s"]'
    return 'a duration, a number with its unit in quotes, such as "500ms", "2s", "1h30m" or "7d"'


def _guess(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
