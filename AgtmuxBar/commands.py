"""Commands of agtmux that the app runs to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

_TIME_LIMIT: Final = 60.0


def run_command(argv: Sequence[str]) -> None:
    """Raises with its own last words if it fails."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise AgtmuxError(ErrorCode.INTERNAL, said[-1].removeprefix("agtmux: "))
