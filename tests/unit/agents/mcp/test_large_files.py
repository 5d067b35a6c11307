"""The bridge in settings that have grown large with an agent's history: registered and taken out as in small ones."""

import json
import resource
from pathlib import Path

import pytest

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import Bridge
from agtmux.probe.files import LARGEST_FILE, MOST_BYTES, FileState
from support.histories import with_history
from unit.agents.mcp.test_files import AGENTS, COMMAND, REGISTRY, SOCKET, Place

IN_JSON = [name for name in AGENTS if name != "codex"]
SERVERS = {"files": {"command": "npx", "args": ["-y", "files"]}}


@pytest.mark.parametrize("agent", IN_JSON)
@pytest.mark.parametrize("members", [{}, {"mcpServers": {}}, {"mcpServers": SERVERS, "last": [1]}], ids=len)
def test_registering_and_back_leaves_every_byte_of_a_large_file(
    tmp_path: Path, agent: str, members: dict[str, object]
) -> None:
    place = Place(tmp_path, agent)
    place.write(with_history(2 * MOST_BYTES, **members))
    before = place.path.read_bytes()
    done = place.register()
    assert (done["error"], done["entry"], done["changed"]) == (None, "registered", True), done
    assert Path(done["backup"]).read_bytes() == before
    content = json.loads(place.path.read_bytes())
    assert content["mcpServers"].pop("agtmux")["args"] == ["--socket", SOCKET]
    assert content == {"mcpServers": {}} | json.loads(before)
    assert (place.status(), place.register()["changed"]) == ("registered", False)
    assert place.unregister()["entry"] == "absent"
    assert place.path.read_bytes() == before
    assert [each.name for each in place.path.parent.iterdir() if ".agtmux-" in each.name] == []


def test_fifteen_megabytes_are_as_before(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    place.write(with_history(15_000_000, mcpServers=SERVERS))
    before = place.path.read_bytes()
    assert place.register()["entry"] == "registered" and len(place.path.read_bytes()) > len(before)
    assert place.unregister()["changed"] is True
    assert place.path.read_bytes() == before


@pytest.mark.parametrize("agent", IN_JSON)
def test_a_file_that_has_grown_large_since_is_unregistered(tmp_path: Path, agent: str) -> None:
    place = Place(tmp_path, agent)
    place.write('{"numStartups": 1}')
    place.register()
    grown = json.loads(with_history(MOST_BYTES)) | json.loads(place.path.read_bytes())
    place.write(json.dumps(grown, indent=2))
    assert place.status() == "registered"
    assert place.unregister()["entry"] == "absent"
    del grown["mcpServers"]
    assert place.path.read_bytes() == json.dumps(grown, indent=2).encode()


def test_a_status_reads_the_file_once_and_a_change_no_more_than_it_has_to(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    place.write(with_history(MOST_BYTES))
    reads: list[str] = []

    class Counting(LocalFiles):
        def read(self, path: str, wanted: object = None) -> FileState | None:
            reads.append("read")
            return super().read(path, wanted)  # type: ignore[arg-type]

        def whole(self, path: str, state: FileState) -> bytes:
            reads.append("whole")
            return super().whole(path, state)

    bridge = Bridge(COMMAND, SOCKET, lambda _: False)
    desk = McpDesk(REGISTRY, Counting(dict(place.files.environ)), Backups(tmp_path / "kept"), bridge)
    for act, times in ((desk.status, ["read"]), (desk.register, ["read", "whole"]), (desk.register, ["read"])):
        reads.clear()
        act(["claude"], ())
        assert reads == times


LARGE = with_history(MOST_BYTES).removesuffix("\n}").encode()


@pytest.mark.parametrize(
    ("end", "problem", "column"),
    [
        (b",\n  ", "a name in double quotes", 3),
        (b',\n  "mcpServers": [1]\n}', '"mcpServers" should be an object', 17),
        (b',\n  "mcpServers": {"a": 1 2}\n}', "a comma or }", 25),
        (b',\n  "a": "\xff"\n}', "not UTF-8", 9),
        (b",\n  " + LARGE, "not JSON", 3),
    ],
)
def test_a_large_file_that_is_broken_is_left_alone_and_the_place_named(
    tmp_path: Path, end: bytes, problem: str, column: int
) -> None:
    place = Place(tmp_path, "claude")
    place.path.write_bytes(LARGE + end)
    done = place.register()["error"]
    assert done["code"] == "E_CONFIG" and str(place.path) in done["message"]
    assert problem in done["message"] and f"(line {LARGE.count(10) + 2}, column {column})" in done["message"]
    assert place.path.read_bytes() == LARGE + end


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_too_large_is_left_alone_with_what_to_do(tmp_path: Path, agent: str) -> None:
    place = Place(tmp_path, agent)
    place.write("")
    with place.path.open("r+b") as file:
        # Without a byte on the disk.
        file.truncate(LARGEST_FILE + 1)
    message = place.register()["error"]["message"]
    assert f"larger than {LARGEST_FILE} bytes" in message and "make it smaller" in message


def test_servers_that_are_too_large_and_large_toml_are_left_alone_with_what_to_do(tmp_path: Path) -> None:
    claude, codex = Place(tmp_path, "claude"), Place(tmp_path, "codex")
    claude.write(json.dumps({"mcpServers": {"x": "y" * MOST_BYTES}}))
    codex.write("# x\n" * (MOST_BYTES // 4 + 1))
    for place, named in ((claude, '"mcpServers"'), (codex, "larger than 1000000 bytes")):
        before = place.path.read_bytes()
        message = place.register()["error"]["message"]
        assert named in message and "smaller" in message
        assert place.path.read_bytes() == before


def test_repeated_registering_fills_no_disk(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    for number in range(4):
        place.write(with_history(MOST_BYTES, number=number))
        place.register()
        place.unregister()
    folder = tmp_path / f"backups{len(SOCKET)}"
    assert len(list(folder.glob("claude-*"))) == 8
    for copy in folder.glob("claude-*"):
        with copy.open("r+b") as file:
            file.truncate(100_000_000)
    done = place.register()
    kept = list(folder.glob("claude-*"))
    assert sum(copy.stat().st_size for copy in kept) <= LARGEST_FILE
    assert len(kept) == 3 and Path(done["backup"]) in kept


def test_where_no_copy_can_be_kept_nothing_is_changed(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    place.write(with_history(MOST_BYTES))
    before = place.path.read_bytes()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, usual[1]))
    try:
        message = place.register()["error"]["message"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert "no copy" in message and "nothing was changed" in message
    assert place.path.read_bytes() == before
    assert list((tmp_path / f"backups{len(SOCKET)}").iterdir()) == []
