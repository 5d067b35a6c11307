"""OpenAI's chat completions, as the Copilot CLI speaks it to a model provider of the user's own."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from agents.model.script import WORD_TIME, Conversation, Kind, Step
from agents.model.server import Exchange

ERRORS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "server_overloaded",
}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completions(exchange: Exchange) -> None:
    request = exchange.body
    offered = _offered(request)
    exchange.main = bool(offered)
    exchange.step = step = _conversation(request).next(tools=exchange.main)
    if step.kind is Kind.ERROR:
        kind = ERRORS.get(step.status, "server_error")
        error = {"type": kind, "code": kind, "message": f"scripted {step.status}"}
        exchange.json({"error": error}, step.status)
        return
    calls = [_call(step, offered, request)] if step.is_tool else []
    reason = "tool_calls" if calls else "stop"
    about = {"id": _id("chatcmpl"), "created": 0, "model": request.get("model")}
    if not request.get("stream"):
        if step.kind is Kind.THINK:
            exchange.pause(float(step.parts[0] or 5))
        message = {"role": "assistant", "content": None if calls else "".join(step.words)}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": reason}
        exchange.json({**about, "object": "chat.completion", "choices": [choice], "usage": USAGE})
        return
    with exchange.events() as events:

        def send(delta: dict[str, Any], reason: str | None = None, **fields: object) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            events.send({**about, "object": "chat.completion.chunk", "choices": [choice], **fields})

        send({"role": "assistant", "content": ""})
        if step.kind is Kind.THINK:
            seconds, *headline = step.parts
            if headline:
                send({"reasoning_content": f"**{headline[0]}**\n\nThere are several of them."})
            exchange.pause(float(seconds or 5))
        if calls:
            send({"content": "I will use a tool."})
            send({"tool_calls": calls})
        else:
            for word in ["Thought about it."] if step.kind is Kind.THINK else step.words:
                send({"content": word})
                if step.kind is Kind.SLOW:
                    exchange.pause(WORD_TIME)
        send({}, reason, usage=USAGE)
        events.send("[DONE]")


def models(exchange: Exchange) -> None:
    model = {"id": "scripted-model", "object": "model", "created": 0, "owned_by": "agtmux"}
    exchange.json({"object": "list", "data": [model]})


ROUTES = (
    (r"/chat/completions$", completions),
    (r"/models$", models),
)


def _conversation(request: dict[str, Any]) -> Conversation:
    conversation = Conversation()
    called = False
    for message in request.get("messages") or []:
        match message.get("role"):
            case "assistant":
                called = bool(message.get("tool_calls"))
            case "tool":
                # Several calls of one answer are one step.
                if called:
                    conversation.result()
                called = False
            case "user":
                conversation.user("\n".join(_texts(message)))
    return conversation


def _texts(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content") or ""
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content if part.get("text"))


def _offered(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    functions = [tool.get("function") or tool for tool in request.get("tools") or []]
    return {function["name"]: function for function in functions if "name" in function}


def _call(step: Step, offered: dict[str, dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    name, arguments = _function(step, offered, _folder(request))
    # A server's tool has the server's name before its own.
    full = next((known for known in offered if known == name or known.endswith(f"-{name}")), None)
    if full is None:
        raise LookupError(f"{name} is not offered, only {sorted(offered)}")
    function = {"name": full, "arguments": json.dumps(arguments)}
    return {"index": 0, "id": _id("call"), "type": "function", "function": function}


def _folder(request: dict[str, Any]) -> str:
    found = re.search(r"(?:cwd>|[Ww]orking [Dd]irectory)\W*?(/[^\s\\\"`*<]+)", json.dumps(request.get("messages")))
    return found[1] if found else "."


def _function(step: Step, offered: dict[str, dict[str, Any]], folder: str) -> tuple[str, dict[str, Any]]:
    match step.kind:
        case Kind.BASH:
            arguments = {"command": step.text, "description": "Run a command for the labels"}
            # Longer than the bench waits: what takes longer goes on in the background and ends the call.
            return "bash", arguments | {"initial_wait": 120, "mode": "sync"}
        case Kind.EDIT:
            return "create", {"path": f"{folder}/{step.text}", "file_text": "first line\nsecond line\n"}
        case Kind.CHANGE:
            return "edit", {"path": f"{folder}/{step.text}", "old_str": "weight = 1", "new_str": "weight = 2"}
        case Kind.FETCH:
            return "web_fetch", {"url": step.text}
        case Kind.ASK | Kind.ASK_MANY:
            return "ask_user", _question(step, offered.get("ask_user") or {})
        case Kind.PLAN:
            return "exit_plan_mode", {"summary": step.text, "actions": ["interactive", "autopilot", "exit_only"]}
        case Kind.SUB:
            task = {"description": "Look at labels", "prompt": step.text, "agent_type": "general-purpose"}
            return "task", task | {"name": "labels", "mode": "sync"}
        case Kind.TOOL:
            name, _, arguments_text = step.text.partition("|")
            return name, json.loads(arguments_text or "{}")
    raise LookupError(step.kind)


def _question(step: Step, tool: dict[str, Any]) -> dict[str, Any]:
    """What `ask_user` of this version understands."""
    question, *options = step.parts
    if "requestedSchema" not in (tool.get("parameters") or {}).get("properties", {}):
        return {"question": question, "choices": options} if options else {"question": question}
    field: dict[str, Any] = {"type": "string", "title": "Choice"}
    if step.kind is Kind.ASK_MANY:
        field = {"type": "array", "title": "Choices", "items": {"type": "string", "enum": options}}
    elif options:
        field["enum"] = options
    schema = {"type": "object", "properties": {"choice": field}, "required": ["choice"]}
    return {"message": question, "requestedSchema": schema}


def _id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:20]}"
