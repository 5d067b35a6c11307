"""Reporting as an agent does it: the real `agtmux-hook`, run with the payload on its standard input."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from agtmux.demo.scenes import Scene, Step

HOOK: Final = "agtmux-hook"
# It promises to be gone within 200 ms; on a machine that is busy starting eight panes it may take longer.
_TIME_LIMIT: Final = 5.0


def find_hook() -> str | None:
    """The hook of this installation, else one in PATH."""
    beside = Path(sys.executable).parent / HOOK
    return str(beside) if beside.is_file() else shutil.which(HOOK)


def report(hook: str, scene: Scene, step: Step) -> None:
    if step.event is None:
        return
    payload = {"session_id": f"demo-{scene.name}", "hook_event_name": step.event, "cwd": scene.cwd, **step.payload}
    # As with a real agent, a hook that fails or hangs is no reason to stop working.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [hook, scene.agent_type, step.event],
            input=json.dumps(payload).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIME_LIMIT,
            check=False,
        )
