"""`agtmux-chat`: the process of one session. Its end is the session's end, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import uuid
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.chat.options import configure, seconds
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.redact import redact_text

_log = logging.getLogger(__name__)

_DETACH: Final = b"detach"
_MISSING: Final = (
    "the Agent SDK is not installed (no module {name}); install agtmux with its extra `chat`: "
    "'agtmux[chat]' in place of agtmux with pip, pipx or uv, or `.venv/bin/pip install -e '.[chat]'` in a clone"
)


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(
        prog="agtmux-chat",
        description="Talk to an agent through a Unix socket, one JSON object a line.",
        epilog="`agtmux chat` does the same in a terminal.",
        allow_abbrev=False,
    )
    configure(parser)
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends")
    return run(parser.parse_args(arguments))


def run(options: Namespace) -> int:
    try:
        cwd = Path(options.cwd).resolve()
        if not cwd.is_dir():
            raise AgtmuxError(ErrorCode.USAGE, f"{cwd} is not a folder")
        if options.socket:
            options.socket = str(Path(options.socket).absolute())
        return asyncio.run(_serve(options, str(cwd)))
    except AgtmuxError as error:
        print(f"agtmux: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        # Before it was ready to be asked.
        return 130


async def _serve(options: Namespace, cwd: str) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    _open_log(options.verbose)
    session_id = options.resume or str(uuid.uuid4())
    try:
        # Takes a second, most of it for what it imports itself.
        from agtmux.chat.sdk import SdkEngine, Wishes
    except ModuleNotFoundError as error:
        raise AgtmuxError(ErrorCode.CONFIG, _MISSING.format(name=error.name)) from None
    from agtmux.chat.door import Door
    from agtmux.chat.journal import Journal
    from agtmux.chat.reporter import Reporter
    from agtmux.chat.session import Session

    wishes = Wishes(
        cwd, session_id, options.resume is not None, options.program, options.model, options.permission_mode
    )
    session = Session(
        session_id,
        cwd,
        lambda ask, has_spoken: SdkEngine(wishes, ask, has_spoken),
        Journal(),
        seconds(options.approval_timeout),
    )
    path = options.socket or default_socket(session_id)
    door = Door(session, path)
    await door.open()
    _announce(path, session_id)
    running = asyncio.create_task(session.run(), name="session")
    reporter = Reporter(session, path, paths.socket_path())
    reporting = asyncio.create_task(reporter.run(), name="report")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    if getattr(options, "until_eof", False):
        _watch_stdin(loop, stop)
    reason = "the session was ended"
    try:
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        if running.done() and (failure := running.exception()) is not None:
            reason = failure.message if isinstance(failure, AgtmuxError) else f"{type(failure).__name__}: {failure}"
            raise failure
    finally:
        if not reporting.done():
            await reporter.settled()
        for task in (running, stopping, reporting):
            task.cancel()
        await asyncio.wait([running, stopping, reporting])
        try:
            await session.close()
        finally:
            await door.close(reason)
    return 0


def _announce(path: str, session_id: str) -> None:
    """For whoever has started this."""
    listening = {"type": "listening", "socket": path, "session_id": session_id, "pid": os.getpid()}
    with contextlib.suppress(OSError):
        print(json.dumps(listening), flush=True)


def default_socket(session_id: str) -> str:
    from agtmux.chat.door import sweep

    folder = Path(paths.chat_directory())
    paths.private_directory(str(folder.parent))
    paths.private_directory(str(folder))
    sweep(folder)
    return str(folder / f"{session_id[:8]}.sock")


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Whoever started this holds the other end; when that is gone, nobody is left to end the session."""
    os.set_blocking(0, False)

    def look() -> None:
        with contextlib.suppress(BlockingIOError):
            said = os.read(0, 4096)
            if _DETACH in said:
                loop.remove_reader(0)
            elif not said:
                loop.remove_reader(0)
                stop.set()

    loop.add_reader(0, look)


class _Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact_text(super().format(record))


def _open_log(verbose: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacted("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler])
    logging.getLogger("agtmux").setLevel(logging.DEBUG if verbose else logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
