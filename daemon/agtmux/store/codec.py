"""Verdicts, attention and evidence as JSON columns, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from agtmux.domain.events import Attention, Verdict
from agtmux.domain.redact import Redacted
from agtmux.engine.resolve import Evidence


def _encode_hook(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(f"no JSON form for {type(value).__name__}")


def _decode_hook(kind: type, value: Any) -> Any:
    # Only what was redacted is ever stored, so what comes back is.
    if kind is Redacted:
        return Redacted(value)
    raise NotImplementedError(f"no value of {kind.__name__} in JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)
_VERDICT = msgspec.json.Decoder(Verdict, dec_hook=_decode_hook)
_ATTENTION = msgspec.json.Decoder(Attention, dec_hook=_decode_hook)
_EVIDENCE = msgspec.json.Decoder(tuple[Evidence, ...], dec_hook=_decode_hook)


def encode(value: Verdict | Attention | tuple[Evidence, ...] | None) -> str | None:
    return None if value is None else _ENCODER.encode(value).decode()


def decode_verdict(text: str | None) -> Verdict | None:
    return None if text is None else _VERDICT.decode(text)


def decode_attention(text: str | None) -> Attention | None:
    return None if text is None else _ATTENTION.decode(text)


def decode_evidence(text: str) -> tuple[Evidence, ...]:
    return _EVIDENCE.decode(text)
