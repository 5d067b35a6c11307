"""A daemon within the test's own process, in a thread: for what no request can ask of it.

It is wired as the real one is and answers on a real socket, so that hooks and commands meet it as they meet agtmuxd.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from agtmux.api.app import build_app
from agtmux.api.server import HttpServer, bind_socket
from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.service import Service

T = TypeVar("T")

LIMIT = 30.0


class InsideDaemon:
    """`with InsideDaemon(state) as daemon: daemon.call(daemon.service.decisions.decide(…))`

    The environment must lead to the test's own home and tmux server when it starts.
    """

    service: Service

    def __init__(self, state: Path) -> None:
        self.socket = state / "agtmuxd.sock"
        self._state = state
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="inside-daemon")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(LIMIT)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends in the order in which the real one does."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(LIMIT)
            assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    def ask(self, question: Callable[[], T]) -> T:
        """The answer as of one moment of the daemon's."""

        async def answer() -> T:
            return question()

        return self.call(answer())

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        self._state.mkdir(mode=0o700, exist_ok=True)
        listener = bind_socket(str(self.socket))
        try:
            self.service = await Service.open(self._state, Config(), Clock())
            server = HttpServer(build_app(self.service), listener)
            server.start()
            self._ready.set()
            await self._stop.wait()
            self.service.end_waits()
            await server.stop()
            await self.service.close()
        finally:
            self.socket.unlink(missing_ok=True)
            listener.close()
