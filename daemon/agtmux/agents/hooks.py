"""Hook rules: which event of an agent means which state, read from its TOML.

Rules are tried in the file's order and the first that fits decides. An event that no rule knows is unsupported,
which is not the same as an event that is known to mean nothing.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from agtmux.domain.events import (
    LONGEST_SUMMARY,
    Attention,
    Incomplete,
    Verdict,
    request,
    shortened,
    shortened_text,
)
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.states import Confidence, Reason, Source, State

_REASON: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OPTION_LIMIT: Final = 20
# An argument's name that is shown as it is.
_NAME: Final = re.compile(r"[\w.-]{1,80}")
# As much of a long text is looked through for secrets; less of it is shown.
_LONGEST_TEXT: Final = 64_000
# Lines that are compared with each other; more are shown one after the other.
_MOST_COMPARED: Final = 2_000


class StartsWith(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    starts_with: str


# true: there and not empty; false: absent or empty; a string: exactly that.
Condition = bool | str | StartsWith


class AttentionRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where in the payload the question stands: dotted paths. Of `summary` the first that leads to a text is taken. A
    detail holds the whole request: it begins with that text. Then follow the name of the tool, all that `notes` and
    `detail` lead to, what would be taken out of a file and put in, and whatever else `input` holds, which is all that
    a tool is called with."""

    kind: str
    summary: list[str]
    input: str | None = None
    # The name of the tool; and the agent's own tools, whose input is known. Of any other tool the name is the summary,
    # as `command` or `file_path` may mean anything there.
    tool: str | None = None
    tools: list[str] = []
    # Those of them whose summary is what runs, so that it says all without the tool's name.
    commands: list[str] = []
    # What has to be there, or else the payload does not say what would be done.
    needs: list[str] = []
    # What of the input says nothing that is not said by the rest.
    beside: list[str] = []
    # What the agent says of a command, and does not run.
    notes: list[str] = []
    detail: list[str] = []
    removed: list[str] = []
    added: list[str] = []
    options: str | None = None


class HookRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    event: str | list[str]
    when: dict[str, Condition] = {}
    source: Source = Source.HOOK
    state: State | None = None
    reason_code: Annotated[str, msgspec.Meta(pattern=rf"^{_REASON.pattern}\Z")] | None = None
    # A field of the payload that names the reason better than the rule can.
    reason_path: str | None = None
    # Lower where the agent fires the event in other situations as well.
    confidence: Confidence = Confidence.HIGH
    attention: AttentionRule | None = None

    def fits(self, event: str, payload: object) -> bool:
        events = (self.event,) if isinstance(self.event, str) else self.event
        return event in events and all(holds(payload, path, want) for path, want in self.when.items())

    def verdict(self, event: str, payload: object) -> Verdict | None:
        if self.state is None:
            return None
        return Verdict(
            state=self.state,
            reason_code=self._reason(payload),
            confidence=self.confidence,
            attention=self._attention(payload),
            note=redact_text(f"hook {event}"),
        )

    def _reason(self, payload: object) -> str:
        named = look_up(payload, self.reason_path) if self.reason_path else None
        if isinstance(named, str) and _REASON.fullmatch(named) and redact_text(named) == named:
            return named
        return self.reason_code or Reason.UNSUPPORTED_SIGNAL

    def _attention(self, payload: object) -> Attention | None:
        rule = self.attention
        if rule is None:
            return None
        tool = look_up(payload, rule.tool) if rule.tool else None
        is_foreign = rule.tool is not None and isinstance(tool, str) and tool not in rule.tools
        paths = [rule.tool] if is_foreign and rule.tool else rule.summary
        found = next(((path, text) for path in paths for text in _texts(payload, [path])), None)
        if found is None:
            return None
        path, subject = found
        is_of_input = rule.input is not None and path.startswith(f"{rule.input}.")
        # Whoever says yes has to have seen all that it is for.
        named = [] if is_foreign else [*rule.notes, *rule.detail, *rule.removed, *rule.added, path]
        shown = [each for each in named if any(_texts(payload, [each]))]
        others = _rest(payload, rule.input, [*shown, *rule.beside]) if rule.input else []
        texts, notes = ([] if is_foreign else [*_texts(payload, paths)] for paths in (rule.detail, rule.notes))
        changed = "" if is_foreign else _diff([*_texts(payload, rule.removed)], [*_texts(payload, rule.added)])
        # The name of a tool says little without what it is called with.
        whole = subject if is_of_input else "\n".join([subject, *others])
        is_named = is_of_input and isinstance(tool, str) and tool not in rule.commands
        parts = [f"Tool: {tool}" if is_named else "", *notes, *texts, changed, "\n".join(others) if is_of_input else ""]
        rest = [part for part in parts if part]
        summary = shortened_text(" ".join(whole.split()), LONGEST_SUMMARY)
        is_cut = any(len(value) > _LONGEST_TEXT for value in _texts(payload, named, limit=None))
        is_told = rule.input is not None and isinstance(look_up(payload, rule.input), dict)
        # A plan that is not in the payload is in a file.
        is_told = is_told and (rule.kind != "plan" or is_of_input)
        is_told = is_told and all(look_up(payload, each) for each in rule.needs)
        is_told = is_told or rule.kind not in ("approval", "plan")
        missing = Incomplete.TOO_LONG if is_cut else None if is_told else Incomplete.NOT_REPORTED
        return request(
            kind=rule.kind,
            summary=summary,
            detail="\n\n".join([whole, *rest]) if rest or whole != summary else None,
            options=_options(payload, rule.options),
            incomplete=missing,
            subject=subject,
            is_brief=rule.kind == "approval" and whole == summary and (not rest or rest == notes),
        )


def read_hook(rules: list[HookRule], event: str, payload: object) -> tuple[Source, Verdict | None]:
    """Who spoke, and what it means; None when the event is known to mean nothing."""
    for rule in rules:
        if rule.fits(event, payload):
            return rule.source, rule.verdict(event, payload)
    note = Redacted(f"hook {redact_text(event)[:80]} is not known")
    return Source.HOOK, Verdict(State.UNKNOWN, Reason.UNSUPPORTED_SIGNAL, Confidence.LOW, note=note)


def holds(payload: object, path: str, want: Condition) -> bool:
    value = look_up(payload, path)
    if isinstance(want, bool):
        return bool(value) is want
    if isinstance(want, StartsWith):
        return isinstance(value, str) and value.startswith(want.starts_with)
    return bool(value == want)


def look_up(payload: object, path: str) -> Any:
    value: Any = payload
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _texts(payload: object, paths: list[str], limit: int | None = _LONGEST_TEXT) -> Iterator[str]:
    """What these paths lead to."""
    for path in paths:
        value = look_up(payload, path)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            value = shlex.join(value)
        if isinstance(value, str) and value.strip():
            yield value.strip("\r\n")[:limit]


def _rest(payload: object, path: str, named: list[str]) -> list[str]:
    """Whatever else a tool is called with, as `name: value`. The lines of a value stand further right than names, so
    that none of them can be taken for another argument."""
    value = look_up(payload, path)
    if not isinstance(value, dict):
        return []
    shown = {each.removeprefix(f"{path}.") for each in named if each.startswith(f"{path}.")}
    rest = ((name, each) for name, each in value.items() if name not in shown and each not in (None, "", [], {}))
    return [f"{name if _NAME.fullmatch(name) else json.dumps(name)}:{_indented(each)}" for name, each in rest]


def _indented(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f" {text}" if "\n" not in text else "".join(f"\n    {line}" for line in text.split("\n"))


def _diff(removed: list[str], added: list[str]) -> str:
    """What is taken out and what is put in, in the order of the text. Lines that stay are shown around it."""
    before, after = ("\n".join(texts).split("\n") if texts else [] for texts in (removed, added))
    if not before or not after or len(before) + len(after) > _MOST_COMPARED:
        return "\n".join([*(f"- {line}" for line in before), *(f"+ {line}" for line in after)])
    # Two lines name the files, and the third is the first hunk's. A changed line may look like any of them.
    _, _, _, *shown = difflib.unified_diff(before, after, lineterm="", n=3) if before != after else ("",) * 3
    return "\n".join("@@" if line.startswith("@@") else f"{line[:1]} {line[1:]}" for line in shown)


def _options(payload: object, path: str | None) -> tuple[Redacted, ...]:
    value = look_up(payload, path) if path else None
    if not isinstance(value, list):
        return ()
    labels = (option.get("label") if isinstance(option, dict) else option for option in value)
    texts = [shortened(redact_text(label), LONGEST_SUMMARY) for label in labels if isinstance(label, str)]
    return tuple(texts[:_OPTION_LIMIT])
