"""What a probe is asked beside looks: each in a thread of its own, as a file system may hang while the looking goes on.

    in   {"do": "environ", "names": [...]}
         {"do": "versions", "commands": [...]}
         {"do": "read", "path"} · {"do": "is_folder", "path"}
         {"do": "replace", "path", "data", "expected", "mode"} · {"do": "remove", "path", "expected", "folders"}
         {"do": "tmux_hooks", "action": "install", "uninstall" or "status"}
         {"do": "output", "server", "pane_id", "pid", "lines"}
         {"do": "glance", "server", "pane_id", "pid", "agent": [pid, start] or null}
         {"do": "press", ..., "agent", "group", "command", "lines": [[number, text], ...], "history", "absent",
          "is_whole", "key"}
         {"do": "paste", ..., the same with "text" instead of "key"}
         {"do": "signal", ..., "agent", "number"}
         {"do": "attach", "server", "pane_id", "pid", "session_name", "caller", "move"}
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

from agtmux.probe import clients, files, keyboard, panes, tmux, tmux_hooks
from agtmux.probe.keyboard import Front, Screen
from agtmux.probe.panes import Inhabited
from agtmux.probe.processes import program_version

# One that hangs holds a place until it ends.
_AT_ONCE = 16
_LONGEST_ERRAND = 30.0
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
        except (clients.NoClientError, keyboard.HinderedError) as error:
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
        state = files.read(message["path"])
        if state is None:
            return {"data": None}
        # It is only told to people.
        target = None if state.target is None else "".join(c if c.isprintable() else "?" for c in state.target)
        return {"data": base64.b64encode(state.data).decode(), "mode": state.mode, "target": target}

    def _is_folder(self, message: dict[str, Any]) -> dict[str, object]:
        return {"is_folder": os.path.isdir(message["path"])}

    def _replace(self, message: dict[str, Any]) -> dict[str, object]:
        path, data = message["path"], base64.b64decode(message["data"])
        made = files.replace(path, data, message["expected"], _limit(message), message["mode"])
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


def _who(message: dict[str, Any]) -> Inhabited:
    return Inhabited(message["server"], message["pane_id"], message["pid"])


def _agent(message: dict[str, Any]) -> tuple[int, float] | None:
    agent = message["agent"]
    return None if agent is None else (int(agent[0]), float(agent[1]))


def _front(message: dict[str, Any]) -> Front:
    return Front(_agent(message), message["group"], message["command"])


def _screen(message: dict[str, Any]) -> Screen:
    return Screen(message["lines"], message["history"], message["absent"], message["is_whole"])


def _limit(message: dict[str, Any]) -> float:
    return min(float(message["limit"]), _LONGEST_ERRAND)


_ERRANDS: dict[str, Callable[[Errands, dict[str, Any]], dict[str, object]]] = {
    "environ": Errands._environ,
    "versions": Errands._versions,
    "read": Errands._read,
    "is_folder": Errands._is_folder,
    "replace": Errands._replace,
    "remove": Errands._remove,
    "tmux_hooks": Errands._tmux_hooks,
    "output": Errands._output,
    "glance": Errands._glance,
    "press": Errands._press,
    "paste": Errands._paste,
    "signal": Errands._signal,
    "attach": Errands._attach,
}
NAMES = frozenset(_ERRANDS)
