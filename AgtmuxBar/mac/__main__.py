"""AgtmuxBar on macOS: `python -m AgtmuxBar.mac`, and what the bundle starts. `--selftest` looks, reports and ends."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

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
    from agtmux.domain.errors import AgtmuxError
    from AgtmuxBar.app import App
    from AgtmuxBar.mac import welcome
    from AgtmuxBar.mac.desktop import MacDesktop
    from AgtmuxBar.mac.rendering import MacRenderer

    desktop = MacDesktop(bundle, launchd)
    # The renderer hands on what is chosen, which is the app's, which needs a renderer.
    renderer = MacRenderer(lambda action: app.choose(action))
    app = App(renderer, desktop)

    def start() -> None:
        # The app would start one itself, as its own child; launchd's is there again after a crash.
        try:
            desktop.start_daemon()
        except (AgtmuxError, OSError) as error:
            logging.getLogger(__name__).warning("the daemon was not started: %s", error)
        app.start()

    def carry_out(accepted: list[welcome.Offer]) -> None:
        if troubles := welcome.carry_out(accepted):
            renderer.call(lambda: renderer.tell("Not everything could be set up", "\n\n".join(troubles)))

    def greet() -> None:
        if welcome.is_due() and (accepted := welcome.ask(welcome.offers(bundle, desktop))):
            _in_background("agtmux-welcome", lambda: carry_out(accepted))

    def started() -> None:
        _in_background("agtmux-start", start)
        # After the loop has begun, in which a window can wait for an answer.
        renderer.call(greet)

    renderer.run(started=started, opened=app.opened, woken=app.opened, ended=app.stop)


def _in_background(name: str, function: Callable[[], object]) -> None:
    Thread(target=function, name=name, daemon=True).start()


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
