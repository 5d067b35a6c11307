"""What a screen has wrapped is put together again, and a secret in it is still found to be one."""

from __future__ import annotations

import pytest

from agtmux.agents.registry import Registry
from agtmux.agents.screen.said import read_turns
from agtmux.conversations.message import kept

SHEET = Registry.load().sheet("claude")
LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"
SECRETS = ["sk-ant-api03-" + LETTERS * 3, "npm_" + LETTERS + "aB3d", "ghp_" + LETTERS + "aB3d", "hf_" + LETTERS + "ab"]


def drawn(text: str, width: int) -> list[str]:
    """As agents wrap: between words, and within one that is longer than a line."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return lines


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("width", [24, 30, 37, 44, 60, 76])
def test_a_secret_that_was_wrapped_is_not_kept(secret: str, width: int):
    for text in (
        f"use {secret} for it",
        secret,
        f"{secret} it is, and that is all there is to say of it",
        f"a key: {secret}",
    ):
        prompt, answer = drawn(text, width), drawn(text, width)
        screen = [f"> {prompt[0]}", *(f"  {line}" for line in prompt[1:])]
        screen += [f"● {answer[0]}", *(f"  {line}" for line in answer[1:])]
        (turn,) = read_turns(SHEET.screen, SHEET.spoken, screen, width + 4)
        for told in (kept(turn.prompt)[0], kept(turn.answer)[0]):
            pieces = [secret[at : at + 8] for at in range(14, len(secret) - 8)]
            assert not [piece for piece in pieces if piece in told], told


def test_words_stay_words():
    text = (
        "The password has to be changed by everybody, and the token of the service as well, says the handbook of them."
    )
    lines = drawn(text, 30)
    screen = ["> go", f"● {lines[0]}", *(f"  {line}" for line in lines[1:])]
    (turn,) = read_turns(SHEET.screen, SHEET.spoken, screen, 34)
    assert turn.answer == text
