"""A team as its file describes it: who is in it, what each is told, and who writes to whom.

name = "review"

[roles.lead]
agent = "…"
prompt = "Divide the work, and tell the user when it is done."
user = true

[roles.writer]
agent = "…"
branch = "feature/labels"
peers = ["lead"]
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from agtmux.domain.durations import parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.messages.directory import USER, Role, is_role

MOST_ROLES: Final = 20
Name = Annotated[str, Meta(min_length=1, max_length=32)]
Text = Annotated[str, Meta(max_length=50_000)]
Path = Annotated[str, Meta(max_length=4_096)]
Duration = Annotated[str, Meta(max_length=32)]


class Timeouts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How long each step of a task may take before whoever gave it is told."""

    # Until a member is up.
    start: Duration = "30s"
    # Until a task has been delivered.
    send: Duration = "10s"
    # From then until its receiver is heard of.
    receive: Duration = "60s"
    # Until it is done, or has failed.
    task: Duration = "300s"
    # Without a word from who works on it, while it does nothing.
    idle: Duration = "120s"

    def microseconds(self, name: str) -> int:
        """0 is no time-out."""
        return parse_duration(getattr(self, name))

    def is_over(self, name: str, since: int) -> bool:
        limit = self.microseconds(name)
        return limit > 0 and since > limit


class RoleSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: Name
    # What it is told first, after who it is.
    prompt: Text = ""
    # Whom it may write to; None is everybody in the team.
    peers: list[Name] | None = None
    # Whether it may write to the user too.
    user: bool = False
    # In a worktree of this branch, or with `worktree` of one of its own.
    branch: Annotated[str, Meta(max_length=256)] = ""
    worktree: bool = False
    # Where it works; the folder of the file otherwise.
    cwd: Path = ""
    target: Name = "host"
    # Settings of its own, apart from the user's.
    isolated: bool = False


class TeamSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: Name
    roles: Annotated[dict[str, RoleSheet], Meta(min_length=1, max_length=MOST_ROLES)]
    # Of the file, so that a role without a folder has one.
    folder: Path = ""
    timeouts: Timeouts = Timeouts()

    def check(self) -> None:
        """Raises for what cannot be: a name that is none, a peer that is nobody."""
        for name in (self.name, *self.roles):
            if not is_role(name):
                raise AgtmuxError(
                    ErrorCode.USAGE,
                    f"{name[:40]!r} is no name; begin with a letter, go on with letters, digits, - and _, up to 32, and"
                    " do not end in a dash and a number",
                )
        for name, role in self.roles.items():
            if unknown := [peer for peer in role.peers or [] if peer not in self.roles]:
                raise AgtmuxError(
                    ErrorCode.USAGE,
                    f"{name} is to write to {unknown[0][:40]!r}, who is not in the team; user = true is for the user",
                )
        for name in Timeouts.__struct_fields__:
            try:
                self.timeouts.microseconds(name)
            except AgtmuxError as error:
                raise AgtmuxError(error.code, f"timeouts.{name}: {error.message}") from None

    def role(self, name: str) -> Role:
        """As the directory knows it."""
        sheet = self.roles[name]
        peers = [each for each in self.roles if each != name] if sheet.peers is None else sheet.peers
        return Role(name, self.name, (*peers, *([USER] if sheet.user else [])))

    def briefing(self, name: str) -> str:
        """The first prompt of a member: who it is, whom it works with, and what it is for."""
        sheet, role = self.roles[name], self.role(name)
        others = [peer for peer in role.peers or () if peer != USER]
        lines = [f"You are {name}, in the team {self.name}."]
        if others:
            lines.append(
                f"You work with {', '.join(others)}. Write to them with agtmux's tool send_message, and give work away"
                " as type task_request. Their messages come to you as prompts that begin with [agtmux msg from NAME]:"
            )
        lines.append(
            "Answer a task_request with send_message and its reply_to: progress now and then, task_complete or"
            " task_failed at the end."
        )
        lines.append(
            "You speak to the user: what they must know, send to user."
            if sheet.user
            else "You do not speak to the user; what they must know goes through the others."
        )
        return "\n".join([*lines, *(["", sheet.prompt.strip()] if sheet.prompt.strip() else [])])


def read_sheet(content: object) -> TeamSheet:
    """Raises E_USAGE with where it is wrong."""
    try:
        sheet = msgspec.convert(content, TeamSheet)
    except msgspec.ValidationError as error:
        raise AgtmuxError(ErrorCode.USAGE, f"the team's file cannot be read: {_where(content, error)}") from None
    sheet.check()
    return sheet


def _where(content: object, error: msgspec.ValidationError) -> str:
    """What is wrong, with the role it is in: msgspec writes `$.roles[...]` for each of them."""
    roles = content.get("roles") if isinstance(content, dict) else None
    for name, role in roles.items() if isinstance(roles, dict) else ():
        try:
            msgspec.convert(role, RoleSheet)
        except msgspec.ValidationError as wrong:
            return f"in [roles.{str(name)[:40]}]: {wrong}"
    return str(error)
