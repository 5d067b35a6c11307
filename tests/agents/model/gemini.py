"""Gemini's generateContent, as the Gemini CLI speaks it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agents.model.script import WORD_TIME, Conversation, Kind, Step, directives
from agents.model.server import Exchange

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}

# What the program asks beside the conversation, by a word in the schema of the answer that it wants.
_ASIDES: tuple[tuple[str, dict[str, object]], ...] = (
    ("next_speaker", {"reasoning": "The answer is complete.", "next_speaker": "user"}),
    ("model_choice", {"reasoning": "It is simple.", "model_choice": "flash"}),
    ("complexity_score", {"complexity_reasoning": "It is simple.", "complexity_score": 10}),
    ("unproductive_state", {"unproductive_state_analysis": "None.", "unproductive_state_confidence": 0.0}),
)


def stream(exchange: Exchange) -> None:
    step = _decide(exchange)
    if step.kind is Kind.ERROR:
        _fail(exchange, step.status)
        return
    with exchange.events() as events:
        if step.kind is Kind.THINK:
            seconds, *headline = step.parts
            if headline:
                thought = {"text": f"**{headline[0]}**\n\nThere are several of them.", "thought": True}
                events.send(_answer([thought]))
            exchange.pause(float(seconds or 5))
        if step.is_tool:
            events.send(_answer([{"text": "I will use a tool."}]))
            events.send(_answer([_call(step, exchange.body)], last=True))
            return
        words = ["Thought about it."] if step.kind is Kind.THINK else step.words
        for number, word in enumerate(words, start=1):
            events.send(_answer([{"text": word}], last=number == len(words)))
            if step.kind is Kind.SLOW:
                exchange.pause(WORD_TIME)


def generate(exchange: Exchange) -> None:
    step = _decide(exchange)
    if step.kind is Kind.ERROR:
        _fail(exchange, step.status)
    elif step.is_tool:
        exchange.json(_answer([_call(step, exchange.body)], last=True))
    else:
        exchange.json(_answer([{"text": "".join(step.words)}], last=True))


def count_tokens(exchange: Exchange) -> None:
    exchange.json({"totalTokens": 100})


ROUTES = (
    (r":streamGenerateContent$", stream),
    (r":generateContent$", generate),
    (r":countTokens$", count_tokens),
)


def _decide(exchange: Exchange) -> Step:
    request = exchange.body
    wanted = json.dumps(request.get("generationConfig") or {})
    if "chema" in wanted or "application/json" in wanted:
        answer = next((answer for word, answer in _ASIDES if word in wanted), {"reasoning": "None."})
        exchange.step = Step(Kind.SAY, json.dumps(answer))
    else:
        exchange.main = bool(_offered(request))
        exchange.step = _conversation(request).next(tools=exchange.main)
    return exchange.step


def _fail(exchange: Exchange, status: int) -> None:
    error = {"code": status, "message": f"scripted {status}", "status": STATUSES.get(status, "INTERNAL")}
    exchange.json({"error": error}, status)


def _answer(parts: list[dict[str, Any]], *, last: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "scripted", "responseId": "scripted"}


def _conversation(request: dict[str, Any]) -> Conversation:
    conversation = Conversation()
    for content in request.get("contents") or []:
        parts = content.get("parts") or []
        if content.get("role") != "user":
            continue
        texts = [part["text"] for part in parts if part.get("text")]
        # After a turn that was cancelled, the next message may come in one with what was left of it.
        latest = [text for text in texts if directives(text)][-1:]
        if any("functionResponse" in part for part in parts):
            # Other text beside a result is the program's own.
            conversation.result()
            texts = latest
        if texts:
            conversation.user("\n".join(latest or texts))
    return conversation


def _offered(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    tools = [tool for group in request.get("tools") or [] for tool in group.get("functionDeclarations") or []]
    return {tool["name"]: tool for tool in tools}


def _call(step: Step, request: dict[str, Any]) -> dict[str, Any]:
    offered = _offered(request)
    name, arguments = _function(step, offered, request)
    # A server's tool has the server's name before its own.
    full = next((known for known in offered if known == name or known.endswith(f"_{name}")), None)
    if full is None:
        raise LookupError(f"{name} is not offered, only {sorted(offered)}")
    # Newer models refuse a conversation whose calls are not signed, and newer programs look for that.
    return {"functionCall": {"name": full, "args": arguments}, "thoughtSignature": "c2NyaXB0ZWQ="}


def _folder(request: dict[str, Any]) -> str:
    text = json.dumps([request.get("systemInstruction"), request.get("contents")])
    found = re.search(r"[Dd]irector(?:y|ies)\W*?(?:\\n\s*)?\W*?(/tmp/[^\s\\\"`*]+)", text)
    return found[1] if found else "."


def _plan(text: str, tool: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """A plan is a file in a folder that the program names. A model would write it with a tool; here it just is."""
    found = re.search(r"(/tmp/[^\s\\\"`*]+/plans)/?[`\s\\\"]", json.dumps(request))
    if found is None:
        raise LookupError("the request names no folder for plans")
    path = Path(found[1]) / "labels.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Plan\n\n{text}\n", "utf-8")
    properties = json.dumps(tool)
    return {"plan_filename": path.name} if "plan_filename" in properties else {"plan_path": str(path)}


def _function(step: Step, offered: dict[str, dict[str, Any]], request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    folder = _folder(request)
    match step.kind:
        case Kind.BASH:
            return "run_shell_command", {"command": step.text, "description": "Run a command for the labels"}
        case Kind.EDIT:
            return "write_file", {"file_path": f"{folder}/{step.text}", "content": "first line\nsecond line\n"}
        case Kind.CHANGE:
            return "replace", {
                "file_path": f"{folder}/{step.text}",
                "instruction": "Make the labels heavier.",
                "old_string": "weight = 1",
                "new_string": "weight = 2",
            }
        case Kind.FETCH:
            return "web_fetch", {"prompt": f"What does {step.text} say?"}
        case Kind.ASK | Kind.ASK_MANY:
            question, *options = step.parts
            asked = {"question": question, "header": "Choice", "type": "choice" if options else "text"}
            if options:
                asked["options"] = [{"label": option, "description": f"Take {option}"} for option in options]
                asked["multiSelect"] = step.kind is Kind.ASK_MANY
            return "ask_user", {"questions": [asked]}
        case Kind.PLAN:
            return "exit_plan_mode", _plan(step.text, offered.get("exit_plan_mode") or {}, request)
        case Kind.TODO:
            texts = [part.strip() for part in step.text.split(",")]
            todos = [{"description": text, "status": "pending" if n else "in_progress"} for n, text in enumerate(texts)]
            return "write_todos", {"todos": todos}
        case Kind.TOOL:
            name, _, arguments = step.text.partition("|")
            return name, json.loads(arguments or "{}")
    raise LookupError(step.kind)
