"""A finding, how grave it is, and what all of them together look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

SCHEMA_VERSION: Final = 1


class Level(StrEnum):
    OK = "ok"
    # Works, and could be better or is good to know.
    NOTE = "note"
    # Works in part.
    WARNING = "warning"
    # Does not work, or will not at the next start.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    # The first word says what it is about: `socket_mode`.
    code: str
    message: str
    # The command that mends it, or what to do where no command can; None if there is nothing to mend.
    mend: str | None = None
    target: str | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        if (self.level is Level.OK) != (self.mend is None):
            raise ValueError(f"{self.code}: what is not ok says what mends it, and nothing else does")


def count(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def report(groups: Sequence[tuple[str, Sequence[Finding]]], generated_at: str) -> dict[str, Any]:
    levels = Counter(finding.level for _, findings in groups for finding in findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": generated_at,
        "summary": {level.value: levels[level] for level in Level},
        "items": [{"group": group, **asdict(finding)} for group, findings in groups for finding in findings],
    }
