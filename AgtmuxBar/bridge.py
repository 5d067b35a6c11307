"""Which agents are told of the bridge: on while the app is there, and as it was when it is left.

The daemon writes agents' settings and takes back what it wrote when it stops; this only asks it to, and sees to it
where the daemon was killed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.withdrawal import withdraw

_TIME_LIMIT: Final = 10.0
# Who leaves, or logs out, does not wait for longer.
_LEAVING: Final = 3.0
# What is somebody else's to change.
_OTHERS: Final = ("foreign", "other_instance")

logger = logging.getLogger(__name__)


def register() -> None:
    """What comes with starting agtmux; settings may forbid it, and whoever was taken out by name stays out."""
    _ask("register", automatic=True)


def unregister() -> None:
    if _ask("unregister", automatic=True, limit=_LEAVING) is None and withdraw() is False:
        # Nobody is left to ask, and whoever was there before was killed.
        logger.warning("the bridge may still be in agents' settings; `agtmux mcp status` tells")


def choose(agents: Sequence[str], *, on: bool) -> None:
    """The user's own word on those, which holds until the next. Raises if it cannot be had."""
    asked = {"action": "register" if on else "unregister", "agents": list(agents), "search_path": _search_path()}
    answer = Client(start=False, time_limit=_TIME_LIMIT).post("/v1/mcp", asked)
    for item in answer["items"]:
        if item["error"]:
            raise AgtmuxError(ErrorCode(item["error"]["code"]), item["error"]["message"])
        if on and item["entry"] != "registered":
            raise AgtmuxError(ErrorCode.CONFIG, f"{item['path']} was left as it is: {' '.join(item['warnings'])}")


def state() -> Mapping[str, bool] | None:
    """Each agent that has settings, and whether it is told; None if nobody knows."""
    answer = _ask("status")
    if answer is None:
        return None
    return {item["agent"]: item.get("entry") == "registered" for item in answer["items"] if not item["error"]}


def files() -> Mapping[str, str]:
    """Each agent that can be told, and the file that would be changed for it."""
    items = (_ask("status") or {"items": []})["items"]
    return {item["agent"]: item["path"] for item in items if not item["error"] and item["entry"] not in _OTHERS}


def _ask(action: str, *, automatic: bool = False, limit: float = _TIME_LIMIT) -> dict[str, Any] | None:
    asked = {"action": action, "search_path": _search_path(), "automatic": automatic}
    try:
        answer: dict[str, Any] = Client(start=False, time_limit=limit).post("/v1/mcp", asked)
    except AgtmuxError as error:
        logger.info("%s: %s", action, error)
        return None
    return answer


def _search_path() -> str:
    return os.environ.get("PATH", "")
