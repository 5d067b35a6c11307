"""Who has the foreground of a terminal, from a table of processes."""

import os
import sys
from pathlib import Path

import pytest

from agtmux.probe import processes
from agtmux.probe.processes import Family, Process, describe

TTY, OTHER_TTY = 34816, 34817


def a_process(pid: int, ppid: int, pgid: int, *, in_front: int = 0, tty: int | str = TTY) -> Process:
    return Process(pid, ppid, pgid, tty, in_front, 1.0, [])


def pids(*table: Process, pane: int = 10) -> list[int]:
    return [process.pid for process in Family({process.pid: process for process in table}).foreground(pane)]


def test_a_shell_at_its_prompt_is_alone():
    assert pids(a_process(10, 1, 10, in_front=10)) == [10]


def test_the_job_in_front_comes_with_what_started_it():
    assert pids(a_process(10, 1, 10, in_front=20), a_process(20, 10, 20), a_process(21, 20, 20)) == [10, 20, 21]


def test_who_lends_the_terminal_to_an_editor_is_still_there():
    agent, editor = a_process(20, 10, 20), a_process(30, 20, 30)
    assert pids(a_process(10, 1, 10, in_front=30), agent, editor) == [10, 20, 30]


def test_a_job_in_the_background_is_not_in_front():
    assert pids(a_process(10, 1, 10, in_front=10), a_process(20, 10, 20), a_process(21, 20, 20)) == [10]


def test_what_runs_on_a_terminal_of_its_own_below_the_job_belongs_to_it():
    sudo, inner = a_process(20, 10, 20), a_process(30, 20, 30, tty=OTHER_TTY)
    assert pids(a_process(10, 1, 10, in_front=20), sudo, inner, a_process(31, 30, 31, tty=OTHER_TTY)) == [
        10,
        20,
        30,
        31,
    ]


def test_what_has_no_terminal_does_not_count():
    assert pids(a_process(10, 1, 10, in_front=20), a_process(20, 10, 20), a_process(30, 20, 30, tty=0)) == [10, 20]


def test_another_terminal_below_a_background_job_does_not_count():
    background = a_process(20, 10, 20)
    assert pids(a_process(10, 1, 10, in_front=10), background, a_process(30, 20, 30, tty=OTHER_TTY)) == [10]


def test_a_pane_whose_process_is_gone_has_nothing_in_front():
    assert pids(a_process(10, 1, 10), pane=99) == []


def test_this_process_is_described_as_it_is():
    table = processes.read_table()
    facts = describe(table[os.getpid()])
    assert facts["pid"] == os.getpid()
    assert Path(str(facts["argv"][0])).name.startswith("python")  # type: ignore[index]
    assert 0 < float(str(facts["started"])) < 4e9


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere ps is all there is")
def test_ps_and_proc_agree():
    """What is used on macOS, tried here against what is used here."""
    by_proc, by_ps = processes._read_proc(), processes._read_ps()
    mine = by_proc[os.getpid()], by_ps[os.getpid()]
    assert mine[0][:3] == mine[1][:3]
    assert abs(mine[0].started - mine[1].started) < 2.0
    assert mine[1].argv


def test_a_package_is_the_nearest_with_a_name(tmp_path: Path):
    script = tmp_path / "node_modules" / "tool" / "dist" / "cli.js"
    script.parent.mkdir(parents=True)
    (tmp_path / "node_modules" / "tool" / "package.json").write_text('{"name": "tool", "version": "1.2.3"}')
    (script.parent / "package.json").write_text('{"type": "module"}')
    assert processes._package(str(script)) == ("tool", "1.2.3")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": 7}', "\x00"])
def test_a_package_that_cannot_be_read_is_none(tmp_path: Path, content: str):
    (tmp_path / "package.json").write_text(content)
    assert processes._package(str(tmp_path / "cli.js"))[0] != 7


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="made of /proc")
def test_a_lineage_ends_at_a_service_that_was_there_before(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "PROC", str(tmp_path))
    monkeypatch.setattr(processes, "_booted", [0.0])
    tick = os.sysconf("SC_CLK_TCK")

    def put(pid: int, ppid: int, tty: int, started: float) -> None:
        (tmp_path / str(pid)).mkdir()
        fields = ["S", ppid, pid, pid, tty, pid, *[0] * 13, round(started * tick), *[0] * 10]
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) {' '.join(map(str, fields))}")

    def way(pid: int) -> processes.WayUp:
        found = processes.way_up(pid)
        assert found is not None
        return found

    put(1, 0, 0, 0)
    put(50, 1, 0, 10)  # the tmux server
    put(60, 50, TTY, 20)  # a shell
    put(70, 60, TTY, 30)  # an agent
    put(80, 70, 0, 500)  # a hook, with a session of its own, and what it runs
    put(81, 80, 0, 500)
    assert processes.lineage(81) == [81, 80, 70, 60]
    put(75, 70, 0, 40)  # the agent's service, and a hook of that
    put(90, 75, 0, 500)
    (tmp_path / "75" / "cmdline").write_text("/opt/bin/codex\0app-server\0")
    (tmp_path / "50" / "cmdline").write_text("tmux\0")
    assert processes.lineage(90) == [90]
    assert [way(pid).service_name for pid in (90, 81)] == ["codex", "tmux"]
    assert [way(pid).on_terminal for pid in (90, 81, 70)] == [[], [], [70, 60]]
    assert processes.lineage(4711) is None and processes.way_up(4711) is None
