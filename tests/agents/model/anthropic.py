"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from agents.model.script import WORD_TIME, Conversation, Kind, Step
from agents.model.server import EventStream, Exchange

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def messages(exchange: Exchange) -> None:
    request = exchange.body
    offered = {tool.get("name") for tool in request.get("tools") or []}
    exchange.step = step = _conversation(request).next(tools=bool(offered))
    exchange.main = bool(offered) and not _is_aside(request)
    if step.kind is Kind.ERROR:
        error = {"type": ERRORS.get(step.status, "api_error"), "message": f"scripted {step.status}"}
        exchange.json({"type": "error", "error": error}, step.status, {"x-should-retry": "false"} if step.final else {})
        return
    if step.kind is Kind.THINK:
        exchange.pause(step.seconds)
    message = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 1,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }
    calls = [Step(Kind.BASH, part) for part in step.parts] if step.kind is Kind.PARALLEL else [step]
    tools = [_tool(call, offered, request) for call in calls] if step.is_tool else []
    reason = "tool_use" if tools else "end_turn"
    if request.get("stream"):
        with exchange.events() as stream:
            _stream(exchange, stream, message, step, tools, reason)
    else:
        text = {"type": "text", "text": "".join(step.words)}
        exchange.json({**message, "content": tools or [text], "stop_reason": reason})


def count_tokens(exchange: Exchange) -> None:
    exchange.json({"input_tokens": 100})


def models(exchange: Exchange) -> None:
    exchange.json({"data": [], "has_more": False})


ROUTES = (
    (r"/messages/count_tokens$", count_tokens),
    (r"/messages$", messages),
    (r"/v1/models$", models),
)


def _stream(
    exchange: Exchange,
    stream: EventStream,
    message: dict[str, Any],
    step: Step,
    tools: list[dict[str, Any]],
    reason: str,
) -> None:
    def send(kind: str, **fields: Any) -> None:
        stream.send({"type": kind, **fields}, event=kind)

    send("message_start", message=message)
    send("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for word in ["I will use a tool."] if tools else step.words:
        send("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
        if step.kind is Kind.SLOW:
            exchange.pause(WORD_TIME)
    send("content_block_stop", index=0)
    for index, tool in enumerate(tools, 1):
        delta = {"type": "input_json_delta", "partial_json": json.dumps(tool["input"])}
        send("content_block_start", index=index, content_block={**tool, "input": {}})
        send("content_block_delta", index=index, delta=delta)
        send("content_block_stop", index=index)
    send("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 20})
    send("message_stop")


def _conversation(request: dict[str, Any]) -> Conversation:
    conversation = Conversation()
    for message in request.get("messages", []):
        if message.get("role") != "user":
            continue
        blocks = list(_blocks(message))
        if any(block.get("type") == "tool_result" for block in blocks):
            conversation.result()
        for block in blocks:
            if block.get("type") == "text":
                conversation.user(block["text"])
    return conversation


def _blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content") or []
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def _is_aside(request: dict[str, Any]) -> bool:
    """Whether Claude asks for something beside the conversation: the suggested next prompt, with all tools offered."""
    last = [block.get("text", "") for message in request.get("messages", [])[-1:] for block in _blocks(message)]
    return any("[SUGGESTION MODE" in text for text in last)


def _working_directory(request: dict[str, Any]) -> str:
    found = re.search(r"[Ww]orking directory: (\S+?)(?:\\n|\s|\")", json.dumps(request))
    return found[1] if found else "."


def _plan_file(request: dict[str, Any]) -> str | None:
    """Where Claude wants the plan, from 2.0.5x on: it says so in the conversation."""
    found = re.search(r"(/[^\s\"`']+/plans/[^\s\"`']+?\.md)", json.dumps(request))
    return found[1] if found else None


def _tool(step: Step, offered: set[Any], request: dict[str, Any]) -> dict[str, Any]:
    folder = _working_directory(request)
    if step.kind is Kind.PLANFILE:
        file = _plan_file(request)
        name, arguments = (
            ("Write", {"file_path": file, "content": step.text})
            if file
            else _call(Step(Kind.READ, "README.md"), offered, folder)
        )
    else:
        name, arguments = _call(step, offered, folder)
    if name not in offered:
        raise LookupError(f"{name} is not offered, only {sorted(map(str, offered))}")
    return {"type": "tool_use", "id": _id("toolu"), "name": name, "input": arguments}


def _call(step: Step, offered: set[Any], folder: str) -> tuple[str, dict[str, Any]]:
    match step.kind:
        case Kind.BASH:
            return "Bash", {"command": step.text, "description": "Run a command for the labels"}
        case Kind.BACKGROUND:
            return "Bash", {"command": step.text, "description": "Watch the labels", "run_in_background": True}
        case Kind.READ:
            return "Read", {"file_path": f"{folder}/{step.text}"}
        case Kind.EDIT:
            return "Write", {"file_path": f"{folder}/{step.text}", "content": "first line\nsecond line\n"}
        case Kind.CHANGE:
            file = f"{folder}/{step.text}"
            return "Edit", {"file_path": file, "old_string": "weight = 1", "new_string": "weight = 2"}
        case Kind.FETCH:
            return "WebFetch", {"url": step.text, "prompt": "What does it say?"}
        case Kind.ASK | Kind.ASK_MANY:
            question, *options = step.parts
            return "AskUserQuestion", {
                "questions": [
                    {
                        "question": question,
                        "header": "Choice",
                        "multiSelect": step.kind is Kind.ASK_MANY,
                        "options": [{"label": option, "description": f"Take {option}"} for option in options],
                    }
                ]
            }
        case Kind.PLAN:
            return ("ExitPlanMode" if "ExitPlanMode" in offered else "exit_plan_mode"), {"plan": step.text}
        case Kind.SUB:
            name = "Agent" if "Agent" in offered else "Task"
            return name, {"description": "Look at labels", "prompt": step.text, "subagent_type": "general-purpose"}
        case Kind.TODO:
            if "TodoWrite" not in offered:
                return "TaskCreate", {"subject": step.text, "description": step.text, "activeForm": step.text}
            steps = [part.strip() for part in step.text.split(",")]
            todos = [
                {
                    "id": str(number),
                    "content": text,
                    "activeForm": text,
                    "status": "in_progress" if number == 0 else "pending",
                    "priority": "medium",
                }
                for number, text in enumerate(steps)
            ]
            return "TodoWrite", {"todos": todos}
        case Kind.TOOL:
            name, _, arguments = step.text.partition("|")
            return name, json.loads(arguments or "{}")
    raise LookupError(step.kind)


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"
