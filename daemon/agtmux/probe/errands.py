"""What a probe is asked beside looks: each in a thread of its own, as a file system may hang while the looking goes on.

    in   {"do": "environ", "names": [...]}
         {"do": "versions", "commands": [...]}
         {"do": "read", "path", "wanted": [members] or null} · {"do": "is_folder", "path"}
         {"do": "is_answered", "path"}
         {"do": "replace", "path", "data", "expected", "mode", "left_out": [mark, parts] or null}
         {"do": "remove", "path", "expected", "folders"}
         {"do": "tmux_hooks", "action": "install", "uninstall" or "status"}
         {"do": "output", "server", "pane_id", "pid", "lines"}
         {"do": "history", "server", "pane_id", "pid", "lines"}
         {"do": "glance", "server", "pane_id", "pid", "agent": [pid, start] or null}
         {"do": "press", ..., "agent", "group", "command", "lines": [[number, text], ...], "history", "absent",
          "is_whole", "telling", "key"}
         {"do": "paste", ..., the same with "text" instead of "key"}
         {"do": "signal", ..., "agent", "number"}
         {"do": "attach", "server", "pane_id", "pid", "session_name", "caller", "move"}
         {"do": "launch", "session", "window", "folder", "words": [...], "may_start"}
         {"do": "launched", "server", "pane_id", "pid", "is_up"}
         {"do": "git_look", "path"} · {"do": "git_changed", "path", "most"} · {"do": "git_survey", "paths": [...]}
         {"do": "git_diff", "path", "only", "most"}
         {"do": "transcript", "processes": [[pid, start], ...], "rule": {...}, "claimed"}
         {"do": "keep_log", "path", "name", "data"}
         {"do": "slice", "path", "offset", "mark", "is_within", "most", "tail"}
         {"do": "git_add", "path", "branch", "folder", "is_apart"} · {"do": "git_remove", "path", "only_check"}
         {"do": "git_undo", "path", "branch"}
    out  {"done": {...}}, or {"declined": {"code", "message"}} where nothing was done

All of them with an "id", and those in with a "limit" in seconds. Bytes are in base64, `expected` is the SHA-256 of what
was read, or null.
"""

from __future__ import annotations

import base64
import contextlib
import os
import threading
import time
from typing import Any, Callable, Dict

from agtmux.probe import (
    clients,
    files,
    git,
    keyboard,
    launching,
    panes,
    slices,
    tmux,
    tmux_hooks,
    transcripts,
    worktree_logs,
)
from agtmux.probe.excerpts import LeftOut, Part
from agtmux.probe.keyboard import Front, Screen
from agtmux.probe.panes import Inhabited
from agtmux.probe.peer import is_answered
from agtmux.probe.processes import program_version

# One that hangs holds a place until it ends.
_AT_ONCE = 16
_LONGEST_ERRAND = 120.0
# What is under way when the line ends is finished, or this long waited for.
_PATIENCE = 2.0

Send = Callable[[Dict[str, object]], None]


class Errands:
    def __init__(self, send: Send, tmux_socket: str, made_folders: Callable[[], list[str]]) -> None:
        self._send = send
        self._tmux_socket = tmux_socket
        # By this probe, for its door: they go with it, unless files of ours are in them.
        self._made_folders = made_folders
        self._running: list[threading.Thread] = []
        # Were not empty when they were to be removed, but may be when the probe has gone.
        self._later: list[str] = []

    def take(self, message: dict[str, object]) -> None:
        """Begin with it, and answer later."""
        self._running = [each for each in self._running if each.is_alive()]
        if len(self._running) >= _AT_ONCE:
            why = "%d questions before this one hang; is a file system there out of reach?" % _AT_ONCE
            self._answer(message, declined={"code": "E_TIMEOUT", "message": why})
            return
        thread = threading.Thread(target=self._run, args=(message,), name="errand", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No thread left, which passes; the looking goes on meanwhile.
            why = "no thread can be started there; try again"
            self._answer(message, declined={"code": "E_TIMEOUT", "message": why})
            return
        self._running.append(thread)

    def close(self) -> None:
        """After the door is closed, so that the folders it shared with ours are empty."""
        until = time.monotonic() + _PATIENCE
        for thread in self._running:
            thread.join(max(until - time.monotonic(), 0))
        with contextlib.suppress(OSError):
            files.remove_empty(self._later)

    def _run(self, message: dict[str, object]) -> None:
        try:
            done = _ERRANDS[str(message.get("do"))](self, message)
        except files.FilesError as error:
            self._answer(message, declined={"code": error.code, "message": str(error)[:1_000]})
        except panes.MovedError as error:
            self._answer(message, declined={"code": "E_RUNTIME_STALE", "message": str(error)[:1_000]})
        except git.Slow as error:
            self._answer(message, declined={"code": "E_TIMEOUT", "message": str(error)[:1_000]})
        except (
            clients.NoClientError,
            keyboard.HinderedError,
            git.GitError,
            launching.NotStartedError,
            worktree_logs.LogError,
        ) as error:
            self._answer(message, declined={"code": "E_PRECONDITION_FAILED", "message": str(error)[:1_000]})
        except tmux.TmuxError as error:
            self._answer(message, declined={"code": "E_TARGET_UNREACHABLE", "message": str(error)[:1_000]})
        except Exception as error:
            why = "this failed there, which should not happen: %s: %s" % (type(error).__name__, error)
            self._answer(message, declined={"code": "E_INTERNAL", "message": why[:1_000]})
        else:
            self._answer(message, done=done)

    def _answer(self, message: dict[str, object], **answer: object) -> None:
        # The line may have ended, and with it whoever wanted to know.
        with contextlib.suppress(OSError):
            self._send({"id": message.get("id"), **answer})

    def _environ(self, message: dict[str, Any]) -> dict[str, object]:
        found = {name: os.environ[name] for name in message["names"] if name in os.environ}
        found["HOME"] = os.path.expanduser("~")
        for name, value in found.items():
            if not value.isprintable():
                raise files.FilesError("E_CONFIG", "%s is not text there (%r)" % (name, value))
        return {"values": found}

    def _versions(self, message: dict[str, Any]) -> dict[str, object]:
        found = {command: program_version(command) for command in message["commands"]}
        return {"versions": {command: version for command, version in found.items() if version is not None}}

    def _read(self, message: dict[str, Any]) -> dict[str, object]:
        state = files.read(message["path"], message.get("wanted"))
        if state is None:
            return {"data": None}
        # It is only told to people.
        target = None if state.target is None else "".join(c if c.isprintable() else "?" for c in state.target)
        told = {"data": base64.b64encode(state.data).decode(), "mode": state.mode, "target": target}
        if state.left_out is not None:
            told.update(left_out=state.left_out, whole_digest=state.whole_digest)
        return told

    def _is_folder(self, message: dict[str, Any]) -> dict[str, object]:
        return {"is_folder": os.path.isdir(message["path"])}

    def _is_answered(self, message: dict[str, Any]) -> dict[str, object]:
        return {"is_answered": is_answered(message["path"])}

    def _replace(self, message: dict[str, Any]) -> dict[str, object]:
        path, data = message["path"], base64.b64decode(message["data"])
        made = files.replace(path, data, message["expected"], _limit(message), message["mode"], _left_out(message))
        # This probe will not be the one that removes them.
        ours = [folder for folder in self._made_folders() if path.startswith(folder + "/")]
        return {"folders": [*ours, *made]}

    def _remove(self, message: dict[str, Any]) -> dict[str, object]:
        files.remove(message["path"], message["expected"], message["folders"], _limit(message))
        self._later += [folder for folder in message["folders"] if os.path.isdir(folder)]
        return {}

    def _tmux_hooks(self, message: dict[str, Any]) -> dict[str, object]:
        return tmux_hooks.change(self._tmux_socket, message["action"], _limit(message))

    def _output(self, message: dict[str, Any]) -> dict[str, object]:
        return {"text": panes.output(self._tmux_socket, _who(message), message["lines"], _limit(message))}

    def _history(self, message: dict[str, Any]) -> dict[str, object]:
        return {"text": panes.history(self._tmux_socket, _who(message), message["lines"], _limit(message))}

    def _glance(self, message: dict[str, Any]) -> dict[str, object]:
        return keyboard.glance(self._tmux_socket, _who(message), _agent(message), _limit(message))

    def _press(self, message: dict[str, Any]) -> dict[str, object]:
        where = (self._tmux_socket, _who(message), _front(message), _screen(message))
        return {"is_done": keyboard.press(*where, message["key"], _limit(message))}

    def _paste(self, message: dict[str, Any]) -> dict[str, object]:
        where = (self._tmux_socket, _who(message), _front(message), _screen(message))
        return {"is_done": keyboard.paste(*where, message["text"], _limit(message))}

    def _signal(self, message: dict[str, Any]) -> dict[str, object]:
        keyboard.signal(message["agent"], message["number"])
        return {"is_done": True}

    def _attach(self, message: dict[str, Any]) -> dict[str, object]:
        caller = None if message["caller"] is None else clients.Caller(**message["caller"])
        session_name, move = message["session_name"], message["move"]
        return clients.place(self._tmux_socket, _who(message), session_name, caller, move, _limit(message))

    def _clients(self, message: dict[str, Any]) -> dict[str, object]:
        return clients.attached(self._tmux_socket, _limit(message))

    def _launch(self, message: dict[str, Any]) -> dict[str, object]:
        names = (message["session"], message["window"], message["folder"])
        return launching.start(self._tmux_socket, *names, message["words"], message["may_start"], _limit(message))

    def _launched(self, message: dict[str, Any]) -> dict[str, object]:
        ask = launching.settle if message["is_up"] else launching.look
        return ask(self._tmux_socket, _who(message), _limit(message))

    def _transcript(self, message: dict[str, Any]) -> dict[str, object]:
        return transcripts.find(message["processes"], message["rule"], message["claimed"])

    def _keep_log(self, message: dict[str, Any]) -> dict[str, object]:
        data = base64.b64decode(message["data"])
        return {"path": worktree_logs.write(message["path"], message["name"], data, _limit(message))}

    def _slice(self, message: dict[str, Any]) -> dict[str, object]:
        place = (message["path"], message["offset"], message["mark"], message["is_within"])
        found = slices.read(*place, message["most"], message["tail"])
        if "lines" in found:
            found["lines"] = base64.b64encode(found["lines"]).decode()
        return found

    def _git_look(self, message: dict[str, Any]) -> dict[str, object]:
        return git.look(message["path"], _limit(message))

    def _git_changed(self, message: dict[str, Any]) -> dict[str, object]:
        return git.changed(message["path"], message["most"], _limit(message))

    def _git_diff(self, message: dict[str, Any]) -> dict[str, object]:
        return git.diff(message["path"], message["only"], message["most"], _limit(message))

    def _git_survey(self, message: dict[str, Any]) -> dict[str, object]:
        return git.survey(message["paths"], _limit(message))

    def _git_add(self, message: dict[str, Any]) -> dict[str, object]:
        where = (message["path"], message["branch"], message["folder"], message["is_apart"])
        return git.add(*where, _limit(message), message["is_plain"])

    def _git_remove(self, message: dict[str, Any]) -> dict[str, object]:
        do = git.check_removable if message["only_check"] else git.remove
        return do(message["path"], _limit(message))

    def _git_undo(self, message: dict[str, Any]) -> dict[str, object]:
        return git.undo(message["path"], message["branch"], _limit(message))


def _who(message: dict[str, Any]) -> Inhabited:
    return Inhabited(message["server"], message["pane_id"], message["pid"])


def _left_out(message: dict[str, Any]) -> LeftOut | None:
    if message.get("left_out") is None:
        return None
    mark, parts = message["left_out"]
    return LeftOut(mark, tuple(Part(*part) for part in parts))


def _agent(message: dict[str, Any]) -> tuple[int, float] | None:
    agent = message["agent"]
    return None if agent is None else (int(agent[0]), float(agent[1]))


def _front(message: dict[str, Any]) -> Front:
    return Front(_agent(message), message["group"], message["command"])


def _screen(message: dict[str, Any]) -> Screen:
    return Screen(message["lines"], message["history"], message["absent"], message["is_whole"], message["telling"])


def _limit(message: dict[str, Any]) -> float:
    return min(float(message["limit"]), _LONGEST_ERRAND)


_ERRANDS: dict[str, Callable[[Errands, dict[str, Any]], dict[str, object]]] = {
    "environ": Errands._environ,
    "versions": Errands._versions,
    "read": Errands._read,
    "is_folder": Errands._is_folder,
    "is_answered": Errands._is_answered,
    "replace": Errands._replace,
    "remove": Errands._remove,
    "tmux_hooks": Errands._tmux_hooks,
    "output": Errands._output,
    "history": Errands._history,
    "glance": Errands._glance,
    "press": Errands._press,
    "paste": Errands._paste,
    "signal": Errands._signal,
    "attach": Errands._attach,
    "clients": Errands._clients,
    "launch": Errands._launch,
    "launched": Errands._launched,
    "transcript": Errands._transcript,
    "keep_log": Errands._keep_log,
    "slice": Errands._slice,
    "git_look": Errands._git_look,
    "git_changed": Errands._git_changed,
    "git_diff": Errands._git_diff,
    "git_survey": Errands._git_survey,
    "git_add": Errands._git_add,
    "git_remove": Errands._git_remove,
    "git_undo": Errands._git_undo,
}
NAMES = frozenset(_ERRANDS)
