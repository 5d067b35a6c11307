"""Whatever a model writes into a request, a person who approves it has seen all of it."""

from __future__ import annotations

import os

import pytest

from support.chance import any_seed
from support.imitations import Found, search, templates

# A soak draws as many.
MANY = 20_000


def check(found: Found) -> None:
    for name in ("hidden", "colliding", "misleading", "missed"):
        assert getattr(found, name) == [], f"{name}: {found}"


def test_an_approvable_request_shows_all_that_would_run_and_is_told_from_any_other() -> None:
    # CI draws the same ones every time, as with property tests; a run by hand draws new ones.
    found = search(len(templates()), "ci" if os.environ.get("CI") else any_seed())
    print(found)
    check(found)
    assert found.approvable > found.drawn / 5
    assert set(found.agents) == {"claude", "codex", "copilot", "cursor", "gemini"}


@pytest.mark.soak
def test_the_same_with_many_more() -> None:
    found = search(MANY, any_seed())
    print(found)
    check(found)
