"""Which agents are told of the bridge: on while the app is there, and as it was when it is left.

The daemon writes agents' settings and takes back what it wrote when it stops; this only asks it to.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError

_TIME_LIMIT: Final = 10.0

logger = logging.getLogger(__name__)


def register() -> None:
    """What comes with starting agtmux; settings may forbid it."""
    _ask("register", automatic=True)


def unregister() -> None:
    _ask("unregister", automatic=True)


def state() -> Mapping[str, bool] | None:
    """Each agent that has settings, and whether it is told; None if nobody knows."""
    answer = _ask("status")
    if answer is None:
        return None
    return {item["agent"]: item.get("entry") == "registered" for item in answer["items"] if not item["error"]}


def _ask(action: str, *, automatic: bool = False) -> dict[str, Any] | None:
    asked = {"action": action, "search_path": os.environ.get("PATH", ""), "automatic": automatic}
    try:
        answer: dict[str, Any] = Client(start=False, time_limit=_TIME_LIMIT).post("/v1/mcp", asked)
    except AgtmuxError as error:
        logger.info("%s: %s", action, error)
        return None
    return answer
