"""A home with very many session files, as one that was just restored: the line holds, and each is told of."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agtmux.domain.limits import Limits
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.targets.executor import ProbeExecutor
from agtmux.targets.local import open_local
from agtmux.targets.messages import Notice, SessionFile

MANY = 400


class Line:
    """A real probe at a real link, and what came over it."""

    def __init__(self, rules: list[dict[str, object]]) -> None:
        self.told: dict[str, SessionFile] = {}
        self.order: list[str] = []
        self.complaints: list[str] = []
        self._heard = asyncio.Event()
        self.executor = ProbeExecutor(
            Target(HOST, TargetKind.LOCAL, tmux_socket="nobody"),
            open_local,
            limits=Limits(),
            hooks=False,
            session_files=rules,
            on_notice=self._hear,
            on_refusal=lambda error: self._complain(error.message),
            on_end=lambda: self._complain("the line ended"),
            on_server=lambda: None,
        )

    async def _hear(self, notice: Notice) -> None:
        if isinstance(notice, SessionFile):
            self.told[notice.path] = notice
            self.order.append(notice.path)
            self._heard.set()

    def _complain(self, why: str) -> None:
        self.complaints.append(why)
        self._heard.set()

    async def until(self, number: int, gone: bool) -> None:
        async with asyncio.timeout(20):
            while not self.complaints and sum(each.gone is gone for each in self.told.values()) < number:
                self._heard.clear()
                await self._heard.wait()
        assert not self.complaints


@pytest.fixture
async def line(tmp_path: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setenv("TMUX_TMPDIR", str(short_tmp))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for number in range(MANY):
            (tmp_path / name / f"{number}.json").write_text("{}")
    rules = [{"name": name, "folder": str(tmp_path / name), "pattern": "*.json", "depth": 0} for name in ("one", "two")]
    opened = Line(rules)
    yield opened
    opened.complaints.clear()
    await opened.executor.close()


async def test_many_files_that_come_and_go_at_once_are_all_told_of(line: Line, tmp_path: Path) -> None:
    newest = tmp_path / "two" / "7.json"
    later = newest.stat().st_mtime + 60
    newest.write_text("x" * 20_000 + "\n" + "y" * 16_000)
    os.utime(newest, (later, later))
    await line.executor.look([], [])
    await line.until(2 * MANY, gone=False)
    assert line.order[0] == str(newest), "the newest is not told first"
    assert line.told[str(newest)].text == "y" * 16_000
    for path in line.told:
        Path(path).unlink()
    await line.until(2 * MANY, gone=True)
