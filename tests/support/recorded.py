"""Agents in panes that show what real ones were recorded with: a screen each, drawn anew when another is chosen."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agtmux.agents.registry import Registry

_CORPUS = Path(__file__).parents[1] / "corpus"
_spec = importlib.util.spec_from_file_location("recorded_scoreboard", _CORPUS / "scoreboard.py")
assert _spec is not None and _spec.loader is not None
_scoreboard = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_scoreboard)

WAITING = ("waiting_approval", "waiting_input")
WIDTH, HEIGHT = 80, 24
_DRAW = r'while :; do printf "\033[0m\033[2J\033[H"; cat "$0"; read -r _ || exit; done'
_AT_REST = ("idle", "completed")


def screens(agent: str) -> dict[str, list[str]]:
    """Recorded screens of that agent that need no title to be read, by whether they wait or are at rest."""
    registry = Registry.load()
    found: dict[str, list[str]] = {"waiting": [], "at rest": []}
    for case in _scoreboard.cases():
        state, size = case.label["state"], (case.label["width"], case.label["height"])
        kind = "waiting" if state in WAITING else "at rest" if state in _AT_REST else ""
        if case.agent != agent or size != (WIDTH, HEIGHT) or not kind or case.name.count("-to-"):
            continue
        seen = registry.read_screen(agent, case.screen)
        if seen.state == state and (kind == "waiting" or seen.confidence == "high"):
            found[kind].append(case.screen)
    return found


class RecordedAgents:
    """`tmux` runs one command of a private server and returns what it prints."""

    def __init__(self, tmux: Callable[..., str], folder: Path, agents: list[str]) -> None:
        self._tmux = tmux
        self._folder = folder
        self._screens = {agent: screens(agent) for agent in set(agents)}
        # By pane: which agent, and the file with what it shows.
        self._shown: dict[str, tuple[str, Path]] = {}
        for number, agent in enumerate(agents):
            path = folder / f"screen-{number}"
            path.write_text(self._screens[agent]["at rest"][0].rstrip("\n"))
            verb = ["new-window", "-d", "-a", "-t", "agents:{end}"]
            if not number:
                verb = ["new-session", "-d", "-s", "agents", "-x", str(WIDTH), "-y", str(HEIGHT)]
            words = [*verb, "-P", "-F", "#{pane_id}", shlex.join(["sh", "-c", f"stty -echo; {_DRAW}", str(path)])]
            pane = tmux(*words, ";", "set-option", "-p", "-t", "agents:{end}", "@agtmux_agent", agent).strip()
            self._shown[pane] = agent, path

    @property
    def panes(self) -> list[str]:
        return list(self._shown)

    def show(self, pane: str, kind: str, number: int = 0) -> None:
        """Draw another recorded screen there; returns when it is drawn."""
        self.show_all({pane: kind}, number)

    def show_all(self, kinds: Mapping[str, str], number: int = 0) -> None:
        """The same in many panes at once, with few tmux processes."""
        expected, keys = {}, []
        for pane, kind in kinds.items():
            agent, path = self._shown[pane]
            drawn = self._screens[agent][kind][number % len(self._screens[agent][kind])]
            # The title tells that it was drawn, and nothing of the agent's.
            expected[pane] = f"screen {number} {kind}"
            path.write_text(drawn.rstrip("\n") + f"\033]2;{expected[pane]}\033\\")
            keys += ["send-keys", "-t", pane, "Enter", ";"]
        self._tmux(*keys[:-1])
        for _ in range(500):
            lines = self._tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_title}").splitlines()
            titles = dict(line.split(" ", 1) for line in lines if " " in line)
            if all(titles.get(pane) == title for pane, title in expected.items()):
                return
        raise TimeoutError(f"{', '.join(expected)} do not draw")


def wrong(listing: Mapping[str, Any], waiting: set[str], all_panes: list[str]) -> list[str]:
    """What a listing says that is not so, of agents of which those wait and all others are at rest."""
    items = {item["identity"]["pane_id"]: item for item in listing["items"]}
    found = [f"{pane} is not listed" for pane in all_panes if pane not in items]
    for pane, item in items.items():
        allowed = WAITING if pane in waiting else _AT_REST
        if item["state"] not in allowed:
            found.append(f"{pane} ({item['agent_type']}): {item['state']}/{item['reason_code']}, not {allowed}")
    if listing["summary"]["needs_action"] != len(waiting):
        found.append(f"{listing['summary']['needs_action']} need somebody, not {len(waiting)}")
    return found
