"""Claude's hook as it reports what it asks, from within a pane."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from support.home import PATIENCE, Home
from support.hook import patient_in


@dataclass
class Request:
    process: subprocess.Popen[bytes]

    def said(self) -> bytes:
        """What it has told its agent so far, which is all at once at its end."""
        return b"" if self.process.poll() is None else self.ended()

    def ended(self) -> bytes:
        """The same, once it waits no more."""
        return self.process.communicate(timeout=PATIENCE)[0]


@contextlib.contextmanager
def asking(
    home: Home, pane: str, command: str, *, waits: bool = True, tool: str = "Bash", **more: str
) -> Iterator[Request]:
    """`more` is what the tool is called with beside the command, as `description`."""
    pipe = subprocess.PIPE
    words = [patient_in(home.folder), "claude", "PermissionRequest", *(["--wait"] if waits else [])]
    hook = subprocess.Popen(words, env=home.env | home.tmux_variables(pane), stdin=pipe, stdout=pipe, stderr=pipe)
    assert hook.stdin is not None
    hook.stdin.write(json.dumps({"tool_name": tool, "tool_input": {"command": command} | more}).encode())
    hook.stdin.close()
    hook.stdin = None
    try:
        yield Request(hook)
    finally:
        if hook.poll() is None:
            hook.kill()
        hook.communicate()
