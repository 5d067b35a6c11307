"""An agent as a TOML file describes it: its process, its files, its hooks, its screen."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agtmux.agents.hooks import HookRule
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.mcp.sheet import McpSettings
from agtmux.agents.screen.replies import AnswerSheet
from agtmux.agents.screen.rules import ScreenSheet
from agtmux.agents.screen.typed import TypingSheet
from agtmux.agents.sessions import SessionFiles
from agtmux.domain.errors import AgtmuxError, ErrorCode


class ProcessRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How an agent's process is known: by its command, the package of its script, or where its program lies."""

    commands: list[str] = []
    packages: list[str] = []
    programs: list[str] = []
    # One process of it may serve several panes, and what that starts believes to be in the pane it came from itself.
    is_shared: bool = False


class AgentSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent_type: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    name: str
    process: ProcessRule
    session_files: SessionFiles | None = None
    hooks: HookSettings | None = None
    hook: list[HookRule] = []
    mcp: McpSettings | None = None
    screen: ScreenSheet = ScreenSheet()
    answers: AnswerSheet = AnswerSheet()
    typing: TypingSheet = TypingSheet()


def read_sheet(path: str, text: bytes) -> AgentSheet:
    try:
        return msgspec.toml.decode(text, type=AgentSheet)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {error}; correct it or move it away") from None
