"""What is asked for when an agent is to be launched, and what came of it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from agtmux.actions.ledger import Action
from agtmux.actions.typing import clean
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.messages.directory import OUTSIDE, USER, Role
from agtmux.worktrees.names import check_branch, check_session

MOST_PROMPT: Final = 100_000
# What is longer is typed: a command of tmux's has room for little more.
_LONGEST_ARGUMENT: Final = 8_000
_LONGEST_PATH: Final = 4_096


@dataclass(frozen=True, slots=True)
class By:
    """Who asks: an agent, by its runtime, the user, or `outside`, of which nobody knows who it is."""

    runtime_id: RuntimeId | None = None
    name: str = USER
    # Of `outside`: why it is not taken for the user.
    why_not_user: str = ""

    @property
    def actor(self) -> str:
        """For the log."""
        return self.name if self.runtime_id in (None, _OUTSIDE_ID) else f"agent:{self.name}"

    def refusal(self, what: str) -> str:
        """What is said of something that only the user may, with what to do for a user who was not known as one."""
        if not self.why_not_user:
            return what
        return (
            f"{what}. You are not known to be the user: {self.why_not_user}. Type it at your own terminal, or see"
            " trust_outside in [launch] of config.toml"
        )

    @property
    def is_user(self) -> bool:
        return self.runtime_id is None


THE_USER: Final = By()
# No runtime has this id: all of them together have the limits of one agent, and what they have launched is theirs.
_OUTSIDE_ID: Final = RuntimeId(OUTSIDE)


def outside(why_not_user: str) -> By:
    return By(_OUTSIDE_ID, OUTSIDE, why_not_user)


@dataclass(frozen=True, slots=True)
class Order:
    agent: str
    target_id: TargetId
    # On that target.
    cwd: str
    branch: str = ""
    # Not in the repository's own folder.
    is_apart: bool = False
    session: str = ""
    role: Role | None = None
    prompt: str = ""
    # Only ever on the word of whoever is at the keyboard.
    may_start_server: bool = False
    # Its own settings, as words for `env`: what is set, and what is not to be.
    environment: tuple[str, ...] = ()
    # Seconds that it may take to come up, if not as many as any.
    start_limit: float | None = None

    def digest(self, by: By) -> str:
        """Of all that makes it another request."""
        return hashlib.sha256(json.dumps([asdict(self), by.runtime_id], sort_keys=True).encode()).hexdigest()

    @property
    def wants_worktree(self) -> bool:
        return bool(self.branch) or self.is_apart

    def branch_or_new(self) -> str:
        return self.branch or f"{self.agent}-{uuid.uuid4().hex[:6]}"

    def checked(self, registry: Registry) -> AgentSheet:
        """Raises for what could not be done anywhere."""
        sheet = registry.sheet(self.agent) if registry.knows(self.agent) else None
        if sheet is None or not sheet.command:
            known = ", ".join(sorted(each for each in registry.agent_types if registry.sheet(each).command))
            raise AgtmuxError(ErrorCode.USAGE, f"no agent {self.agent[:40]!r} can be launched; known are {known}")
        if self.branch:
            check_branch(self.branch)
        if self.session:
            check_session(self.session)
        if not self.cwd.startswith("/") or "\0" in self.cwd or len(self.cwd) > _LONGEST_PATH:
            raise AgtmuxError(ErrorCode.USAGE, "say where it is to work, as a path from the root of that machine")
        if len(self.prompt.encode("utf-8", "replace")) > MOST_PROMPT:
            raise AgtmuxError(
                ErrorCode.TOO_LARGE,
                f"a first prompt may have {MOST_PROMPT} bytes; write it to a file there and send its name",
            )
        return sheet

    def words(self, sheet: AgentSheet) -> tuple[list[str], bool]:
        """The program with its arguments, and whether the prompt is among them."""
        prompt = clean(self.prompt)
        fits = 0 < len(prompt.encode("utf-8", "replace")) <= _LONGEST_ARGUMENT and prompt.strip() != ""
        if not fits or not sheet.launch.prompt:
            return [*self.environment, *sheet.command], False
        return [
            *self.environment,
            *sheet.command,
            *(word.replace("{prompt}", prompt) for word in sheet.launch.prompt),
        ], True


@dataclass(frozen=True, slots=True)
class Launched:
    """The action, and what is told of it beside that."""

    action: Action
    content: Mapping[str, Any]
    is_replay: bool = False
