"""The adapter that a TOML alone makes. One with code of its own inherits from it and says otherwise where it must."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

from agtmux.agents.contract import (
    CONTRACT_VERSION,
    AdapterHealth,
    Capabilities,
    Footing,
    Glance,
    SessionFile,
    Subscription,
)
from agtmux.agents.hooks import read_hook
from agtmux.agents.screen.anchors import find_hold
from agtmux.agents.screen.capture import read_capture
from agtmux.agents.screen.classify import classify
from agtmux.agents.screen.replies import find_replies
from agtmux.agents.sessions import Status
from agtmux.agents.sheet import AgentSheet
from agtmux.agents.witness import Reading, read_both
from agtmux.domain.events import Verdict
from agtmux.domain.panes import ForegroundProcess
from agtmux.domain.states import Source, State


class SheetAdapter:
    contract_version = CONTRACT_VERSION

    def __init__(self, sheet: AgentSheet) -> None:
        self.sheet = sheet

    @property
    def capabilities(self) -> Capabilities:
        sheet = self.sheet
        reads_screens = _reads_screens(sheet)
        # Rules made from descriptions tell what may be so, with less confidence. They support nothing.
        seen = reads_screens and not sheet.screen.is_described
        told = {rule.state for rule in sheet.hook}
        return Capabilities(
            event_driven=any(state is not None for state in told),
            polling_required=reads_screens,
            supports_waiting_approval=seen or State.WAITING_APPROVAL in told,
            supports_waiting_input=seen or State.WAITING_INPUT in told,
            supports_completed=seen or State.COMPLETED in told,
        )

    def identify(self, process: ForegroundProcess) -> bool:
        rule = self.sheet.process
        if process.package in rule.packages:
            return True
        words = [word for word in (process.executable, process.script, *process.argv[:1]) if word]
        names = [PurePosixPath(word).name.lstrip("-") for word in words]
        named = {*names, *(name.partition(".")[0] for name in names)}
        return not named.isdisjoint(rule.commands) or any(place in word for place in rule.programs for word in words)

    def subscribe(self) -> Subscription:
        files: dict[str, Any] | None = None
        if self.sheet.session_files is not None:
            fields = msgspec.to_builtins(self.sheet.session_files)
            files = {name: fields[name] for name in ("folder", "pattern", "depth")}
        events = self.sheet.hooks.events if self.sheet.hooks is not None else []
        return Subscription(tuple(events), files)

    def poll(self, glance: Glance) -> Reading:
        seen = classify(
            glance.text,
            self.sheet.screen,
            title=glance.title,
            command=glance.command,
            is_alive=glance.is_alive,
            width=glance.width,
        )
        return read_both(seen, glance.status)

    def footing(self, glance: Glance) -> Footing:
        sheet = self.sheet
        layout = sheet.screen.layout(read_capture(glance.text, glance.width))
        prompt = "" if layout.composer is None else layout.capture.lines[layout.composer.top].content
        return Footing(
            self.poll(glance),
            find_hold(layout),
            next((mode for mode in sheet.typing.modes if prompt.startswith(mode)), ""),
            find_replies(layout, sheet.answers),
            sheet.screen.count_stops(layout),
        )

    def normalise(self, event: str, payload: object) -> tuple[Source, Verdict | None]:
        return read_hook(self.sheet.hook, event, payload)

    def normalise_file(self, file: SessionFile) -> tuple[frozenset[int], Status | None]:
        files = self.sheet.session_files
        if files is None:
            return frozenset(), None
        return files.owners(file.path, file.beside), files.read(file.text)

    def health(self, version: str | None) -> AdapterHealth:
        verified = self.sheet.screen.verified
        if version is None:
            return AdapterHealth(True, "its version is not known")
        if version in verified:
            return AdapterHealth(True, f"its screens were looked at in {version}")
        return AdapterHealth(False, f"nobody has looked at the screens of {version}; states are less sure")


def _reads_screens(sheet: AgentSheet) -> bool:
    """Whether anything is known of what it shows."""
    return bool(sheet.screen.signs or sheet.screen.bare_signs or sheet.screen.rule)
