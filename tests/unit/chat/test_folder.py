"""Programs that a folder names are started only if its user has agreed to them."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path

import pytest

from agtmux.chat.folder import unapproved_servers


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = tmp_path / "work" / "parcels"
    folder.mkdir(parents=True)
    write(folder / ".mcp.json", {"mcpServers": {"post": {"command": "post"}, "ink": {"command": "ink"}}})
    return folder


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")


def test_what_nobody_has_agreed_to_is_named(project: Path):
    assert unapproved_servers(str(project)) == ["ink", "post"]


def test_a_folder_without_any_has_none(tmp_path: Path):
    assert unapproved_servers(str(tmp_path)) == []


def test_what_its_parents_name_counts_as_well(project: Path):
    (project / "labels").mkdir()
    assert unapproved_servers(str(project / "labels")) == ["ink", "post"]


@pytest.mark.parametrize(
    ("place", "content", "left"),
    [
        (".claude/settings.json", {"enabledMcpjsonServers": ["post"]}, ["ink"]),
        (".claude/settings.json", {"enableAllProjectMcpServers": True}, []),
        (".claude/settings.json", {"enabledMcpjsonServers": 7}, ["ink", "post"]),
        # It is not kept from being handed on with the folder, and nobody has said to trust that.
        ("work/parcels/.claude/settings.local.json", {"enableAllProjectMcpServers": True}, ["ink", "post"]),
        ("work/parcels/.claude/settings.local.json", {"enabledMcpjsonServers": ["post", "ink"]}, ["ink", "post"]),
        # The folder cannot agree on its user's behalf.
        ("work/parcels/.claude/settings.json", {"enableAllProjectMcpServers": True}, ["ink", "post"]),
    ],
)
def test_a_users_own_settings_agree_and_the_folders_do_not(project: Path, tmp_path: Path, place, content, left):
    write(tmp_path / place, content)
    assert unapproved_servers(str(project)) == left


@pytest.mark.parametrize(("trusted", "left"), [("work/parcels", []), ("work", []), ("other", ["ink"])])
def test_local_settings_of_a_folder_that_is_trusted_are_the_users(project: Path, tmp_path: Path, trusted, left):
    write(project / ".claude" / "settings.local.json", {"enabledMcpjsonServers": ["ink"]})
    places = {str(tmp_path / trusted): {"hasTrustDialogAccepted": True}}
    places.setdefault(str(project), {})["enabledMcpjsonServers"] = ["post"]
    write(tmp_path / ".claude.json", {"projects": places})
    assert unapproved_servers(str(project)) == left


@pytest.mark.parametrize("place", [".mcp.json", ".claude/settings.local.json"])
def test_what_is_no_file_holds_nobody_up(project: Path, place: str):
    path = project / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(unapproved_servers(str(project))), daemon=True).start()
    assert answers.get(timeout=10) == ([] if place == ".mcp.json" else ["ink", "post"])


def test_what_was_agreed_to_in_the_terminal_counts(project: Path, tmp_path: Path):
    write(tmp_path / ".claude.json", {"projects": {str(project): {"enabledMcpjsonServers": ["ink"]}}})
    assert unapproved_servers(str(project)) == ["post"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"mcpServers": []}', '{"mcpServers": null}'])
def test_a_file_that_cannot_be_read_names_nobody(project: Path, content: str):
    (project / ".mcp.json").write_text(content, "utf-8")
    assert unapproved_servers(str(project)) == []
