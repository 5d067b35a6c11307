"""What agents are called, and who is meant by a name.

An agent that was given a role is called by it. Any other is called by what and where it is, `claude-3` for the one in
pane %3 of this machine and `claude-3@vm1` elsewhere: short enough to say, and nobody chooses it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import is_pane_id, parse_ref
from agtmux.domain.runtimes import Runtime, RuntimeId
from agtmux.domain.states import Reason, State
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.lookup import as_shown, find_pane
from agtmux.observe.world import PaneKey, World, plain_name
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

_log = logging.getLogger(__name__)

# Who is not an agent.
USER: Final = "user"
AGTMUX: Final = "agtmux"
OUTSIDE: Final = "outside"
_NOBODYS: Final = frozenset({USER, OUTSIDE, "you", "me", "all", "everybody", "none", AGTMUX})
_ROLE: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# What could be taken for the name of an agent without one.
_PLAIN: Final = re.compile(r".*-[0-9]+")


@dataclass(frozen=True, slots=True)
class Role:
    # Empty for one that has rules and no name.
    role: str
    team: str = ""
    # Whom it may write to, by name; None is everybody.
    peers: tuple[str, ...] | None = None


class Directory:
    def __init__(self, world: World, database: Database) -> None:
        self._world = world
        self._database = database
        self._roles: dict[RuntimeId, Role] = {}
        # When each was given its role, and when it was seen to have taken it up.
        self._given_at: dict[RuntimeId, Timestamp] = {}
        self._confirmed_at: dict[RuntimeId, Timestamp] = {}
        # Names that are a team's while it is up, whether anybody has them or not.
        self._kept: dict[str, str] = {}
        # Names of agents that are not up yet, with their team if they are to be of one.
        self._promised: dict[str, str] = {}
        # Told of the panes whose agents are called something else now.
        self.on_change: list[Callable[[set[PaneKey], Timestamp], None]] = []

    async def load(self) -> None:
        """Once, at the start."""
        rows = await self._database.read(
            "SELECT runtime_id, role, team, peers, given_at, confirmed_at FROM roles ORDER BY given_at"
        )
        self._roles = {
            RuntimeId(row[0]): Role(row[1], row[2], None if row[3] is None else tuple(json.loads(row[3])))
            for row in rows
        }
        self._given_at = {RuntimeId(row[0]): Timestamp(row[4]) for row in rows}
        self._confirmed_at = {RuntimeId(row[0]): Timestamp(row[5]) for row in rows if row[5] is not None}
        self._world.roles = {runtime_id: role.role for runtime_id, role in self._roles.items() if role.role}

    def name(self, runtime: Runtime) -> str:
        return self._world.name_of(runtime)

    def role(self, runtime_id: RuntimeId) -> Role | None:
        return self._roles.get(runtime_id)

    def keep(self, team: str, names: Collection[str]) -> None:
        """These are for its members from now on, and no others: what is written to one that has ended is not for
        whoever calls itself that. Raises if another team has one of them, or somebody else is about to have."""
        for name in names:
            self._check_kept(name, team)
            if self._promised.get(name, team) != team:
                raise _promised(name)
        self._kept = {name: each for name, each in self._kept.items() if each != team} | dict.fromkeys(names, team)

    def check_free(self, role: str, team: str = "") -> None:
        """Raises if nobody can be called that, or somebody is."""
        if role in _NOBODYS:
            raise AgtmuxError(ErrorCode.USAGE, f"{role!r} is never an agent's name; choose another")
        if not is_role(role):
            raise AgtmuxError(
                ErrorCode.USAGE,
                f"{role[:40]!r} is no name for an agent; begin with a letter, go on with letters, digits, - and _, up"
                " to 32, and do not end in a dash and a number",
            )
        if role in self._promised:
            raise _promised(role)
        self._check_unused(role, team)

    def promise(self, role: Role) -> None:
        """Nobody else is called that until it is given or released."""
        self._promised[role.role] = role.team

    def release(self, role: Role) -> None:
        self._promised.pop(role.role, None)

    def _check_unused(self, role: str, team: str) -> None:
        self._check_kept(role, team)
        if self._called(role):
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"another agent is called {role!r}; choose another name")

    def _check_kept(self, role: str, team: str) -> None:
        other = self._kept.get(role, team)
        if other != team:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                f"{role!r} is a role in the team {other}, which is up; choose another name",
            )

    def role_called(self, name: str) -> Role | None:
        """Of a living agent that was given that name."""
        for key in self._called(name):
            return self._roles.get(self._world.records[key].runtime.runtime_id)
        return None

    async def give(self, runtime_id: RuntimeId, role: Role, now: Timestamp) -> None:
        """From now on it is called that, as it was promised. Raises if somebody else is."""
        if role.role and self._roles.get(runtime_id) != role:
            self._check_unused(role.role, role.team)
        peers = None if role.peers is None else json.dumps(role.peers)
        living = [str(each) for each in self._world.by_runtime]

        def job(tx: Transaction) -> None:
            # The names of those who have gone may be given again.
            marks = ", ".join("?" * len(living))
            tx.execute(f"DELETE FROM roles WHERE runtime_id NOT IN ({marks})", living)
            tx.execute(
                "INSERT OR REPLACE INTO roles (runtime_id, role, team, peers, given_at) VALUES (?, ?, ?, ?, ?)",
                (runtime_id, role.role, role.team, peers, now),
            )

        await self._database.writer.write(job)
        self._roles[runtime_id] = role
        self._given_at[runtime_id] = now
        self._confirmed_at.pop(runtime_id, None)
        if role.role:
            self._world.roles[runtime_id] = role.role
        else:
            self._world.roles.pop(runtime_id, None)
        key = self._world.by_runtime.get(runtime_id)
        for listener in self.on_change:
            listener(set() if key is None else {key}, now)

    def is_confirmed(self, runtime_id: RuntimeId) -> bool:
        """Whether a member of a team was seen to end a turn since it was given its role with its first prompt."""
        return runtime_id in self._confirmed_at

    def changed(self, keys: Collection[PaneKey], now: Timestamp) -> None:
        """What is known of these panes has changed: one may have ended the turn that its role began with."""
        if len(self._confirmed_at) >= len(self._given_at):
            return
        for key in keys:
            record = self._world.records.get(key)
            runtime_id = None if record is None else record.runtime.runtime_id
            if record is None or runtime_id not in self._given_at or runtime_id in self._confirmed_at:
                continue
            row = record.row
            has_ended = row.state is State.COMPLETED or row.reason_code == Reason.COMPLETED_DEMOTED
            if has_ended and row.updated_at > self._given_at[runtime_id]:
                self._confirm(runtime_id, now)

    def _confirm(self, runtime_id: RuntimeId, now: Timestamp) -> None:
        self._confirmed_at[runtime_id] = now
        sql = "UPDATE roles SET confirmed_at = ? WHERE runtime_id = ?"
        writing = self._database.writer.begin(lambda tx: tx.execute(sql, (now, runtime_id)))
        writing.add_done_callback(_log_failure)

    def find(self, text: str, caller: PaneKey | None = None) -> PaneKey:
        """The living agent that is meant: a name, a ref, a runtime id or a pane id. Raises if it is not just one."""
        text = text.strip()
        if text == "you" and caller is not None:
            return caller
        if (key := self._world.by_runtime.get(RuntimeId(text))) is not None and self._world.records[
            key
        ].runtime.has_agent:
            # Longer than any name.
            return key
        if named := self._called(text) or self._called_elsewhere(text):
            return self._only(text, named)
        target, _, pane_id = text.rpartition("/")
        if is_pane_id(pane_id) and "/" not in target:
            return self._only(text, [key for key in self._agents() if key[1] == pane_id and target in ("", key[0])])
        known = text.startswith(("pane:", "runtime:"))
        try:
            key = find_pane(self._world, parse_ref(text if known else f"{'pane' if '/' in text else 'runtime'}:{text}"))
        except AgtmuxError as error:
            if shown := [key for key in self._agents() if as_shown(self._world, key) == text]:
                return self._only(text, shown)
            # A name that nobody has is no ref either.
            code = ErrorCode.REF_NOT_FOUND if error.code is ErrorCode.REF_INVALID else error.code
            raise AgtmuxError(
                code, f"no agent is called {text[:128]!r}; see who is with list_agents or agtmux list panes"
            ) from None
        if not self._world.records[key].runtime.has_agent:
            raise AgtmuxError(
                ErrorCode.REF_NOT_FOUND,
                f"no agent is in {text[:128]}; see who is with list_agents or agtmux list panes",
            )
        return key

    def runtimes(self, team: str) -> tuple[RuntimeId, ...]:
        """Of all who were in a team since it is up, also of those who have ended."""
        return tuple(each for each, role in self._roles.items() if role.team == team)

    async def disband(self, team: str) -> None:
        """Those of it who have ended are forgotten; who lives keeps its name and its rules."""
        gone = [each for each in self.runtimes(team) if each not in self._world.by_runtime]
        await self._database.writer.write(
            lambda tx: tx.execute_many("DELETE FROM roles WHERE runtime_id = ?", [(each,) for each in gone])
        )
        for each in gone:
            self._roles.pop(each, None)

    def members(self, team: str) -> list[tuple[Role, PaneKey]]:
        """Those of a team who are there."""
        found = ((role, self._world.by_runtime.get(each)) for each, role in self._roles.items() if role.team == team)
        return [(role, key) for role, key in found if key is not None]

    def _only(self, text: str, keys: Collection[PaneKey]) -> PaneKey:
        if len(keys) > 1:
            places = ", ".join(sorted(f"{target}/{pane_id}" for target, pane_id in keys))
            raise AgtmuxError(ErrorCode.REF_AMBIGUOUS, f"{text} is on several targets; say which: {places}")
        for key in keys:
            return key
        raise AgtmuxError(
            ErrorCode.REF_NOT_FOUND, f"no agent is in {text}; see who is with list_agents or agtmux list panes"
        )

    def _called(self, name: str) -> list[PaneKey]:
        return [key for key in self._agents() if self.name(self._world.records[key].runtime) == name]

    def _called_elsewhere(self, name: str) -> list[PaneKey]:
        """Without the target, which has to be named only where several have such a one."""
        runtimes = ((key, self._world.records[key].runtime) for key in self._agents())
        return [key for key, runtime in runtimes if plain_name(runtime).partition("@")[0] == name]

    def _agents(self) -> list[PaneKey]:
        records = self._world.records
        return [key for key in self._world.panes if key in records and records[key].runtime.has_agent]


def _log_failure(writing: asyncio.Future[None]) -> None:
    if not writing.cancelled() and (error := writing.exception()) is not None:
        _log.warning("that an agent has taken up its role could not be written down: %s", error)


def _promised(name: str) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.PRECONDITION_FAILED, f"another agent is about to be called {name!r}; choose another name"
    )


def is_role(name: str) -> bool:
    """Whether an agent can be called that."""
    return _ROLE.fullmatch(name) is not None and not _PLAIN.fullmatch(name) and name not in _NOBODYS
