"""Whatever an agent's file looks like: registering adds one entry, unregistering restores every byte."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.install.jsonc import as_python, parse
from agtmux.agents.mcp import json_file, toml_file
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import Bridge
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError
from agtmux.probe.files import FileState
from unit.agents.install.documents import documents
from unit.agents.mcp.starting_files import JSON, TOML

REGISTRY = Registry.load()
AGENTS = [name for name in REGISTRY.agent_types if REGISTRY.sheet(name).mcp is not None]
COMMAND = "/opt/agtmux/bin/agtmux-mcp"
SOCKET = "/run/me/agtmux/agtmuxd.sock"
OTHER = "/run/me/other/agtmuxd.sock"
ENTRY = {"command": COMMAND, "args": ["--socket", SOCKET], "env_vars": ["TMUX", "TMUX_PANE"]}
STARTING_FILES = {"json": JSON, "toml": TOML}


class Place:
    """A user's home with one agent, and an agtmux for it."""

    def __init__(self, folder: Path, agent: str, socket: str = SOCKET, living: tuple[str, ...] = ()) -> None:
        self.agent = agent
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.files = LocalFiles({"HOME": str(self.home)})
        settings = REGISTRY.sheet(agent).mcp
        assert settings is not None
        self.settings = settings
        self.path = Path(settings.path(self.files.environ))
        bridge = Bridge(COMMAND, socket, living.__contains__)
        self.desk = McpDesk(REGISTRY, self.files, Backups(folder / f"backups{len(socket)}"), bridge)

    def write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(text.encode())

    def register(self) -> dict[str, Any]:
        (item,) = self.desk.register([self.agent], ())
        return item

    def unregister(self) -> dict[str, Any]:
        (item,) = self.desk.unregister([self.agent])
        return item

    def status(self) -> str:
        return str(self.desk.status([self.agent], ())[0]["entry"])

    def servers(self) -> Any:
        text = self.path.read_text("utf-8")
        content = (
            tomllib.loads(text.removeprefix("\ufeff")) if self.settings.format == "toml" else as_python(parse(text))
        )
        return content[self.settings.under]


def starts() -> list[Any]:
    return [
        pytest.param(agent, text, id=f"{agent}: {name}")
        for agent in AGENTS
        for name, text in STARTING_FILES[REGISTRY.sheet(agent).mcp.format].items()  # type: ignore[union-attr]
    ]


def test_every_agent_that_has_a_place_for_servers_is_known() -> None:
    """gwt FR-021."""
    assert sorted(AGENTS) == ["claude", "codex", "copilot", "cursor", "gemini"]
    assert min(len(texts) for texts in STARTING_FILES.values()) >= 10


@pytest.mark.parametrize(("agent", "text"), starts())
def test_registering_and_back_leaves_every_byte(tmp_path: Path, agent: str, text: str) -> None:
    """gwt FR-017, FR-018."""
    place = Place(tmp_path, agent)
    place.write(text)
    before = place.path.read_bytes()
    done = place.register()
    assert (done["error"], done["entry"], done["changed"]) == (None, "registered", True), done
    entry = place.servers()["agtmux"]
    assert (entry["command"], entry["args"]) == (COMMAND, ["--socket", SOCKET])
    assert place.status() == "registered"
    again = place.register()
    assert (again["entry"], again["changed"]) == ("registered", False)
    gone = place.unregister()
    assert (gone["entry"], gone["changed"]) == ("absent", True)
    assert place.path.read_bytes() == before
    assert sorted(each.name for each in place.path.parent.iterdir() if ".agtmux-" in each.name) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_made_for_the_entry_goes_with_it(tmp_path: Path, agent: str) -> None:
    place = Place(tmp_path, agent)
    place.register()
    assert place.status() == "registered"
    assert place.path.stat().st_mode & 0o777 == 0o600
    place.unregister()
    assert list(place.home.iterdir()) == []


@given(documents())
def test_any_json_is_as_before(text: str) -> None:
    for under in ("mcpServers", "hooks", "a"):
        servers = as_python(parse(text)).get(under, {})
        if isinstance(servers, dict):
            assert json_file.removed(json_file.added(text, under, ENTRY), under) == text


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { files = { command = "x" } }\n', "mcp_servers.files.command = 1\nmcp_servers.agtmux = 2\n"],
)
def test_toml_that_cannot_be_added_to_is_left_alone(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, "codex")
    place.write(text)
    done = place.register()
    assert done["error"] or done["entry"] == "foreign"
    assert place.path.read_text() == text


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", ["{ not", "= 1", "[1]", '"x"', "\xff\x00"])
def test_a_file_that_cannot_be_read_is_left_alone_and_named(tmp_path: Path, agent: str, text: str) -> None:
    place = Place(tmp_path, agent)
    place.write(text)
    if agent == "codex" and text == "[1]":
        return  # a table of that name
    done = place.register()
    assert done["error"]["code"] == "E_CONFIG" and str(place.path) in done["error"]["message"]
    assert place.path.read_bytes() == text.encode()


@pytest.mark.parametrize("agent", AGENTS)
def test_an_entry_that_is_not_ours_is_left_alone(tmp_path: Path, agent: str) -> None:
    place = Place(tmp_path, agent)
    mine = {"command": "my-own", "args": ["--socket", SOCKET]}
    is_toml = place.settings.format == "toml"
    place.write(toml_file.added(None, "mcp_servers", mine) if is_toml else json.dumps({"mcpServers": {"agtmux": mine}}))
    before = place.path.read_bytes()
    done = place.register()
    assert (done["entry"], done["changed"]) == ("foreign", False) and "somebody else" in done["warnings"][0]
    assert (place.unregister()["changed"], place.path.read_bytes()) == (False, before)


@pytest.mark.parametrize("agent", AGENTS)
def test_two_agtmux_do_not_fight(tmp_path: Path, agent: str) -> None:
    first = Place(tmp_path, agent)
    second = Place(tmp_path, agent, OTHER, living=(SOCKET,))
    first.register()
    before = first.path.read_bytes()
    done = second.register()
    assert (done["entry"], done["changed"], done["socket"]) == ("other_instance", False, SOCKET)
    assert SOCKET in done["warnings"][0]
    assert second.unregister()["entry"] == "other_instance"
    assert first.path.read_bytes() == before


@pytest.mark.parametrize("agent", AGENTS)
def test_the_entry_of_an_agtmux_that_is_gone_is_taken_over(tmp_path: Path, agent: str) -> None:
    """gwt FR-019."""
    Place(tmp_path, agent).register()
    second = Place(tmp_path, agent, OTHER)
    assert second.status() == "abandoned"
    done = second.register()
    assert (done["entry"], done["socket"]) == ("registered", OTHER)
    second.unregister()
    assert not second.path.exists()


def test_what_a_user_adds_to_the_entry_stays_while_it_is_right(tmp_path: Path) -> None:
    place = Place(tmp_path, "gemini")
    place.register()
    place.write(place.path.read_text().replace('"args"', '"trust": true,\n "args"'))
    assert place.register()["changed"] is False
    place.unregister()
    assert not place.path.exists()


def test_links_are_followed_and_modes_kept(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    real = tmp_path / "dotfiles.json"
    real.write_text("{}\n")
    real.chmod(0o640)
    place.path.symlink_to(real)
    assert "symbolic link" in place.register()["warnings"][0]
    assert place.path.is_symlink() and "agtmux-mcp" in real.read_text() and real.stat().st_mode & 0o777 == 0o640
    place.unregister()
    assert real.read_text() == "{}\n" and place.path.is_symlink()


def test_a_read_only_file_stays_so(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    place.write("{}\n")
    place.path.chmod(0o400)
    assert "read-only" in place.register()["error"]["message"]
    assert place.path.read_text() == "{}\n"


def test_an_agent_that_writes_in_the_same_moment_is_not_overwritten(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    place.write('{"numStartups": 1}\n')
    looks = 0

    class Busy(LocalFiles):
        def replace(self, path: str, data: bytes, before: FileState | None, mode: int | None = None) -> list[str]:
            nonlocal looks
            looks += 1
            if looks < 3:
                place.write(f'{{"numStartups": {looks + 1}}}\n')
            return super().replace(path, data, before, mode)

    bridge = Bridge(COMMAND, SOCKET, lambda _: False)
    desk = McpDesk(REGISTRY, Busy(dict(place.files.environ)), Backups(tmp_path / "kept"), bridge)
    assert desk.register(["claude"], ())[0]["entry"] == "registered"
    place.unregister()
    assert place.path.read_text() == '{"numStartups": 3}\n'


def test_only_agents_that_are_used_or_installed_are_meant(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude")
    assert place.desk.register([], ()) == []
    (place.home / ".gemini").mkdir()
    told = place.desk.register([], ("codex",))
    assert sorted(item["agent"] for item in told) == ["codex", "gemini"]
    assert {item["agent"] for item in place.desk.unregister([]) if item["changed"]} == {"codex", "gemini"}
    assert list(place.home.rglob("*")) == [place.home / ".gemini"]


def test_only_the_bridge_itself_is_registered() -> None:
    for command in ("agtmux-mcp", "/opt/other", "/opt/agtmux-mcp\n"):
        with pytest.raises(AgtmuxError):
            Bridge(command, SOCKET, lambda _: False)
