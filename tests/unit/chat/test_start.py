"""Why a session could not begin is told as it was said."""

from __future__ import annotations

import pytest

from agtmux.chat.start import _failure
from agtmux.domain.errors import ErrorCode


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("E_CONFIG: the Agent SDK is not installed", ErrorCode.CONFIG, "the Agent SDK is not installed"),
        ("it ended without a word", ErrorCode.AGENT_FAILED, "it ended without a word"),
        ("E_NEVER: heard", ErrorCode.AGENT_FAILED, "E_NEVER: heard"),
    ],
)
def test_a_code_is_told_once(words: str, code: ErrorCode, message: str) -> None:
    error = _failure(words)
    assert (error.code, error.message) == (code, message)
