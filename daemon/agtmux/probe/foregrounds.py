"""Remembers what runs in front in each pane, and asks the system again only when that may have changed.

A change of the pane's command, its foreground group or what its shell has started tells at once. What starts below
something else, as an agent does below npx, is found by looking again soon, then ever more seldom.
"""

from __future__ import annotations

import time

from agtmux.probe import processes
from agtmux.probe.aside import Aside

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 32.0


class _Pane:
    def __init__(self, sign: object) -> None:
        self.sign = sign
        self.facts: list[dict[str, object]] = []
        self.pause = _FIRST_PAUSE
        self.due = 0.0


class Foregrounds:
    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._panes: dict[int, _Pane] = {}

    def look(self, commands: dict[int, str]) -> dict[int, list[dict[str, object]]]:
        """For each pane's process, given with the command tmux names, the facts of its foreground processes."""
        now = time.monotonic()
        panes: dict[int, _Pane] = {}
        for pid, command in commands.items():
            sign = (command, processes.foreground_group(pid), processes.started_by_shell(pid))
            pane = self._panes.get(pid)
            panes[pid] = pane if pane is not None and pane.sign == sign else _Pane(sign)
        due = {pid: pane for pid, pane in panes.items() if now >= pane.due}
        if due:
            family = processes.Family(processes.read_table())
            found = {pid: family.foreground(pid) for pid in due}
            described = self._aside.ask(lambda: _described(found))
            for pid, pane in due.items():
                if described is not None:
                    pane.facts = described[pid]
                elif [facts["pid"] for facts in pane.facts] != [process.pid for process in found[pid]]:
                    pane.facts = [processes.describe(process, with_files=False) for process in found[pid]]
                # Whole multiples, so that panes fall due together and share the table of processes.
                pane.due = (now // pane.pause + 1) * pane.pause
                if described is not None:
                    pane.pause = min(pane.pause * 2, _LONGEST_PAUSE)
        self._panes = panes
        return {pid: pane.facts for pid, pane in panes.items()}


def _described(found: dict[int, list[processes.Process]]) -> dict[int, list[dict[str, object]]]:
    return {pid: [processes.describe(process) for process in each] for pid, each in found.items()}
