"""Which agents there are: one TOML each, in `resources/agents` and wherever users add some, read once at start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec

from agtmux.agents.hooks import HookRule, read_hook
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.screen.classify import Seen, classify
from agtmux.agents.screen.rules import ScreenSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Verdict
from agtmux.domain.panes import ForegroundProcess
from agtmux.domain.runtimes import NO_AGENT
from agtmux.domain.states import Source

# A package joins with an entry point of this group: a function that returns a folder of such files.
ENTRY_POINTS: Final = "agtmux.agents"
# Beside config.toml: the user's own.
AGENTS_FOLDER: Final = "agents"


class ProcessRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How an agent's process is known: by its command, the package of its script, or where its program lies."""

    commands: list[str] = []
    packages: list[str] = []
    programs: list[str] = []


class SessionFiles(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where an agent writes down what it is doing."""

    folder: str
    pattern: str
    # 1 for files in the folders below.
    depth: Literal[0, 1] = 0


class AgentSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent_type: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    name: str
    process: ProcessRule
    session_files: SessionFiles | None = None
    hooks: HookSettings | None = None
    hook: list[HookRule] = []
    screen: ScreenSheet = ScreenSheet()


def read_sheet(path: str, text: bytes) -> AgentSheet:
    try:
        return msgspec.toml.decode(text, type=AgentSheet)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"{path}: {error}; correct it or move it away") from None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is in a pane, by which process."""

    agent_type: str
    pid: int | None
    started: float | None
    version: str | None = None


class Registry:
    def __init__(self, sheets: list[AgentSheet]) -> None:
        self._sheets = {sheet.agent_type: sheet for sheet in sheets}
        self._commands = {word: sheet.agent_type for sheet in sheets for word in sheet.process.commands}
        self._packages = {word: sheet.agent_type for sheet in sheets for word in sheet.process.packages}
        self._programs = {word: sheet.agent_type for sheet in sheets for word in sheet.process.programs}

    @classmethod
    def load(cls, users_own: Path | None = None) -> Registry:
        """Those that come with agtmux, those of other packages, and the user's own; a later one replaces an earlier of
        the same name."""
        sheets: dict[str, AgentSheet] = {}
        others = [entry_point.load()() for entry_point in entry_points(group=ENTRY_POINTS)]
        for folder in (resources.files("agtmux") / "resources" / "agents", *others, users_own):
            if folder is None or not folder.is_dir():
                continue
            for entry in sorted(folder.iterdir(), key=lambda each: each.name):
                if entry.name.endswith(".toml"):
                    sheet = read_sheet(str(entry), entry.read_bytes())
                    sheets[sheet.agent_type] = sheet
        return cls(list(sheets.values()))

    @property
    def agent_types(self) -> list[str]:
        return list(self._sheets)

    @property
    def session_files(self) -> list[dict[str, Any]]:
        """What a probe is told to watch, each under its agent's name."""
        sheets = ((sheet.agent_type, sheet.session_files) for sheet in self._sheets.values())
        return [{"name": name, **msgspec.to_builtins(files)} for name, files in sheets if files is not None]

    def sheet(self, agent_type: str) -> AgentSheet:
        return self._sheets[agent_type]

    def knows(self, agent_type: str) -> bool:
        return agent_type in self._sheets

    def identify(self, mark: str, command: str, foreground: Sequence[ForegroundProcess]) -> Identity:
        """The agent in a pane: what the pane says of itself, else what runs in front there, outermost first."""
        for process in foreground:
            agent_type = self._who(process)
            if agent_type != NO_AGENT and mark in (agent_type, ""):
                return Identity(agent_type, process.pid, process.started, process.version or None)
        # A mark is about the pane, whatever runs in it: outermost is the pane's own process.
        named = mark if mark in self._sheets else self._commands.get(command, NO_AGENT)
        if not foreground:
            return Identity(named, None, None)
        return Identity(named, foreground[0].pid, foreground[0].started)

    def _who(self, process: ForegroundProcess) -> str:
        if process.package in self._packages:
            return self._packages[process.package]
        words = [word for word in (process.executable, process.script, *process.argv[:1]) if word]
        for word in words:
            name = PurePosixPath(word).name.lstrip("-")
            agent_type = self._commands.get(name) or self._commands.get(name.partition(".")[0])
            if agent_type is not None:
                return agent_type
            for place, agent_type in self._programs.items():
                if place in word:
                    return agent_type
        return NO_AGENT

    def read_screen(self, agent_type: str, text: str, *, title: str = "", command: str = "") -> Seen:
        return classify(text, self._sheets[agent_type].screen, title=title, command=command)

    def reads_screens(self, agent_type: str) -> bool:
        """Whether anything is known of what it shows."""
        screen = self._sheets[agent_type].screen
        return bool(screen.signs or screen.bare_signs or screen.rule)

    def has_verified(self, agent_type: str, version: str | None) -> bool:
        """Whether the screens of that version were looked at when the rules were made."""
        verified = self._sheets[agent_type].screen.verified
        return version is None or version in verified

    def read_hook(self, agent_type: str, event: str, payload: object) -> tuple[Source, Verdict | None]:
        return read_hook(self._sheets[agent_type].hook, event, payload)
