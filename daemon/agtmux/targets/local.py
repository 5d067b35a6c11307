"""A tmux server on this machine."""

from __future__ import annotations

import asyncio
from typing import Any

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Target
from agtmux.probe import tmux
from agtmux.probe.foregrounds import Foregrounds

PaneRow = dict[str, str]


class LocalExecutor:
    """Looks at one tmux server: its panes, and what runs in front in each."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tmux: str | None = None
        self._foregrounds = Foregrounds()

    async def snapshot(self) -> tuple[list[PaneRow], dict[int, list[dict[str, Any]]]]:
        """The panes, and by the process of each what runs in its foreground."""
        try:
            return await asyncio.to_thread(self._look)
        except tmux.TmuxError as error:
            raise AgtmuxError(
                ErrorCode.TARGET_UNREACHABLE, f"{self._target.target_id}: {error}", {"target": self._target.target_id}
            ) from None

    def _look(self) -> tuple[list[PaneRow], dict[int, list[dict[str, Any]]]]:
        if self._tmux is None:
            found = tmux.find_tmux()
            tmux.check_version(found)
            self._tmux = found
        rows = tmux.snapshot(self._tmux, self._target.tmux_socket)
        alive = (row for row in rows if row["pane_pid"].isdigit() and row["pane_dead"] != "1")
        return rows, self._foregrounds.look({int(row["pane_pid"]): row["pane_current_command"] for row in alive})
