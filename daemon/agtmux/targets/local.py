"""A tmux server on this machine."""

from __future__ import annotations

import asyncio

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Target
from agtmux.probe import processes, tmux


class LocalExecutor:
    """Looks at one tmux server. A process's start is asked for once, since it cannot change."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tmux: str | None = None
        self._started: dict[int, float | None] = {}

    async def snapshot(self) -> tuple[list[dict[str, str]], dict[int, float | None]]:
        """The panes, and when the process of each began."""
        try:
            return await asyncio.to_thread(self._look)
        except tmux.TmuxError as error:
            raise AgtmuxError(
                ErrorCode.TARGET_UNREACHABLE, f"{self._target.target_id}: {error}", {"target": self._target.target_id}
            ) from None

    def _look(self) -> tuple[list[dict[str, str]], dict[int, float | None]]:
        if self._tmux is None:
            self._tmux = tmux.find_tmux()
        rows = tmux.snapshot(self._tmux, self._target.tmux_socket)
        pids = {int(row["pane_pid"]) for row in rows if row["pane_pid"].isdigit()}
        self._started = {pid: self._started[pid] if pid in self._started else processes.started_at(pid) for pid in pids}
        return rows, self._started
