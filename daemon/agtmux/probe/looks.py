"""One look at a tmux server: its panes, what runs in front in each, and the screens that have changed.

Only what differs from the look before is told, so that a quiet server with a hundred panes costs its line a few bytes.
"""

from __future__ import annotations

import re
import time

from agtmux.probe import activity, tmux
from agtmux.probe.aside import Aside
from agtmux.probe.branches import Branches
from agtmux.probe.foregrounds import Foregrounds

# tmux lets a program set a title of any length.
_LONGEST = 4_096
# Of screens in one look.
_MOST_TEXT = 2_000_000
_SETTLING = 0.01
_MOST_SETTLING = 5
_PANE_ID = re.compile(r"%[0-9]{1,18}")


class Looker:
    def __init__(self, tmux_socket: str) -> None:
        self._tmux_socket = tmux_socket
        self._tmux = ""
        self._tmux_said = ""
        self._server = ""
        self._began = 0.0
        self._foregrounds = Foregrounds(Aside())
        self._branches = Branches()
        self._branch_aside = Aside()
        self._known_branches: dict[str, tuple[str, str]] = {}
        self._rows: dict[str, dict[str, object]] = {}
        # By pane: the second of its last capture, and what was there.
        self._captured: dict[str, tuple[int, str]] = {}
        self._mark: object = None
        self._server_pid: int | None = None
        # What somebody has told this tmux server to wake us by, if anything.
        self.wake_channel = ""

    def look(self, captures: list[str], anew: list[str], limit: float) -> dict[str, object]:
        """Raises TmuxError, and then nothing counts as told. The screens of `anew` are told even if they are as before.

        It takes no longer than `limit` seconds, less than whoever asked waits, so that it is told why there is none.
        """
        if not self._tmux:
            found = tmux.find_tmux()
            self._tmux_said = tmux.check_version(found)
            self._tmux = found
        began = time.time()
        if began < self._began:
            # The clock was set back, and activity of now would seem to be older than the last capture.
            self._captured.clear()
        self._began = began
        for pane_id in anew:
            self._captured.pop(pane_id, None)
        wanted = {pane_id: self._since(pane_id) for pane_id in captures if _PANE_ID.fullmatch(pane_id)}
        listed, screens = tmux.snapshot(self._tmux, self._tmux_socket, wanted, limit)
        self._begin(listed)
        rows = self._read(listed)
        changed = [row for pane_id, row in rows.items() if self._rows.get(pane_id) != row]
        gone = [pane_id for pane_id in self._rows if pane_id not in rows]
        self._rows = rows
        return {
            "server": self._server,
            "now": began,
            "panes": changed,
            "gone": gone,
            "screens": self._changed_screens(screens, int(began), wanted),
            # Whether it can be told that nothing has happened since.
            "is_metered": self._mark is not None,
            "tmux": self._tmux_said,
        }

    def settle(self) -> None:
        """After the answer was handed on: our own question still moves the server for a moment."""
        for _ in range(_MOST_SETTLING if self._server_pid is not None else 0):
            time.sleep(_SETTLING)
            mark = activity.mark(self._server_pid, self._socket_path())
            if mark == self._mark or mark is None:
                break
            self._mark = mark

    def has_stirred(self) -> bool:
        """Whether the server has done anything since the last look; False where that cannot be known."""
        return self._mark is not None and activity.mark(self._server_pid, self._socket_path()) != self._mark

    @property
    def wake_command(self) -> list[str]:
        return tmux.command(self._tmux, self._tmux_socket, ["wait-for", self.wake_channel])

    @property
    def socket_paths(self) -> list[str]:
        """Where the server's socket is, with links followed and as tmux tells it to those within."""
        return list(dict.fromkeys([self._socket_path(), tmux.socket_path_as_given(self._tmux_socket)]))

    def _socket_path(self) -> str:
        return tmux.socket_path(self._tmux_socket)

    def _begin(self, listed: list[dict[str, str]]) -> None:
        server = "%s-%s" % (listed[0]["pid"], listed[0]["start_time"]) if listed else ""
        if server != self._server:
            self._captured.clear()
        self._server = server
        self._server_pid = int(listed[0]["pid"]) if listed and listed[0]["pid"].isdigit() else None
        self._mark = activity.mark(self._server_pid, self._socket_path())
        self.wake_channel = listed[0]["@agtmux_wake"] if listed else ""

    def _read(self, listed: list[dict[str, str]]) -> dict[str, dict[str, object]]:
        commands = {
            int(row["pane_pid"]): row["pane_current_command"]
            for row in listed
            if row["pane_pid"].isdigit() and row["pane_dead"] != "1"
        }
        foregrounds = self._foregrounds.look(commands)
        folders = {row["pane_current_path"] for row in listed if row["pane_current_path"]}
        branches = self._branch_aside.ask(lambda: self._branches.look_at(folders))
        if branches is None:
            branches = self._known_branches
        self._known_branches = branches
        rows: dict[str, dict[str, object]] = {}
        for row in listed:
            pid = int(row["pane_pid"]) if row["pane_pid"].isdigit() else None
            branch, worktree = branches.get(row["pane_current_path"], ("", ""))
            # A pane linked into several sessions is listed once for each: the first is as good as any.
            rows.setdefault(
                row["pane_id"],
                {
                    "pane_id": row["pane_id"],
                    "pid": pid if pid in commands else None,
                    "session_name": row["session_name"][:_LONGEST],
                    "window_id": row["window_id"],
                    "window_name": row["window_name"][:_LONGEST],
                    "title": row["pane_title"][:_LONGEST],
                    "cwd": row["pane_current_path"][:_LONGEST],
                    "branch": branch,
                    "worktree": worktree[:_LONGEST],
                    "command": row["pane_current_command"][:_LONGEST],
                    "mark": row["@agtmux_agent"][:_LONGEST],
                    "foreground": foregrounds.get(pid, []) if pid is not None else [],
                },
            )
        return rows

    def _since(self, pane_id: str) -> int:
        # Not 0, which is what the activity of a pane that is not there amounts to.
        return self._captured[pane_id][0] if pane_id in self._captured else 1

    def _changed_screens(self, screens: dict[str, str], second: int, wanted: dict[str, int]) -> list[dict[str, object]]:
        changed: list[dict[str, object]] = []
        room = _MOST_TEXT
        for pane_id, text in screens.items():
            if pane_id not in self._rows:
                continue
            room -= len(text)
            if room < 0:
                # At the next look, as it does not count as captured.
                break
            if pane_id not in self._captured or self._captured[pane_id][1] != text:
                changed.append({"pane_id": pane_id, "text": text})
            self._captured[pane_id] = (second, text)
        for pane_id in [known for known in self._captured if known not in wanted]:
            del self._captured[pane_id]
        return changed
