"""The user's decision on the bridge: whether its entry may stand in agents' settings on this machine.

Nothing is written into an agent's settings before the user has agreed: when `agtmux up` asks, with `--register`, with
`agtmux mcp register`, in the app's menu or its first window, or with `register = true` in config.toml. The decision is
for all agents, and for single ones where it was taken by name. It is kept in the state directory.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.paths import write_private

_log = logging.getLogger(__name__)

FILE: Final = "mcp-consent.json"
# Where earlier versions, which registered unasked, kept the agents that were taken out by name.
_DECLINED: Final = "mcp-declined.json"


@dataclass(frozen=True, slots=True)
class Decisions:
    # None is no decision: the user has not been asked, or has not answered.
    everyone: bool | None = None
    by_agent: dict[str, bool] = field(default_factory=dict)

    def allows(self, agent: str) -> bool:
        return self.by_agent.get(agent, self.everyone) is True

    def decided(self, agents: Sequence[str], *, allow: bool) -> Decisions:
        """With what is decided now; without names it is for all."""
        if not agents:
            return Decisions(allow)
        return replace(self, by_agent=self.by_agent | dict.fromkeys(agents, allow))


class Consent:
    def __init__(self, state_directory: Path, setting: bool | None) -> None:
        """`setting` is what config.toml says; None if it says nothing."""
        self._file = state_directory / FILE
        self._declined = state_directory / _DECLINED
        self._setting = setting

    def read(self) -> Decisions:
        """What is in force. Settings that forbid it forbid it to all; what allows it is overruled by a no by name."""
        kept = self._kept()
        if self._setting is False:
            return Decisions(False)
        return kept if self._setting is None else replace(kept, everyone=True)

    def decide(self, agents: Sequence[str], *, allow: bool) -> None:
        """Keep it. Raises if it cannot be kept: a decision that is forgotten would be asked for again, or ignored."""
        kept = self._kept()
        after = kept.decided(agents, allow=allow)
        if after == kept and self._file.exists():
            return
        content = {"schema_version": 1, "register": after.everyone, "agents": after.by_agent}
        try:
            write_private(self._file, json.dumps(content, indent=2))
            self._declined.unlink(missing_ok=True)
        except OSError as error:
            raise AgtmuxError(
                ErrorCode.CONFIG, f"{self._file} cannot be written ({error.strerror}), so your decision is not kept"
            ) from None

    def about(self) -> dict[str, Any]:
        """As the API tells it."""
        found = self.read()
        decided_by = "config" if self._setting is not None else "user" if found != Decisions() else None
        return {"register": found.everyone, "agents": found.by_agent, "decided_by": decided_by}

    def allowed(self, agents: Collection[str]) -> list[str]:
        found = self.read()
        return [agent for agent in agents if found.allows(agent)]

    def _kept(self) -> Decisions:
        try:
            content = json.loads(self._file.read_bytes())
            everyone, by_agent = content["register"], content["agents"]
            if everyone is None or isinstance(everyone, bool):
                return Decisions(everyone, {str(name): value is True for name, value in by_agent.items()})
        except FileNotFoundError:
            return Decisions(None, dict.fromkeys(self._left_out(), False))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass
        # Whatever it meant to say, it is no consent.
        _log.warning("%s cannot be read; no agent is told of the bridge until you decide again", self._file)
        return Decisions()

    def _left_out(self) -> list[str]:
        try:
            names = json.loads(self._declined.read_bytes())
        except (OSError, ValueError):
            return []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
