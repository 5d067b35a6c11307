"""OpenAI Responses, as Codex speaks it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from agents.model.script import WORD_TIME, Conversation, Kind, Step
from agents.model.server import EventStream, Exchange

ERRORS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "server_overloaded",
}

# A model that knows its sandbox asks to leave it only where it must.
_SANDBOXED = ("sleep", "echo", "ls", "cat", "for")
_REASON = "The label printer is outside of the workspace"
# Some versions draw a line of an answer only when it is complete.
_WORDS_IN_PARAGRAPH = 12


def responses(exchange: Exchange) -> None:
    request = exchange.body
    offered = dict(_offered(request.get("tools") or []))
    step = _conversation(request).next(tools=bool(offered))
    exchange.step = step
    exchange.main = bool(offered)
    if step.kind is Kind.ERROR:
        _fail(exchange, *step.parts)
        return
    item = _call(step, offered) if step.is_tool and step.kind is not Kind.PLAN else None
    with exchange.events() as stream:
        _Answer(exchange, stream, request).give(step, item)


def models(exchange: Exchange) -> None:
    exchange.json({"object": "list", "data": [], "models": []})


ROUTES = (
    (r"/responses$", responses),
    (r"/models$", models),
)


def _fail(exchange: Exchange, status: str, seconds: str = "0", kind: str = "") -> None:
    """An error of that status; after so many seconds, so that there is time to look at a client that tries again."""
    exchange.pause(float(seconds))
    code = kind or ERRORS.get(int(status), "server_error")
    exchange.json({"error": {"type": code, "code": code, "message": f"scripted {status}"}}, int(status))


class _Answer:
    """One streamed response."""

    def __init__(self, exchange: Exchange, stream: EventStream, request: dict[str, Any]) -> None:
        self._exchange = exchange
        self._stream = stream
        self._number = 0
        self._items: list[dict[str, Any]] = []
        self._response = {"id": _id("resp"), "object": "response", "created_at": 0, "model": request.get("model")}

    def give(self, step: Step, call: dict[str, Any] | None) -> None:
        self._send("response.created", response={**self._response, "status": "in_progress", "output": []})
        if step.kind is Kind.THINK:
            self._think(step)
        if call is not None:
            unfinished = {key: "" if key in ("arguments", "input") else value for key, value in call.items()}
            self._item(call, {**unfinished, "status": "in_progress"})
        else:
            self._say(step)
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        }
        response = {**self._response, "status": "completed", "output": self._items, "usage": usage}
        self._send("response.completed", response=response)

    def _think(self, step: Step) -> None:
        """`seconds`, or `seconds|headline`: Codex shows the headline while it waits."""
        seconds, *headline = step.parts
        where = {"item_id": _id("rs"), "output_index": 0, "summary_index": 0}
        if headline:
            empty = {"type": "reasoning", "id": where["item_id"], "summary": []}
            self._send("response.output_item.added", output_index=0, item=empty)
            self._send("response.reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
            text = f"**{headline[0]}**\n\nThere are several of them."
            self._send("response.reasoning_summary_text.delta", **where, delta=text)
        self._exchange.pause(float(seconds or 5))

    def _say(self, step: Step) -> None:
        index = len(self._items)
        message: dict[str, Any] = {"type": "message", "id": _id("msg"), "role": "assistant"}
        where = {"item_id": message["id"], "output_index": index, "content_index": 0}
        empty = {**message, "status": "in_progress", "content": []}
        self._send("response.output_item.added", output_index=index, item=empty)
        part = {"type": "output_text", "text": "", "annotations": []}
        self._send("response.content_part.added", **where, part=part)
        text = ""
        for word in _words(step):
            text += word
            self._send("response.output_text.delta", **where, delta=word)
            if step.kind is Kind.SLOW:
                self._exchange.pause(WORD_TIME)
        self._send("response.output_text.done", **where, text=text)
        done = {**message, "status": "completed", "content": [{**part, "text": text}]}
        self._send("response.output_item.done", output_index=index, item=done)
        self._items.append(done)

    def _item(self, item: dict[str, Any], unfinished: dict[str, Any]) -> None:
        index = len(self._items)
        self._send("response.output_item.added", output_index=index, item=unfinished)
        self._send("response.output_item.done", output_index=index, item=item)
        self._items.append(item)

    def _send(self, kind: str, **fields: Any) -> None:
        self._stream.send({"type": kind, "sequence_number": self._number, **fields}, event=kind)
        self._number += 1


def _words(step: Step) -> Iterator[str]:
    if step.kind is Kind.PLAN:
        # In plan mode this mark makes of a text a plan to be approved.
        yield "\n".join(["<proposed_plan>", *step.parts, "</proposed_plan>"])
    elif step.kind is Kind.THINK:
        yield "Thought about it."
    else:
        for number, word in enumerate(step.words, start=1):
            yield word + ("\n\n" if step.kind is Kind.SLOW and number % _WORDS_IN_PARAGRAPH == 0 else "")


def _conversation(request: dict[str, Any]) -> Conversation:
    conversation = Conversation()
    for item in request.get("input") or []:
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            conversation.result()
        elif item.get("role") == "user":
            for block in item.get("content") or []:
                if "text" in block:
                    conversation.user(block["text"])
    return conversation


def _offered(tools: list[dict[str, Any]], namespace: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool under its name; one of a namespace knows it."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _offered(tool.get("tools") or [], tool["name"])
        elif "name" in tool:
            yield tool["name"], {**tool, "namespace": namespace}


def _call(step: Step, offered: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The call that this version of Codex understands."""
    match step.kind:
        case Kind.BASH | Kind.BACKGROUND:
            leave_sandbox = step.text.split()[0] not in _SANDBOXED
            seconds = 1 if step.kind is Kind.BACKGROUND else 30
            return _shell(step.text, offered, seconds, leave_sandbox=leave_sandbox)
        case Kind.EDIT:
            return _patch(f"*** Add File: {step.text}\n+first line\n+second line\n", offered)
        case Kind.CHANGE:
            return _patch(f"*** Update File: {step.text}\n@@\n-weight = 1\n+weight = 2\n", offered)
        case Kind.ASK:
            question, *options = step.parts
            answers = [{"label": option, "description": f"Take {option}"} for option in options]
            asked = {"id": "choice", "header": "Choice", "question": question, "options": answers}
            return _function("request_user_input", {"questions": [asked]}, offered)
        case Kind.TODO:
            texts = [part.strip() for part in step.text.split(",")]
            first, *others = ({"step": text, "status": "pending"} for text in texts)
            return _function("update_plan", {"plan": [{**first, "status": "in_progress"}, *others]}, offered)
        case Kind.SUB:
            return _function("spawn_agent", {"message": step.text}, offered)
        case Kind.TOOL:
            name, _, arguments = step.text.partition("|")
            return _function(name, json.loads(arguments or "{}"), offered)
    raise LookupError(step.kind)


def _shell(
    command: str, offered: dict[str, dict[str, Any]], seconds: int = 30, *, leave_sandbox: bool = False
) -> dict[str, Any]:
    """A command; what takes longer than so many seconds goes on in the background where this version can do that."""
    name = next(name for name in ("exec_command", "shell_command", "shell", "local_shell") if name in offered)
    properties = offered[name].get("parameters", {}).get("properties", {})
    arguments: dict[str, Any] = {}
    if "cmd" in properties:
        arguments = {"cmd": command, "yield_time_ms": seconds * 1000}
    elif name == "shell":
        arguments = {"command": ["bash", "-lc", command], "timeout_ms": 120_000}
    else:
        arguments = {"command": command, "timeout_ms": 120_000}
    if leave_sandbox:
        arguments["justification"] = _REASON
        if "sandbox_permissions" in properties:
            arguments["sandbox_permissions"] = "require_escalated"
        else:
            arguments["with_escalated_permissions"] = True
    return _function(name, arguments, offered)


def _patch(hunk: str, offered: dict[str, dict[str, Any]]) -> dict[str, Any]:
    patch = f"*** Begin Patch\n{hunk}*** End Patch\n"
    tool = offered.get("apply_patch")
    if tool is None:
        # Codex reads this command itself and makes of it the same dialog.
        return _shell(f"apply_patch <<'EOF'\n{patch}EOF\n", offered)
    if tool.get("type") == "custom":
        call = {"type": "custom_tool_call", "id": _id("ctc"), "call_id": _id("call"), "status": "completed"}
        return {**call, "name": "apply_patch", "input": patch}
    return _function("apply_patch", {"input": patch}, offered)


def _function(name: str, arguments: dict[str, Any], offered: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """`name` may be the end of the name that is offered: servers of tools put their own before it."""
    full = next((known for known in offered if known == name or known.endswith(f"__{name}")), None)
    if full is None:
        raise LookupError(f"{name} is not offered, only {sorted(offered)}")
    item = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": full, "status": "completed"}
    if namespace := offered[full]["namespace"]:
        item["namespace"] = namespace
    return {**item, "arguments": json.dumps(arguments)}


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"
