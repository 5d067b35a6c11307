"""What agents write down of themselves while they run: whose file it is, and what it says.

Such files are undocumented and closed to nobody, so they never decide alone: `witness.py` weighs them against the
screen. What fits no rule says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal

import msgspec

from agtmux.agents.hooks import Condition, holds
from agtmux.domain.states import State

_PID: Final = "{pid}"


@dataclass(frozen=True, slots=True)
class Status:
    """What a session's file says its agent is doing."""

    state: State
    reason_code: str
    # For people: where it stands.
    note: str


class SessionRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`says` nothing: an entry that is known and means nothing, so that the one before it counts."""

    when: dict[str, Condition]
    says: State | None = None
    reason_code: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")] = "session_file"


class SessionFiles(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    """Where an agent writes down what it is doing, and how that is read."""

    folder: str
    pattern: str
    # The name of the file, or of one beside it, that has the agent's process in it.
    owner: Annotated[str, msgspec.Meta(pattern=r"\{pid\}")]
    # 1 for files in the folders below.
    depth: Literal[0, 1] = 0
    # One object, or a log of one object a line of which the last that means anything counts.
    form: Literal["object", "lines"] = "object"
    # The first that fits decides.
    rule: list[SessionRule] = []

    @cached_property
    def _owner(self) -> re.Pattern[str]:
        before, after = (re.escape(part) for part in self.owner.split(_PID, 1))
        return re.compile(before + r"([1-9][0-9]{0,9})" + after)

    def owners(self, path: str, beside: Iterable[str]) -> frozenset[int]:
        """The processes whose file it is: its own name says so, or else names beside it."""
        own = self._owner.fullmatch(PurePosixPath(path).name)
        if own is not None:
            return frozenset({int(own[1])})
        return frozenset(int(found[1]) for name in beside if (found := self._owner.fullmatch(name)) is not None)

    def read(self, text: str) -> Status | None:
        """None where it says nothing that is known; half-written files are read again when they are whole."""
        lines = [text] if self.form == "object" else reversed(text.splitlines())
        for line in lines:
            try:
                entry = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            rule = next((rule for rule in self.rule if _fits(rule, entry)), None)
            if rule is not None and rule.says is not None:
                noted = ", ".join(f"{path} {want}" for path, want in rule.when.items() if isinstance(want, str))
                return Status(rule.says, rule.reason_code, f"its session file says {noted or rule.reason_code}")
        return None


def _fits(rule: SessionRule, entry: object) -> bool:
    return all(holds(entry, path, want) for path, want in rule.when.items())
