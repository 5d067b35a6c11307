"""The one place that knows the Agent SDK: its options, its messages, its errors, in the words of the protocol."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLINotFoundError,
    ContentBlock,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk.types import TERMINAL_TASK_STATUSES, PermissionMode

from agtmux.chat.engine import Ask, Request
from agtmux.chat.folder import unapproved_servers
from agtmux.chat.leash import Leash
from agtmux.chat.protocol import Told, fitted
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.redact import redact_text

_log = logging.getLogger(__name__)

AGENT_TYPE: Final = "claude"
# One line of the agent's, which may hold a whole file. The SDK's own limit of 1 MB would end the session.
_LINE_LIMIT: Final = 64 * 1024 * 1024
_QUESTION: Final = "AskUserQuestion"
_PLAN: Final = "ExitPlanMode"
_DENIED: Final = "The user does not want this."
# The hooks and the bridge in the user's settings run in here too. They are not to take this for the agent of the pane
# that the session was started in: the session tells of itself.
_NOWHERE: Final = {"TMUX": "", "TMUX_PANE": ""}
_ABORTED: Final = ("aborted_streaming", "aborted_tools")
_USAGE: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the agent is to be started."""

    cwd: str
    session_id: str
    is_resumed: bool = False
    # Another program than the one that came with the SDK.
    program: str | None = None
    model: str | None = None
    permission_mode: PermissionMode | None = None


class SdkEngine:
    def __init__(self, wishes: Wishes, ask: Ask, has_spoken: bool) -> None:
        self._ask = ask
        self._last_words: deque[str] = deque(maxlen=5)
        self._left_out = unapproved_servers(wishes.cwd)
        self._streamed = False
        self._described: Told = {}
        self._leash: Leash | None = None
        goes_on = wishes.is_resumed or has_spoken
        self._client = ClaudeSDKClient(
            ClaudeAgentOptions(
                cwd=wishes.cwd,
                resume=wishes.session_id if goes_on else None,
                session_id=None if goes_on else wishes.session_id,
                cli_path=wishes.program,
                model=wishes.model,
                permission_mode=wishes.permission_mode,
                system_prompt={"type": "preset", "preset": "claude_code"},
                setting_sources=["user", "project", "local"],
                settings=None if not self._left_out else _without(self._left_out),
                can_use_tool=self._may,
                include_partial_messages=True,
                env=dict(_NOWHERE) if "TMUX" in os.environ or "TMUX_PANE" in os.environ else {},
                max_buffer_size=_LINE_LIMIT,
                stderr=self._hear,
            )
        )

    async def connect(self) -> Told:
        try:
            await self._client.connect()
            info = await self._client.get_server_info() or {}
        except CLINotFoundError:
            raise AgtmuxError(
                ErrorCode.CONFIG, "the agent's program is not there; install it, or name it with --program"
            ) from None
        # The SDK raises bare exceptions, too.
        except Exception as error:
            raise self._failure(error) from error
        if isinstance(pid := info.get("pid"), int):
            self._leash = await asyncio.to_thread(Leash, pid)
        self._described = {
            "agent_type": AGENT_TYPE,
            "agent_version": info.get("claude_code_version"),
            "agent_pid": info.get("pid"),
            "permission_mode": info.get("current_permission_mode"),
            "model": None,
            "mcp_servers": [],
            "mcp_left_out": self._left_out,
        }
        return dict(self._described)

    async def say(self, text: str) -> None:
        try:
            await self._client.query(text)
        except ClaudeSDKError as error:
            raise self._failure(error) from error

    async def interrupt(self) -> None:
        try:
            await self._client.interrupt()
        except Exception as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        await self._client.disconnect()
        if self._leash is not None:
            await asyncio.to_thread(self._leash.release)

    async def events(self) -> AsyncIterator[Told]:
        try:
            async for message in self._client.receive_messages():
                for told in self._told(message):
                    yield told
        except ClaudeSDKError as error:
            raise self._failure(error) from error
        raise AgtmuxError(ErrorCode.AGENT_FAILED, "the agent has ended; the next message starts it again")

    def _told(self, message: Message) -> list[Told]:
        match message:
            case StreamEvent(event=event, parent_tool_use_id=None):
                return self._streaming(event)
            case AssistantMessage():
                return self._assistant(message)
            case UserMessage(content=list(blocks)):
                return [told for block in blocks for told in _result(block)]
            case ResultMessage():
                return _done(message)
            case TaskStartedMessage(task_id=task_id):
                return [_task(task_id, "running", message.description)]
            case TaskUpdatedMessage(task_id=task_id, status=str(status)) if status in TERMINAL_TASK_STATUSES:
                return [_task(task_id, status)]
            case TaskNotificationMessage(task_id=task_id, status=status):
                return [_task(task_id, status, message.summary)]
            case SystemMessage(subtype="init", data=data):
                return self._init(data)
        return []

    def _streaming(self, event: dict[str, Any]) -> list[Told]:
        if event.get("type") == "message_start":
            self._streamed = False
        delta = event.get("delta") or {}
        if delta.get("type") == "text_delta" and delta.get("text"):
            self._streamed = True
            return [{"type": "text_delta", "text": delta["text"]}]
        if delta.get("type") == "thinking_delta" and delta.get("thinking"):
            return [{"type": "thinking_delta", "text": delta["thinking"]}]
        return []

    def _assistant(self, message: AssistantMessage) -> list[Told]:
        told: list[Told] = []
        for block in message.content:
            # What was not streamed is the answer of a command of the agent's own. A subagent's words are its own
            # business, and an error is told of as one.
            if isinstance(block, TextBlock):
                if not self._streamed and message.parent_tool_use_id is None and message.error is None:
                    told.append({"type": "text_delta", "text": block.text})
                self._streamed = False
            elif isinstance(block, ToolUseBlock):
                value, is_cut = fitted(block.input)
                use: Told = {"type": "tool_use", "request_id": block.id, "tool": block.name, "input": value}
                if is_cut:
                    use["is_cut"] = True
                if message.parent_tool_use_id is not None:
                    use["parent_id"] = message.parent_tool_use_id
                told.append(use)
        return told

    def _init(self, data: dict[str, Any]) -> list[Told]:
        """Told at the start of every turn; passed on when it differs."""
        described = self._described | {
            "agent_version": data.get("claude_code_version") or self._described.get("agent_version"),
            "permission_mode": data.get("permissionMode"),
            "model": data.get("model"),
            "mcp_servers": [
                {"name": each.get("name"), "status": each.get("status")} for each in data.get("mcp_servers") or []
            ],
        }
        if described == self._described:
            return []
        self._described = described
        return [{"type": "agent", **described}]

    async def _may(
        self, tool: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        kind = {_QUESTION: "question", _PLAN: "plan"}.get(tool, "approval")
        request = Request(
            context.tool_use_id or f"{tool}-request", tool, given, kind, context.decision_reason, context.agent_id
        )
        decision = await self._ask(request)
        if not decision.allow:
            return PermissionResultDeny(message=decision.reason or _DENIED)
        if kind == "question":
            return PermissionResultAllow(updated_input={**given, "answers": decision.answers})
        return PermissionResultAllow(updated_input=given)

    def _hear(self, line: str) -> None:
        line = redact_text(line)
        self._last_words.append(line)
        _log.info("the agent says: %s", line)

    def _failure(self, error: Exception) -> AgtmuxError:
        what = str(error).split("\nError output:")[0]
        if self._last_words and self._last_words[-1] not in what:
            what = f"{what} ({' / '.join(self._last_words)})"
        return AgtmuxError(ErrorCode.AGENT_FAILED, what)


def _without(servers: list[str]) -> str:
    return json.dumps({"disabledMcpjsonServers": servers})


def _result(block: ContentBlock) -> list[Told]:
    if not isinstance(block, ToolResultBlock):
        return []
    content = block.content
    if isinstance(content, list):
        parts = [part.get("text") or f"[{part.get('type', 'something')}]" for part in content]
        content = "\n".join(parts)
    output, is_cut = fitted(content or "")
    told: Told = {
        "type": "tool_result",
        "request_id": block.tool_use_id,
        "output": output,
        "is_error": bool(block.is_error),
    }
    if is_cut:
        told["is_cut"] = True
    return [told]


def _task(task_id: str, status: str, about: str = "") -> Told:
    return {"type": "task", "task_id": task_id, "status": status, "about": fitted(about)[0]}


def _done(message: ResultMessage) -> list[Told]:
    usage = message.usage or {}
    done: Told = {
        "type": "done",
        "outcome": "completed",
        "usage": {name: usage.get(name, 0) for name in _USAGE},
        "cost_usd": message.total_cost_usd,
        "duration_ms": message.duration_ms,
        "session_id": message.session_id,
    }
    if message.terminal_reason in _ABORTED:
        return [{**done, "outcome": "aborted"}]
    if not message.is_error:
        return [done]
    # An error of the model's server comes as a success that is an error.
    what = "; ".join(message.errors or []) or message.result or message.subtype
    return [
        {"type": "error", "code": str(ErrorCode.AGENT_FAILED), "message": what},
        {**done, "outcome": "error"},
    ]
