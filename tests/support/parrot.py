"""An agent that is a program of its own: `parrot [-- PROMPT]`, as a user's TOML knows it.

Draws as the puppet does, and says what it was given in $PARROTS/PANE.log. How it behaves is the content of
$PARROTS/mood when it starts, some of these words: `asks` begins with a dialog, `silent` never draws a prompt, `deaf`
does not end when it is asked to, `stubborn` takes no notice of INT and TERM either, `sick` ends at once with a
complaint, and so does `messy`, which leaves a file behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from puppet import Puppet


class Parrot(Puppet):
    moods: list[str]

    def press(self, key: bytes) -> None:
        is_end = key == b"\r" and self.draft == "/exit" and self.dialog is None
        super().press(key)
        if is_end and not {"deaf", "stubborn"} & set(self.moods):
            raise SystemExit

    def draw(self) -> None:
        if "silent" in self.moods:
            print("still loading", flush=True)
        else:
            super().draw()


def main(words: list[str]) -> None:
    folder = Path(os.environ["PARROTS"])
    mood = folder / "mood"
    moods = mood.read_text().split() if mood.exists() else []
    name = os.environ["TMUX_PANE"].removeprefix("%")
    about = {"argv": words, "cwd": str(Path.cwd()), "environ": sorted(os.environ), "path": os.environ.get("PATH")}
    (folder / f"{name}.start").write_text(json.dumps(about))
    if "messy" in moods:
        Path("left.txt").write_text("half a label")
        sys.exit("parrot: no seeds, and no broom")
    if "sick" in moods:
        sys.exit("parrot: no seeds")
    if "stubborn" in moods:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    elif "deaf" not in moods:
        # As an agent does, which takes Ctrl-C for a key.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parrot = Parrot(name, str(folder))
    parrot.moods = moods
    if "silent" in moods:
        print("still loading", flush=True)
        while True:
            time.sleep(1)
    if "asks" in moods:
        parrot.dialog = ("d0", "trust this folder")
    if words[:1] == ["--"]:
        parrot.note("submit", words[1])
        parrot.sent.append(words[1])
        parrot.is_busy = True
    parrot.run()


if __name__ == "__main__":
    main(sys.argv[1:])
