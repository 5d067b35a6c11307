"""`config.toml`: defaults, what may be set, and what is said about what may not."""

from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from agtmux.config import Config, load_config
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import Source, State
from agtmux.engine.transitions import Policy


def load(tmp_path: Path, text: str | bytes) -> Config:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path)


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path / "none.toml")
    assert config == Config() == load(tmp_path, "")
    assert config.policy() == Policy()
    assert (config.retention.payload, config.retention.metadata) == ("7d", "14d")


def test_the_defaults_are_the_specs() -> None:
    policy = Policy()
    assert policy.completed_to_idle == 120 * SECOND
    assert policy.skew_budget == 10 * SECOND
    assert policy.bind_window == 5 * SECOND


SETTINGS = {
    "completed_to_idle": "completed_to_idle",
    "skew_budget": "skew_budget",
    "seen_ttl": "seen_ttl",
    "bind_window": "bind_window",
    "pending_bind_ttl": "pending_bind_ttl",
}


@pytest.mark.parametrize(("setting", "field"), SETTINGS.items())
def test_every_duration_reaches_the_engine(tmp_path: Path, setting: str, field: str) -> None:
    policy = load(tmp_path, f'[states]\n{setting} = "1h1ms"').policy()
    changed = {each.name for each in fields(policy) if getattr(policy, each.name) != getattr(Policy(), each.name)}
    assert changed == {field}
    assert getattr(policy, field) == parse_duration("1h1ms")


def test_a_told_state_may_last_differently_while_running_and_else(tmp_path: Path) -> None:
    policy = load(tmp_path, '[states]\nrunning_ttl = "1m"\nsettled_ttl = "2m"').policy()
    lasts = {state: policy.ttl(Source.HOOK, state) // SECOND for state in State}
    assert lasts == {state: 60 if state is State.RUNNING else 120 for state in State}


DURATION = 'must be a duration, a number with its unit in quotes, such as "500ms"'
WRONG = {
    "a misspelt key": (
        '[states]\ncompleted_to_idel = "5s"',
        "[states] has no setting completed_to_idel; did you mean completed_to_idle?",
    ),
    "a key of nobody": ("[retention]\nx = 1", "[retention] has no setting x; known are payload, metadata"),
    "a misspelt table": ("[stats]", "there is no table [stats]; did you mean states?"),
    "a table that is none": ("log = 3", "log is a table and no value; write [log]"),
    "a number without a unit": ('[states]\nskew_budget = "5"', f"states.skew_budget is '5' and {DURATION}"),
    "a number": ("[states]\nskew_budget = 5", f"states.skew_budget is 5 and {DURATION}"),
    "a negative duration": ('[states]\nseen_ttl = "-5s"', f"states.seen_ttl is '-5s' and {DURATION}"),
    "retention that is no duration": (
        '[retention]\npayload = "a week"',
        f"retention.payload is 'a week' and {DURATION}",
    ),
    "metadata that is no duration": ('[retention]\nmetadata = "x"', "retention.metadata is 'x'"),
    "a list with one that is no duration": (
        '[targets]\nretry_after = ["1s", "2"]',
        "targets.retry_after is ['1s', '2'] and must be a list of durations, such as",
    ),
    "no list": ('[targets]\nretry_after = "1s"', "targets.retry_after is '1s' and must be a list"),
    "no TOML": ("states = [", "config.toml: this is not TOML: Invalid value (at end of document)"),
    "not UTF-8": (b"\xff\xfe", "config.toml: this is not UTF-8"),
    "tiny logs": ("[log]\nmax_bytes = 1", "log.max_bytes is 1 and must be a number, 10000 or more"),
    "a misspelt level": (
        '[log]\nlevel = "inof"',
        'log.level is \'inof\' and must be one of "debug", "info", "warning", "error"',
    ),
    "no logs": ("[log]\nfiles = 0", "log.files is 0 and must be a number from 1 to 100"),
    "true for a number": ("[log]\nfiles = true", "log.files is True and must be a number"),
}


def test_every_setting_says_what_is_allowed(tmp_path: Path) -> None:
    for table in msgspec.structs.fields(Config):
        for setting in msgspec.structs.fields(table.type):
            with pytest.raises(AgtmuxError, match=rf"config.toml: {table.name}\.{setting.name} is .* and must be "):
                load(tmp_path, f"[{table.name}]\n{setting.name} = 1979-05-27")


@pytest.mark.parametrize(("text", "names"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str | bytes, names: str) -> None:
    with pytest.raises(AgtmuxError) as refused:
        load(tmp_path, text)
    assert refused.value.code is ErrorCode.CONFIG
    assert str(tmp_path / "config.toml") in refused.value.message
    assert names in refused.value.message


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(AgtmuxError, match=r"cannot read .*: Is a directory") as refused:
        load_config(tmp_path)
    assert refused.value.code is ErrorCode.CONFIG
