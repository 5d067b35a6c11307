"""What real agents have written down is read as what was asked and answered, and nothing else is."""

import json
from pathlib import Path

import pytest

from agtmux.agents.registry import Registry
from agtmux.agents.transcript import Said

REGISTRY = Registry.load()
RECORDED = sorted(Path(__file__).with_name("transcripts").glob("*.jsonl"))
LONG = "And a longer paragraph that has to be wrapped because it goes on and on until the line of the pane is full and"
FIRST = f"The first answer.\n\n- a list\n- with `code`\n\n```python\nx = 1\n```\n\n{LONG} more."
LAST = "The last answer with <b>html</b> & signs."


def read(agent: str, lines: bytes) -> list[Said]:
    sheet = REGISTRY.sheet(agent).transcript
    assert sheet is not None
    return list(sheet.read(lines))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_prompts_and_answers_of_a_real_session_are_read(path: Path):
    found = {each.entry_id: each for each in read(path.name.split("-")[0], path.read_bytes())}.values()
    prompts = [each.text for each in found if each.role == "user"]
    answers = [each.text for each in found if each.role == "assistant"]
    assert prompts[0] == f"First turn. do:say{{{{{FIRST}}}}}"
    assert prompts[-1] == f"Last turn. do:say{{{{{LAST}}}}}"
    assert len(prompts) == 5
    assert (answers[0], answers[-1]) == (FIRST, LAST)
    # What it says of tools, of being stopped, of the session itself, is nothing that was said.
    assert set(answers[1:-1]) <= {"I will use a tool.", "All done.", "It was read."} | {
        text for text in answers if text.startswith("word0 ")
    }
    assert all(each.at is not None and each.at > 1_700_000_000_000_000 for each in found)


def test_there_is_a_recording_of_each_agent_that_writes_one():
    named = {path.name.split("-")[0] for path in RECORDED}
    assert named == {each.sheet.agent_type for each in REGISTRY.adapters if each.sheet.transcript is not None}


def entry(**fields: object) -> bytes:
    message = {"role": "user", "content": "hello"}
    return json.dumps({"type": "user", "uuid": "u1", "isSidechain": False, "message": message} | fields).encode()


def test_lines_that_cannot_be_read_cost_the_others_nothing():
    bad = [b"", b"{", b"[]", b"null", b'"x"', b"17", b"[" * 100_000, b"\xff\xfe\x00", b'{"type": "user"}', b"{}" * 3]
    lines = b"\n".join([*bad, entry(), *bad, entry(uuid="u2")]) + b"\n"
    assert [each.entry_id for each in read("claude", lines)] == ["u1", "u2"]


def test_what_is_no_utf_8_is_kept_as_far_as_it_is():
    line = entry().replace(b"hello", b"caf\xe9")
    assert [each.text for each in read("claude", line)] == ["caf\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\ud83d\ud83d\ude00", r"\ud83dx"])
def test_half_a_character_costs_no_message(half: str):
    """What JavaScript writes where a text was cut in the middle of one."""
    line = entry().replace(b"hello", b"before " + half.encode() + b" after \\\\ud83d")
    found = read("claude", line)
    assert [each.entry_id for each in found] == ["u1"]
    text = found[0].text
    assert text.startswith("before \N{REPLACEMENT CHARACTER}") and text.endswith(r" after \ud83d")
    assert text.encode()


def test_an_id_is_one_word_or_none():
    line = entry(promptId="p\x1b[31m 1")
    assert read("claude", line)[0].request_id is None
    assert read("claude", entry(promptId="p-1"))[0].request_id == "p-1"


@pytest.mark.parametrize(
    "fields",
    [
        {"isSidechain": True},
        {"isMeta": True},
        {"isCompactSummary": True},
        {"message": {"content": "[Request interrupted by user]"}},
        {"message": {"content": "<command-name>/clear</command-name>"}},
        {"message": {"content": [{"type": "tool_result", "content": "x"}]}},
        {"message": {"content": {"text": "x"}}},
        {"message": "x"},
        {"message": {"content": "  \n"}},
    ],
)
def test_what_is_not_the_users_word_is_no_message(fields: dict[str, object]):
    assert read("claude", entry(**fields)) == []


def test_an_entry_without_an_id_is_the_same_one_when_it_is_read_again():
    line = b'{"type":"event_msg","timestamp":"2026-01-01T00:00:00Z","payload":{"type":"user_message","message":"x"}}'
    later = line.replace(b"00Z", b"01Z")
    once, again, other = (read("codex", each)[0] for each in (line, line, later))
    assert once.entry_id == again.entry_id != other.entry_id


def test_a_hook_claims_only_a_file_and_a_subagents_none():
    sheet = REGISTRY.sheet("claude").transcript
    assert sheet is not None
    assert sheet.claimed({"transcript_path": "/a/b.jsonl"}) == "/a/b.jsonl"
    for payload in ({"transcript_path": "b"}, {"transcript_path": 1}, {}, None, "x", {"transcript_path": "/a\0"}):
        assert sheet.claimed(payload) == ""
    assert sheet.claimed({"transcript_path": "/a", "agent_id": "x"}) == ""
