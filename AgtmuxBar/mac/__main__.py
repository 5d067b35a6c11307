"""AgtmuxBar on macOS: `python -m AgtmuxBar.mac`, and what the bundle starts. `--selftest` looks, reports and ends."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Lock

from AgtmuxBar.mac import environment, inside
from AgtmuxBar.mac.bundle import Bundle
from AgtmuxBar.mac.launchd import Launchd


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    # Before anything of ours can start a process.
    bundle = inside.enter()
    # Finder and launchd give neither Homebrew's folder nor a locale, and others look for tmux with what we have.
    mine = environment.for_child()
    os.environ.clear()
    os.environ.update(mine)
    if "--selftest" in words:
        from AgtmuxBar.mac import selftest

        return selftest.main(bundle, [word for word in words if word != "--selftest"])
    # What Finder and launchd start has no standard error that anybody reads; the log is beside the daemon's.
    _log_to_file()
    from AgtmuxBar import single

    with single.only_one() as is_ours:
        if not is_ours:
            print("agtmux: the menu bar has one already", file=sys.stderr)
            return 1
        run(bundle)
    return 0


def run(bundle: Bundle | None, launchd: Launchd | None = None) -> None:
    from AgtmuxBar import bridge
    from AgtmuxBar.app import App
    from AgtmuxBar.mac import welcome
    from AgtmuxBar.mac.desktop import MacDesktop
    from AgtmuxBar.mac.rendering import MacRenderer

    desktop = MacDesktop(bundle, launchd)
    # The renderer hands on what is chosen, which is the app's, which needs a renderer.
    renderer = MacRenderer(lambda action: app.choose(action))
    greeting = Lock()

    def greet() -> None:
        """What agents' settings would be changed by is asked for, once, before anything is."""
        available = welcome.offers(bundle, desktop, welcome.hook_files(), bridge.files())
        if not available:
            return
        accepted = renderer.ask(lambda: welcome.ask(available, bundle))
        if troubles := welcome.carry_out(available, accepted):
            renderer.call(lambda: renderer.tell("Not everything could be set up", "\n\n".join(troubles)))

    def introduce() -> None:
        if not welcome.may_install(bundle):
            return
        # A daemon that comes back while the window is open opens no second one.
        if greeting.acquire(blocking=False):
            try:
                if welcome.is_due():
                    greet()
                else:
                    bridge.register()
            finally:
                greeting.release()

    app = App(renderer, desktop, introduce)

    renderer.run(started=app.start, opened=app.opened, woken=app.opened, ended=app.stop, left=app.inherit)


def _log_to_file() -> None:
    from logging.handlers import RotatingFileHandler

    from agtmux import paths

    folder = Path(paths.state_directory(), "logs")
    paths.private_directory(paths.state_directory())
    paths.private_directory(str(folder))
    handler = RotatingFileHandler(
        folder / "AgtmuxBar.log", maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


if __name__ == "__main__":
    sys.exit(main())
