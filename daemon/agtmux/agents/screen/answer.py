"""A verdict about a screen as JSON, for `classify` and whoever else shows one."""

from __future__ import annotations

from typing import Any

from agtmux.agents.screen.classify import Seen
from agtmux.domain.events import request
from agtmux.domain.redact import redact_text


def as_json(seen: Seen) -> dict[str, Any]:
    asked = seen.asked
    attention = None
    if asked is not None:
        attention = request(
            asked.kind,
            asked.summary,
            asked.detail or None,
            tuple(redact_text(option) for option in asked.options),
            asked.incomplete,
            asked.subject,
            is_brief=asked.is_brief,
        )
    return {
        "state": seen.state.value,
        "reason_code": str(seen.reason_code),
        "confidence": seen.confidence.value,
        "evidence": [str(redact_text(line)) for line in seen.evidence],
        "attention": None
        if attention is None
        else {
            "kind": attention.kind,
            "summary": str(attention.summary),
            "detail": None if attention.detail is None else str(attention.detail),
            "options": [str(option) for option in attention.options],
            "whole": attention.is_whole,
            "incomplete_reason": attention.incomplete,
            "brief": attention.is_brief,
        },
        "composer": seen.composer,
        "fingerprint": None if asked is None else asked.fingerprint,
        "is_overlay": seen.is_overlay,
    }
