"""A file is an agent's own by proof, and nobody's without."""

import json
import os
import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.probe import transcripts

SESSION = "0a1b2c3d-0000-4000-8000-000000000001"
OTHER = "0a1b2c3d-0000-4000-8000-000000000002"


def rule(agent: str, folder: Path) -> dict[str, Any]:
    sheet = Registry.load().sheet(agent).transcript
    assert sheet is not None
    return sheet.rule | {"folders": [str(folder)]}


def made(path: Path, text: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def found(agent: str, folder: Path, claimed: str = "", *, started: float = 0.0) -> str:
    return str(transcripts.find([[os.getpid(), started]], rule(agent, folder), claimed)["path"])


def test_the_registry_of_a_process_names_its_session(tmp_path: Path):
    mine = made(tmp_path / "projects/-a" / f"{SESSION}.jsonl")
    other = made(tmp_path / "projects/-a" / f"{OTHER}.jsonl")
    assert found("claude", tmp_path) == ""
    # Without a registry, what its hooks say.
    assert found("claude", tmp_path, other) == other
    made(tmp_path / "sessions" / f"{os.getpid()}.json", json.dumps({"sessionId": SESSION}))
    assert found("claude", tmp_path) == mine
    assert found("claude", tmp_path, other) == mine


def test_a_registry_that_is_older_than_the_process_is_anothers(tmp_path: Path):
    made(tmp_path / "projects/-a" / f"{SESSION}.jsonl")
    note = tmp_path / "sessions" / f"{os.getpid()}.json"
    made(note, json.dumps({"sessionId": SESSION}))
    os.utime(note, (1_000_000, 1_000_000))
    assert found("claude", tmp_path, started=time.time()) == ""


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sessionId": 1}', '{"sessionId": "../../x"}', '{"sessionId": "*"}'])
def test_a_registry_that_cannot_be_read_names_nothing(tmp_path: Path, text: str):
    made(tmp_path / "projects/-a" / f"{SESSION}.jsonl")
    made(tmp_path / "sessions" / f"{os.getpid()}.json", text)
    assert found("claude", tmp_path) == ""


def test_a_registry_that_is_no_file_holds_nobody_up(tmp_path: Path):
    """Whoever would open it for reading waits for somebody who writes."""
    made(tmp_path / "projects/-a" / f"{SESSION}.jsonl")
    (tmp_path / "sessions").mkdir()
    os.mkfifo(tmp_path / "sessions" / f"{os.getpid()}.json")
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(found("claude", tmp_path)), daemon=True).start()
    assert answers.get(timeout=10) == ""


def test_a_claim_leads_out_of_no_folder(tmp_path: Path):
    folder = tmp_path / "codex"
    outside = made(tmp_path / f"rollout-2026-01-02T03-04-05-{SESSION}.jsonl")
    (folder / "sessions").mkdir(parents=True)
    assert found("codex", folder, f"{folder}/sessions/../../{Path(outside).name}") == ""
    assert found("codex", folder, f"{folder}/sessions/../../../{Path(outside).name}") == ""
    assert found("codex", folder, f"{folder}/sessions/./../../{Path(outside).name}") == ""


def test_an_agents_folder_that_is_itself_a_link_is_its_own(tmp_path: Path):
    mine = made(tmp_path / "kept/projects/-a" / f"{SESSION}.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    claimed = str(tmp_path / "link/projects/-a" / Path(mine).name)
    assert found("claude", tmp_path / "link", claimed) == claimed


def test_a_folder_that_depends_on_where_one_is_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "here/projects/-a" / f"{SESSION}.jsonl")
    made(tmp_path / "here/sessions" / f"{os.getpid()}.json", json.dumps({"sessionId": SESSION}))
    assert found("claude", Path("here")) == ""


def test_a_claim_is_taken_only_for_a_file_of_that_agent(tmp_path: Path):
    for path in (tmp_path / "secret.jsonl", tmp_path / "projects/a/b/c.jsonl", tmp_path.parent / f"{SESSION}.jsonl"):
        assert found("claude", tmp_path, made(path)) == ""


def test_a_lock_beside_it_names_the_process(tmp_path: Path):
    mine = made(tmp_path / "session-state" / SESSION / "events.jsonl")
    made(tmp_path / "session-state" / OTHER / "events.jsonl")
    assert found("copilot", tmp_path) == ""
    made(tmp_path / "session-state" / SESSION / f"inuse.{os.getpid()}.lock")
    assert found("copilot", tmp_path) == mine
    # Two of them would be a guess.
    made(tmp_path / "session-state" / OTHER / f"inuse.{os.getpid()}.lock")
    assert found("copilot", tmp_path) == ""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell what a process has open")
def test_a_process_has_its_file_open(tmp_path: Path):
    folder = tmp_path.resolve()
    mine = made(folder / "sessions/2026/01/02" / f"rollout-2026-01-02T03-04-05-{SESSION}.jsonl")
    made(folder / "sessions/2026/01/02" / f"rollout-2026-01-02T03-04-05-{OTHER}.jsonl")
    assert found("codex", folder) == ""
    with Path(mine).open():
        told = transcripts.find([[os.getpid(), 0.0]], rule("codex", folder), "")
        assert (told["path"], told["session_id"], told["is_proven"]) == (mine, SESSION, True)
