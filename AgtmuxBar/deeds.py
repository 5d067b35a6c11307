"""What choosing an item does. One deed each, in a thread of its own; what goes wrong is told to the user.

What is done to an agent is asked for with everything that was shown when it was chosen. The daemon checks it, and
refuses if the agent has moved on.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agtmux import paths
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar import bridge
from AgtmuxBar.commands import run_command
from AgtmuxBar.labels import letter_text, readable, request_text, title_of
from AgtmuxBar.settings import FOR_EVER
from AgtmuxBar.tree import Action

if TYPE_CHECKING:
    from AgtmuxBar.app import App

# An agent may take its time to move on.
_TIME_LIMIT: Final = 15.0
_ACTOR: Final = "bar"
# Lines of it that are shown where nothing else says what is asked.
_SCREEN: Final = 20
_TITLES: Final = {
    "attach": "Not attached",
    "approve": "Not approved",
    "deny": "Not denied",
    "copy": "Not copied",
    "read": "Not read",
}
# Where a key may have been pressed all the same.
_TITLES_IN_DOUBT: Final = {"approve": "Perhaps approved", "deny": "Perhaps denied"}
_UNCERTAIN: Final = "uncertain"
# With these it is not known what was done, if the daemon does not say so itself.
_DOUBTS: Final = (ErrorCode.DELIVERY_UNCERTAIN, ErrorCode.TIMEOUT, ErrorCode.INTERNAL)

logger = logging.getLogger(__name__)

Parameters = Mapping[str, str]


class Deeds:
    def __init__(self, app: App) -> None:
        self._app = app
        self._desktop = app.desktop

    def do(self, action: Action) -> None:
        deed = self._DEEDS.get(action.name)
        if deed is None:
            logger.error("nothing is known to do for %r", action.name)
            return
        try:
            deed(self, action.parameters)
        except (AgtmuxError, OSError, subprocess.SubprocessError) as error:
            why = error.message if isinstance(error, AgtmuxError) else str(error)
            logger.info("%s: %s", action.name, error)
            is_certain = not isinstance(error, AgtmuxError) or error.details.get("result_code") != _UNCERTAIN
            titles = _TITLES if is_certain else _TITLES | _TITLES_IN_DOUBT
            self._app.tell(titles.get(action.name, "Not done"), _sentence(why))

    # To agents

    def _attach(self, asked: Parameters) -> None:
        answer = self._ask("attach", asked)
        if answer["way"] == "command":
            self._desktop.open_terminal(answer["argv"], self._app.settings)

    def _copy(self, asked: Parameters) -> None:
        # agtmux's own, and not the one it would run: it also works within tmux, and looks again when it is used.
        words = [*_shortest(self._desktop.command()), "attach", asked["ref"], "--if-runtime", asked["runtime_id"]]
        self._desktop.copy(shlex.join(words))

    def _approve(self, asked: Parameters) -> None:
        self._answer("approve", asked)

    def _deny(self, asked: Parameters) -> None:
        self._answer("deny", asked)

    def _answer(self, name: str, asked: Parameters) -> None:
        dialog = {"if_dialog": asked["fingerprint"]} if asked["fingerprint"] else {}
        shown = {"if_state": asked["state"], "if_state_version": int(asked["state_version"])}
        # Nobody has done anything who was not there. Whoever was, and did not come to answer, may have.
        was_there = Client(start=False).is_answered()
        try:
            self._ask(name, asked, **shown, **dialog)
        except AgtmuxError as error:
            is_lost = was_there and error.code is ErrorCode.DAEMON_UNAVAILABLE
            if not is_lost and error.code not in _DOUBTS:
                raise
            told = {"result_code": _UNCERTAIN, **error.details}
            raise AgtmuxError(error.code, error.message, told) from None

    def _ask(self, name: str, asked: Parameters, **more: object) -> Any:
        meant = {
            "request_ref": uuid.uuid4().hex,
            "actor": _ACTOR,
            "ref": asked["ref"],
            "if_runtime": asked["runtime_id"],
        }
        return Client(start=False, time_limit=_TIME_LIMIT).post(f"/v1/actions/{name}", {**meant, **more})

    def _show(self, asked: Parameters) -> None:
        panes = self._app.snapshot.panes.values()
        pane = next((pane for pane in panes if pane["runtime_id"] == asked["runtime_id"]), None)
        if pane is None:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "that agent has ended")
        text = request_text(pane)
        if not (pane["attention"] or {}).get("detail"):
            # What it is about is then to be read on its screen alone.
            text = "\n\n".join(filter(None, [text, self._screen(asked)]))
        self._app.tell(title_of(pane), text)

    def _screen(self, asked: Parameters) -> str:
        try:
            output = self._ask("view-output", asked, lines=3 * _SCREEN)["output"]
        except AgtmuxError as error:
            logger.info("view-output: %s", error)
            return ""
        return readable(output, _SCREEN)

    def _read(self, _: Parameters) -> None:
        """What agents have written, which has then been read everywhere."""
        letters = Client(start=False, time_limit=_TIME_LIMIT).post("/v1/inbox", {"limit": 100})["items"]
        self._app.opened()
        told = "\n\n".join(map(letter_text, letters))
        self._app.tell("Messages for you", told or "They have been read elsewhere.")

    # To the app's own settings

    def _snooze(self, asked: Parameters) -> None:
        self._app.change(lambda settings, now: settings.with_snoozed(asked["wait"], _until(asked, now), now))

    def _pause(self, asked: Parameters) -> None:
        self._app.change(lambda settings, now: replace(settings, paused_until=_until(asked, now)))

    def _switch(self, asked: Parameters) -> None:
        self._app.change(lambda settings, _: settings.with_switched(asked["name"]))

    def _terminal(self, asked: Parameters) -> None:
        self._app.change(lambda settings, _: replace(settings, terminal=asked["name"]))

    # To the daemon and the system

    def _restart(self, _: Parameters) -> None:
        self._desktop.restart_daemon()

    def _log(self, _: Parameters) -> None:
        log = str(Path(paths.state_directory(), "logs", "agtmuxd.log"))
        self._desktop.open_terminal(["tail", "-n", "200", "-F", log], self._app.settings)

    def _doctor(self, _: Parameters) -> None:
        self._desktop.open_terminal([*self._desktop.command(), "doctor"], self._app.settings, stays=True)

    def _pick(self, _: Parameters) -> None:
        self._desktop.open_terminal([*self._desktop.command(), "pick"], self._app.settings)

    def _board(self, _: Parameters) -> None:
        self._run("board")

    def _bridge(self, asked: Parameters) -> None:
        bridge.choose([asked["agent"]], on=bool(asked["on"]))
        self._app.opened()

    def _login(self, asked: Parameters) -> None:
        self._desktop.launch_at_login(bool(asked["on"]))
        self._app.opened()

    def _install(self, _: Parameters) -> None:
        self._desktop.install_command()
        self._app.opened()

    def _config(self, _: Parameters) -> None:
        file = Path(paths.config_file())
        if not file.exists():
            # Opened by an explicit choice, so it may come into being; empty, it changes nothing.
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.touch(mode=0o600)
        self._desktop.open_file(str(file))

    def _quit(self, _: Parameters) -> None:
        self._app.leave()

    def _quit_all(self, _: Parameters) -> None:
        self._desktop.stop_daemon()
        self._app.leave()

    def _run(self, *words: str) -> None:
        run_command([*self._desktop.command(), *words])

    _DEEDS: Final[dict[str, Callable[[Deeds, Parameters], None]]] = {
        "attach": _attach,
        "copy": _copy,
        "approve": _approve,
        "deny": _deny,
        "show": _show,
        "read": _read,
        "snooze": _snooze,
        "pause": _pause,
        "switch": _switch,
        "terminal": _terminal,
        "restart": _restart,
        "log": _log,
        "doctor": _doctor,
        "pick": _pick,
        "board": _board,
        "bridge": _bridge,
        "login": _login,
        "install": _install,
        "config": _config,
        "quit": _quit,
        "quit_all": _quit_all,
    }


# Every name that an item's action may have.
NAMES: Final = frozenset(Deeds._DEEDS)


def _until(asked: Parameters, now: float) -> float:
    seconds = float(asked["seconds"])
    return FOR_EVER if seconds >= FOR_EVER else now + seconds


def _shortest(command: Sequence[str]) -> Sequence[str]:
    """As it would be typed, where that leads to the same."""
    name = Path(command[0]).name
    if name == command[0]:
        return command
    found = shutil.which(name) if len(command) == 1 else None
    return [name] if found is not None and Path(found).samefile(command[0]) else command


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
