"""`config.toml`: every setting with its default. A misspelt key is an error that names it, never a silence."""

from __future__ import annotations

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
from agtmux.domain.limits import Limits
from agtmux.domain.states import State
from agtmux.engine.transitions import Policy

Duration = Annotated[str, msgspec.Meta(max_length=32)]
_DEFAULT = Policy()
_LIMITS = Limits()


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


class LogConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    max_bytes: Annotated[int, msgspec.Meta(ge=10_000)] = 2_000_000
    files: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


class McpConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # Whether agents are told of the bridge when agtmux comes up.
    register: bool = True


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    states: StatesConfig = StatesConfig()
    health: HealthConfig = HealthConfig()
    targets: TargetsConfig = TargetsConfig()
    retention: RetentionConfig = RetentionConfig()
    log: LogConfig = LogConfig()
    mcp: McpConfig = McpConfig()

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
        text = path.read_bytes()
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
            # A text is a duration, unless all that it may be are named.
            if isinstance(each, str) and not isinstance(inspect.type_info(kind), inspect.LiteralType):
                parse_duration(each)
    except (msgspec.ValidationError, AgtmuxError):
        return False
    return True


def _allowed(kind: Any) -> str:
    match inspect.type_info(kind):
        case inspect.LiteralType():
            return "one of " + ", ".join(f'"{value}"' for value in get_args(kind))
        case inspect.IntType(ge=least, le=None):
            return f"a number, {least} or more"
        case inspect.IntType(ge=least, le=most):
            return f"a number from {least} to {most}"
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType():
            return 'a list of durations, such as ["250ms", "1s"]'
    return 'a duration, a number with its unit in quotes, such as "500ms", "2s", "1h30m" or "7d"'


def _guess(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
