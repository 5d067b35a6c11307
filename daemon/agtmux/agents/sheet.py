"""An agent as a TOML file describes it: its process, its files, its hooks, its screen."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agtmux.agents.hooks import HookRule
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.mcp.sheet import McpSettings
from agtmux.agents.screen.replies import AnswerSheet
from agtmux.agents.screen.rules import ScreenSheet
from agtmux.agents.screen.said import SpokenSheet
from agtmux.agents.screen.typed import TypingSheet
from agtmux.agents.sessions import SessionFiles
from agtmux.agents.transcript import TranscriptSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class ProcessRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How an agent's process is known: by its command, the package of its script, or where its program lies."""

    commands: list[str] = []
    packages: list[str] = []
    programs: list[str] = []
    # One process of it may serve several panes, and what that starts believes to be in the pane it came from itself.
    is_shared: bool = False
    # What a user does about that, for who has to be told that nobody knows which pane it is in.
    unshared_by: str = ""


class LaunchSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How it is started, and how its user ends it."""

    # The program and its arguments; without one, the first of the commands that its process is known by.
    command: list[str] = []
    # What follows for a first prompt, `{prompt}` in its place. Without one it is typed once the agent is up.
    prompt: list[str] = []
    # What is typed at its prompt to end it, or the key that is pressed at an empty one.
    end: str = ""
    end_key: str = ""


class AgentSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent_type: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    name: str
    process: ProcessRule
    session_files: SessionFiles | None = None
    transcript: TranscriptSheet | None = None
    hooks: HookSettings | None = None
    hook: list[HookRule] = []
    mcp: McpSettings | None = None
    screen: ScreenSheet = ScreenSheet()
    spoken: SpokenSheet = SpokenSheet()
    answers: AnswerSheet = AnswerSheet()
    typing: TypingSheet = TypingSheet()
    launch: LaunchSheet = LaunchSheet()

    @property
    def command(self) -> list[str]:
        """Empty if it is not known how it is started."""
        return self.launch.command or self.process.commands[:1]


def read_sheet(path: str, text: bytes) -> AgentSheet:
    try:
        return msgspec.toml.decode(text, type=AgentSheet)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {error}; correct it or move it away") from None
