"""Hook rules: which event of an agent means which state, read from its TOML.

Rules are tried in the file's order and the first that fits decides. An event that no rule knows is unsupported,
which is not the same as an event that is known to mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from agtmux.domain.events import LONGEST_DETAIL, LONGEST_SUMMARY, Attention, Verdict, shortened
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.states import Confidence, Reason, Source, State

_REASON: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OPTION_LIMIT: Final = 20
# As much of a long text is looked through for secrets; far less of it is shown.
_REDACTED: Final = 32 * LONGEST_DETAIL


class StartsWith(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    starts_with: str


# true: there and not empty; false: absent or empty; a string: exactly that.
Condition = bool | str | StartsWith


class AttentionRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where in the payload the question stands: dotted paths. Of `summary` the first that leads to a text is taken; if
    that is more than a line, the detail begins with it. Then follow all that `detail` leads to, and what would be taken
    out of a file and put in."""

    kind: str
    summary: list[str]
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
            confidence=Confidence.HIGH,
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
        whole = next(_texts(payload, rule.summary), None)
        if whole is None:
            return None
        summary = shortened(Redacted(" ".join(whole.split())), LONGEST_SUMMARY)
        # Whoever says yes has to have seen all that it is for.
        parts = [*([] if whole == summary else [whole]), *_texts(payload, rule.detail)]
        changed = [*_marked("- ", _texts(payload, rule.removed)), *_marked("+ ", _texts(payload, rule.added))]
        if changed:
            parts.append("\n".join(changed))
        return Attention(
            kind=rule.kind,
            summary=summary,
            detail=shortened(Redacted("\n\n".join(parts)), LONGEST_DETAIL) if parts else None,
            options=_options(payload, rule.options),
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


def _texts(payload: object, paths: list[str]) -> Iterator[str]:
    """What these paths lead to, redacted: before it is cut, so that no half of a secret escapes its pattern."""
    for path in paths:
        value = look_up(payload, path)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        if isinstance(value, str) and value.strip():
            yield redact_text(value.strip()[:_REDACTED])


def _marked(sign: str, texts: Iterator[str]) -> list[str]:
    return [f"{sign}{line}" for text in texts for line in text.split("\n")]


def _options(payload: object, path: str | None) -> tuple[Redacted, ...]:
    value = look_up(payload, path) if path else None
    if not isinstance(value, list):
        return ()
    labels = (option.get("label") if isinstance(option, dict) else option for option in value)
    texts = [shortened(redact_text(label), LONGEST_SUMMARY) for label in labels if isinstance(label, str)]
    return tuple(texts[:_OPTION_LIMIT])
