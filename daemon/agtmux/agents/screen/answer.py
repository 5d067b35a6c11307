"""A verdict about a screen as JSON, for `classify` and whoever else shows one."""

from __future__ import annotations

from typing import Any

from agtmux.agents.screen.classify import Seen
from agtmux.domain.redact import redact_text


def as_json(seen: Seen) -> dict[str, Any]:
    asked = seen.asked
    return {
        "state": seen.state.value,
        "reason_code": str(seen.reason_code),
        "confidence": seen.confidence.value,
        "evidence": [str(redact_text(line)) for line in seen.evidence],
        "attention": None
        if asked is None
        else {
            "kind": asked.kind,
            "summary": str(redact_text(asked.summary)),
            "detail": str(redact_text(asked.detail)) if asked.detail else None,
            "options": [str(redact_text(option)) for option in asked.options],
        },
        "composer": seen.composer,
        "fingerprint": None if asked is None else asked.fingerprint,
        "is_overlay": seen.is_overlay,
    }
