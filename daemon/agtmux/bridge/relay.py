"""Between an agent and the daemon: which line goes where, and what happens to it when the daemon is away. No I/O.

An agent greets its MCP server once. Every new connection to the daemon is therefore greeted again in its name, and
what it had asked and nobody answered is asked again, unless that could do something twice.
"""

from __future__ import annotations

import json

from agtmux.bridge.local import INVALID_REQUEST, PARSE_ERROR, Packaged, error, too_long, unanswered, uncertain
from agtmux.bridge.wire import MOST_BYTES

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# No agent calls a request of its own that.
_REPLAYED: Final = "agtmux-bridge-greets-again"


class Relay:
    def __init__(self, packaged: Packaged, most_bytes: int = MOST_BYTES) -> None:
        """What is longer than `most_bytes` is answered here: on the way it would be taken for an attack."""
        self._packaged = packaged
        self._most_bytes = most_bytes
        self.to_agent: list[bytes] = []
        self.to_daemon: list[bytes] = []
        # Asked and not answered, in order: by id, the request and how it came.
        self._open: dict[str, tuple[dict[str, Any], bytes]] = {}
        # Asked of the daemon and answered without it.
        self._said_here: list[str] = []
        self._greeting: dict[str, Any] | None = None
        self._is_greeted = False
        self._confirmation: bytes | None = None
        self._is_connected = False
        # Connected, and the greeting in the agent's name is not answered yet.
        self._is_greeting = False
        # Whether it is worth waiting for the daemon.
        self.is_hopeful = False

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is owed."""
        return bool(self._open)

    @property
    def owes_words(self) -> bool:
        """Whether an answer is owed that needs no daemon."""
        return any(request["method"] != "tools/call" for request, _ in self._open.values())

    def from_agent(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._tell(error(None, PARSE_ERROR, "this is not JSON"))
            return
        if not isinstance(message, dict):
            self._tell(error(None, PARSE_ERROR, "this is not a JSON-RPC message"))
            return
        method = message.get("method")
        if len(line) > self._most_bytes:
            if "id" in message and method is not None:
                self._tell(too_long(message, self._most_bytes))
            return
        if "id" in message and method is not None and not (isinstance(method, str) and _is_id(message["id"])):
            self._tell(error(message["id"] if _is_id(message["id"]) else None, INVALID_REQUEST, "this is no request"))
            return
        if isinstance(method, str) and "id" in message:
            if method == "initialize":
                self._greeting = message
            self._open[_key(message["id"])] = (message, line)
            if not self._is_connected:
                self._answer_some()
            elif not self._is_greeting:
                self.to_daemon.append(line)
            return
        if method == "notifications/initialized":
            self._confirmation = line
        if method == "notifications/cancelled":
            # No answer comes to that, and another daemon is not to be asked it again.
            params = message.get("params")
            self._open.pop(_key(params.get("requestId") if isinstance(params, dict) else None), None)
        if self._is_connected and not self._is_greeting:
            self.to_daemon.append(line)

    def from_daemon(self, message: bytes) -> None:
        try:
            content = json.loads(message)
        except ValueError:
            return
        if isinstance(content, dict) and "method" not in content:
            if content.get("id") == _REPLAYED:
                self._go_on()
                return
            key = _key(content.get("id"))
            if key in self._said_here:
                self._said_here.remove(key)
                return
            asked = self._open.pop(key, None)
            if asked is None:
                # Answered already, when it was not clear whether this would come.
                return
            self._is_greeted = self._is_greeted or asked[0]["method"] == "initialize"
        self.to_agent.append(message)

    def connected(self) -> None:
        self._is_connected = True
        if self._greeting is not None and self._is_greeted:
            self._is_greeting = True
            self.to_daemon.append(json.dumps({**self._greeting, "id": _REPLAYED}).encode())
        else:
            self._go_on()

    def lost(self) -> None:
        """The connection is gone, and there will be another."""
        # Nothing of what is open has been sent before the greeting was answered.
        has_sent = not self._is_greeting
        self._is_connected = self._is_greeting = False
        self.to_daemon.clear()
        self._said_here.clear()
        for key, (request, _) in list(self._open.items()):
            if has_sent and not self._packaged.is_harmless(request):
                del self._open[key]
                self._tell(uncertain(request))
        self._answer_some()

    def answer_words(self) -> None:
        """The daemon takes its time: what needs none is answered here, and what it says of that later goes nowhere."""
        self._said_here += [key for key, (request, _) in self._open.items() if request["method"] != "tools/call"]
        self._answer_some()

    def given_up(self) -> None:
        """There is no daemon to be had; what is asked from now on is answered here."""
        self.is_hopeful = False
        self._answer_some()

    def ended(self) -> None:
        """The agent has closed its end and the time for answers is over: whatever is open gets one now."""
        for request, _ in self._open.values():
            self._tell(unanswered(request) if request["method"] == "tools/call" else self._packaged.answer(request))
        self._open.clear()

    def _go_on(self) -> None:
        self._is_greeting = False
        if self._is_greeted and self._confirmation is not None:
            self.to_daemon.append(self._confirmation)
        self.to_daemon += [line for _, line in self._open.values()]

    def _answer_some(self) -> None:
        """What needs no daemon, as some agents do nothing before they know the tools; all, if there will be none."""
        for key, (request, _) in list(self._open.items()):
            if self.is_hopeful and request["method"] == "tools/call":
                continue
            del self._open[key]
            self._is_greeted = self._is_greeted or request["method"] == "initialize"
            self._tell(self._packaged.answer(request))

    def _tell(self, message: dict[str, Any]) -> None:
        self.to_agent.append(json.dumps(message).encode())


def _is_id(request_id: object) -> bool:
    return request_id is None or (isinstance(request_id, (str, int, float)) and not isinstance(request_id, bool))


def _key(request_id: object) -> str:
    # 1 and "1" are two requests.
    return json.dumps(request_id)
