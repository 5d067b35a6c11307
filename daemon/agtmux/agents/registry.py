"""Which agents there are: one TOML each, in `resources/agents` and wherever users add some, read once at start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import entry_points
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from agtmux.agents.adapter import SheetAdapter
from agtmux.agents.contract import CONTRACT_VERSION, Adapter, Footing, Glance, SessionFile
from agtmux.agents.screen.anchors import hold_of_nobody
from agtmux.agents.screen.capture import read_capture
from agtmux.agents.screen.classify import Seen
from agtmux.agents.sessions import Status
from agtmux.agents.sheet import AgentSheet, read_sheet
from agtmux.agents.witness import Reading
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Verdict
from agtmux.domain.panes import ForegroundProcess
from agtmux.domain.runtimes import NO_AGENT
from agtmux.domain.states import Confidence, Reason, Source, State

NEEDS_ANSWER: Final = frozenset({State.WAITING_APPROVAL, State.WAITING_INPUT})
# A package joins with an entry point of this group: a function that returns a folder of such files, or adapters.
ENTRY_POINTS: Final = "agtmux.agents"
# Beside config.toml: the user's own.
AGENTS_FOLDER: Final = "agents"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is in a pane, by which process."""

    agent_type: str
    pid: int | None
    started: float | None
    version: str | None = None
    # Whether its process was seen; else only the pane's own mark, or a name, says so.
    is_by_process: bool = False


class Registry:
    def __init__(self, adapters: Iterable[Adapter], disabled: Collection[str] = ()) -> None:
        """`disabled` are the types of agents that are not to be used: nobody is taken for one of them."""
        found = {adapter.sheet.agent_type: adapter for adapter in adapters}
        # All that there are, by name, whether they are used or not.
        self.installed = list(found.values())
        self.disabled = sorted(set(disabled) & set(found))
        self._adapters = {name: adapter for name, adapter in found.items() if name not in disabled}
        commands = ((word, adapter) for adapter in self._adapters.values() for word in adapter.sheet.process.commands)
        self._commands = {word: adapter.sheet.agent_type for word, adapter in commands}

    @classmethod
    def load(cls, users_own: Path | None = None, disabled: Collection[str] = ()) -> Registry:
        """Those that come with agtmux, those of other packages, and the user's own; a later one replaces an earlier of
        the same name."""
        adapters = _in_folder(resources.files("agtmux") / "resources" / "agents")
        for entry_point in entry_points(group=ENTRY_POINTS):
            adapters += _joined(entry_point.name, entry_point.load()())
        if users_own is not None:
            adapters += _in_folder(users_own)
        return cls(adapters, disabled)

    @property
    def agent_types(self) -> list[str]:
        return list(self._adapters)

    @property
    def adapters(self) -> list[Adapter]:
        return list(self._adapters.values())

    @property
    def session_files(self) -> list[dict[str, Any]]:
        """What a probe is told to watch, each under its agent's name."""
        subscriptions = ((name, adapter.subscribe()) for name, adapter in self._adapters.items())
        return [{"name": name, **each.session_files} for name, each in subscriptions if each.session_files is not None]

    def sheet(self, agent_type: str) -> AgentSheet:
        return self._adapters[agent_type].sheet

    def knows(self, agent_type: str) -> bool:
        return agent_type in self._adapters

    def identify(self, mark: str, command: str, foreground: Sequence[ForegroundProcess]) -> Identity:
        """The agent in a pane: what the pane says of itself, else what runs in front there, outermost first."""
        for process in foreground:
            agent_type = self._who(process)
            if agent_type != NO_AGENT and mark in (agent_type, ""):
                return Identity(agent_type, process.pid, process.started, process.version or None, is_by_process=True)
        # A mark is about the pane, whatever runs in it: outermost is the pane's own process.
        named = mark if mark in self._adapters else self._commands.get(command, NO_AGENT)
        if not foreground:
            return Identity(named, None, None)
        return Identity(named, foreground[0].pid, foreground[0].started)

    def _who(self, process: ForegroundProcess) -> str:
        found = (name for name, adapter in self._adapters.items() if adapter.identify(process))
        return next(found, NO_AGENT)

    def poll(self, agent_type: str, glance: Glance) -> Reading:
        return self._adapters[agent_type].poll(glance)

    def footing(self, agent_type: str, glance: Glance) -> Footing | None:
        """What a key would meet there; None if the adapter is older than that question."""
        adapter = self._adapters[agent_type]
        return adapter.footing(glance) if hasattr(adapter, "footing") else None

    def footing_of_nobody(self, glance: Glance) -> Footing:
        """Where no agent is known to be. But whatever looks like anybody's dialog is one."""
        found = (self.footing(each, glance) for each in self.agent_types)
        dialogs = (each for each in found if each is not None and each.reading.seen.state in NEEDS_ANSWER)
        nothing = Reading(Seen(State.UNKNOWN, Reason.NO_AGENT, Confidence.LOW))
        return next(dialogs, None) or Footing(nothing, hold_of_nobody(read_capture(glance.text)))

    def read_screen(
        self, agent_type: str, text: str, *, title: str = "", command: str = "", is_alive: bool | None = None
    ) -> Seen:
        return self.poll(agent_type, Glance(text, title, command, is_alive=is_alive)).seen

    def flags(self, agent_type: str) -> dict[str, bool]:
        """What its adapter can tell, by name."""
        return asdict(self._adapters[agent_type].capabilities)

    def reads_screens(self, agent_type: str) -> bool:
        """Whether anything is known of what it shows."""
        return self._adapters[agent_type].capabilities.polling_required

    def has_verified(self, agent_type: str, version: str | None) -> bool:
        """Whether the screens of that version were looked at when the rules were made."""
        return self._adapters[agent_type].health(version).is_verified

    def read_hook(self, agent_type: str, event: str, payload: object) -> tuple[Source, Verdict | None]:
        return self._adapters[agent_type].normalise(event, payload)

    def transcript_claimed(self, agent_type: str, payload: object) -> str:
        """The file that a hook says its agent writes its conversation to."""
        transcript = self.sheet(agent_type).transcript
        return "" if transcript is None else transcript.claimed(payload)

    def read_file(self, agent_type: str, file: SessionFile) -> tuple[frozenset[int], Status | None]:
        return self._adapters[agent_type].normalise_file(file)


def _in_folder(folder: Traversable) -> list[Adapter]:
    if not folder.is_dir():
        return []
    entries = sorted(folder.iterdir(), key=lambda each: each.name)
    return [SheetAdapter(read_sheet(str(each), each.read_bytes())) for each in entries if each.name.endswith(".toml")]


def _joined(package: str, offered: Any) -> list[Adapter]:
    """What another package brings: a folder of TOML files, or adapters of its own."""
    if not isinstance(offered, list | tuple):
        return _in_folder(offered)
    for adapter in offered:
        version = str(getattr(adapter, "contract_version", "none"))
        if version.partition(".")[0] != CONTRACT_VERSION.partition(".")[0]:
            raise AgtmuxError(
                ErrorCode.CONFIG,
                f"the adapters of {package} are made for contract {version}, and this agtmux has {CONTRACT_VERSION};"
                " update one of the two or uninstall it",
            )
    return list(offered)
