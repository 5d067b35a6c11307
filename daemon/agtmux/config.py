"""`config.toml`: every setting with its default. A misspelt key is an error that names it, never a silence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

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


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    states: StatesConfig = StatesConfig()
    health: HealthConfig = HealthConfig()
    targets: TargetsConfig = TargetsConfig()
    retention: RetentionConfig = RetentionConfig()
    log: LogConfig = LogConfig()

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
        config = msgspec.toml.decode(text, type=Config)
        _check_durations(config)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {error}; correct it or remove the line") from None
    except AgtmuxError as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {error.message}") from None
    return config


def _check_durations(config: Config) -> None:
    config.policy()
    config.health_policy()
    config.limits()
    for duration in (config.retention.payload, config.retention.metadata):
        parse_duration(duration)
