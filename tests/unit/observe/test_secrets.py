"""A secret planted anywhere in what comes in reaches neither the event's fields nor a byte of the database."""

import asyncio
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST
from agtmux.observe.intake import Intake
from unit.builders import T0, FakeTime, a_core, a_pane, seen

REGISTRY = Registry.load()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
# How a secret is written; the braces are where it stands.
FORMS = [
    "ghp_{}",
    "sk-ant-api03-{}",
    "Authorization: Bearer {}",
    "export GITHUB_TOKEN={}",
    "https://me:{}@example.com/x",
    "curl -H 'X-Api-Key: {}' https://example.com",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
]
FIELDS = ["event_id", "dedupe_key", "event_type", "source_event_id"]
secrets = st.text(LETTERS, min_size=36, max_size=48).filter(lambda text: len(set(text)) > 12)


def an_envelope(**fields: Any) -> bytes:
    envelope = {
        "event_id": "e1",
        "event_type": "state.waiting_approval",
        "source": "hook",
        "dedupe_key": "k1",
        "event_time": "2027-01-15T08:00:00Z",
        "target_id": "host",
        "pane_id": "%1",
    }
    return json.dumps(envelope | fields).encode()


def an_intake() -> Intake:
    return Intake(REGISTRY, FakeTime().clock(), lambda _: HOST)


def stored(event: Event | Any) -> str:
    assert isinstance(event, Event), event
    return repr(asdict(event))


def trace(secret: str) -> str:
    """Long enough to prove a leak, whatever happens at its ends."""
    return secret[4:-4]


def planted_in_payload(text: str) -> dict[str, Any]:
    asked = {"kind": "approval", "summary": text, "detail": f"to run\n{text}", "options": ["yes", text]}
    return {"attention": asked, "note": text, "tool_input": {"command": [text, {"deep": {text: text}}]}}


@given(secrets, st.sampled_from(FORMS), st.sampled_from(FIELDS))
@settings(max_examples=100)
def test_a_secret_in_an_identifier_becomes_a_digest(secret: str, form: str, field: str) -> None:
    text = form.format(secret)
    (event,), _ = an_intake().envelopes(an_envelope(**{field: text}))
    assert trace(secret) not in stored(event)


@given(secrets, st.sampled_from(FORMS))
@settings(max_examples=50)
def test_a_secret_in_what_a_state_asks_for_is_gone(secret: str, form: str) -> None:
    (event,), _ = an_intake().envelopes(an_envelope(raw_payload=planted_in_payload(form.format(secret))))
    assert trace(secret) not in stored(event)
    assert isinstance(event, Event)
    assert event.verdict is not None
    assert event.verdict.attention is not None
    assert event.verdict.attention.options[0] == "yes"


HOOKS = [
    ("claude", "PermissionRequest", lambda text: {"tool_input": {"command": text, "description": text}}),
    ("claude", "PermissionRequest", lambda text: {"tool_name": "ExitPlanMode", "tool_input": {"plan": text}}),
    ("claude", "Elicitation", lambda text: {"message": text}),
    ("claude", "StopFailure", lambda text: {"error": text, "last_assistant_message": text}),
    ("claude", "NoSuchHook", lambda text: text),
    (
        "codex",
        "PreToolUse",
        lambda text: {
            "tool_name": "request_user_input",
            "tool_input": {"questions": [{"question": text, "options": [{"label": text}]}]},
        },
    ),
    ("codex", "notify", lambda text: {"type": "approval-requested", "command": ["sh", "-c", text]}),
    ("copilot", "errorOccurred", lambda text: {"error": {"message": text}}),
    ("gemini", "Notification", lambda text: {"notification_type": "ToolPermission", "details": {"command": text}}),
]


def a_hook(agent: str, event: str, payload: Any, event_id: str = "e1") -> bytes:
    facts = {"v": 1, "agent": agent, "event": event, "event_id": event_id, "event_time_ns": T0 * 1000}
    return json.dumps(facts | {"pane_id": "%1", "tmux": "/x,1,0"}).encode() + b"\n" + json.dumps(payload).encode()


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: f"{hook[0]}.{hook[1]}")
@given(secret=secrets, form=st.sampled_from(FORMS))
@settings(max_examples=10)
def test_a_secret_in_an_agents_payload_is_gone(hook, secret: str, form: str) -> None:
    agent, event, payload = hook
    assert trace(secret) not in stored(an_intake().hook(a_hook(agent, event, payload(form.format(secret)))))


@given(secrets, st.sampled_from(FORMS), st.integers(0, 2_100))
@settings(max_examples=50)
def test_no_half_of_a_secret_survives_a_cut(secret: str, form: str, before: int) -> None:
    """Texts are cut to a length: after they were redacted, never before."""
    text = "x" * before + " " + form.format(secret)
    (event,), _ = an_intake().envelopes(an_envelope(raw_payload=planted_in_payload(text)))
    assert secret[4:16] not in stored(event)


# A secret that could be a word: small letters, digits and underscores only.
WORDLIKE = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
WORDS: dict[str, dict[str, Any]] = {
    "what is asked for": {"raw_payload": {"attention": {"kind": WORDLIKE, "summary": "x"}}},
    "the reason": {"raw_payload": {"reason_code": WORDLIKE}},
    "the target": {"target_id": WORDLIKE},
}


@pytest.mark.parametrize("fields", WORDS.values(), ids=WORDS.keys())
def test_a_secret_in_place_of_a_word_is_refused(fields: dict[str, Any]) -> None:
    """A word has to be kept as it is, so there is nothing that could stand for it."""
    (refused,), _ = an_intake().envelopes(an_envelope(**fields))
    assert isinstance(refused, AgtmuxError)
    assert refused.code is ErrorCode.EVENT_INVALID


def test_a_secret_in_place_of_an_agents_reason_is_not_taken_for_one() -> None:
    event = an_intake().hook(a_hook("claude", "StopFailure", {"error": WORDLIKE}))
    assert event.verdict is not None
    assert event.verdict.reason_code == "turn_failed"
    assert trace(WORDLIKE) not in stored(event)


def test_no_half_of_a_secret_survives_in_the_name_of_a_hook_nobody_knows() -> None:
    for before in range(80):
        event = an_intake().hook(a_hook("claude", "x" * before + " " + WORDLIKE, {}))
        assert WORDLIKE[4:14] not in stored(event), before


LONGEST_TEXT = 16_384
LONG_SECRET = "Zx9Kq2Lm8Pw4Rt6Yv1Bn3Cd5Fg7Hj0SaUe4Wi8Mo"
LONG_FORMS = [*FORMS, "-----BEGIN PRIVATE KEY-----\n{0}\n{0}\n{0}\n-----END PRIVATE KEY-----"]


@pytest.mark.parametrize(
    ("begin", "between"),
    [
        pytest.param("", " ", id="words"),
        pytest.param("", "\n", id="lines"),
        pytest.param("", ",", id="one line"),
        pytest.param("\n", ",", id="one line after a break"),
    ],
)
def test_no_half_of_a_secret_survives_where_a_long_text_is_clipped(begin: str, between: str) -> None:
    """Such a text is clipped before it is redacted, so the cut must not make a secret look like none."""
    filler = begin + ("x" * 9 + between) * 2_000
    for form in LONG_FORMS:
        secret = form.format(LONG_SECRET)
        for start in range(LONGEST_TEXT - len(secret) - 1, LONGEST_TEXT + 1):
            text = filler[: start - 1] + between + secret + between + "y" * 50
            event = an_intake().hook(a_hook("claude", "PostToolUse", {"tool_response": text}))
            assert LONG_SECRET[:12] not in stored(event), (form, start)


async def ingest(directory: Path, text: str) -> None:
    """Everything that can be written, with the text in each place, by every way in."""
    async with a_core(directory) as core:
        pane = a_pane(session_name=f"s {text}", window_name=text, title=text, cwd=f"/tmp/{text}")
        await core.look(seen(pane=pane))
        taken = []
        for number, field in enumerate([*FIELDS, "raw_payload"]):
            content = {"event_id": f"e{number}", "dedupe_key": f"k{number}"}
            content |= {field: planted_in_payload(text) if field == "raw_payload" else f"{number} {text}"}
            taken += core.intake.envelopes(an_envelope(**content))[0]
            # One that finds its pane, one that waits, one that is dropped.
            taken += core.intake.envelopes(an_envelope(**content | {"event_id": f"w{number}", "pane_id": "%7"}))[0]
            taken += core.intake.envelopes(an_envelope(**content | {"event_id": f"d{number}", "target_id": "vm"}))[0]
        for number, (agent, event, payload) in enumerate(HOOKS):
            taken.append(core.intake.hook(a_hook(agent, event, payload(text), f"h{number}"), lambda: [1]))
        events = tuple(event for event in taken if isinstance(event, Event))
        assert len(events) == len(taken)
        await core.ingest.submit(events)
        # As they are while the daemon runs: the log is not yet part of the database.
        for name in ("agtmux.db", "agtmux.db-wal"):
            (directory / f"copy-of-{name}").write_bytes((directory / name).read_bytes())


@given(secrets, st.sampled_from(FORMS))
@settings(max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_no_byte_of_a_planted_secret_is_in_the_database_files(secret: str, form: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(ingest(Path(folder), form.format(secret)))
        files = sorted(Path(folder).iterdir())
        assert [file.name for file in files][:2] == ["agtmux.db", "copy-of-agtmux.db"]
        for file in files:
            assert trace(secret).encode() not in file.read_bytes(), file.name
