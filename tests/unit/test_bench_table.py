"""`make bench`: one benchmark that fails costs its own row and no other's, and the summary names what was missed."""

import builtins
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_run", BENCH / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Run = Callable[[], list[object]]


def measured() -> list[object]:
    return [("first", "1 ms", "≤ 2 ms", True)]


def missed() -> list[object]:
    return [("second", "3 ms", "≤ 2 ms", False), ("third", "1 ms", "≤ 2 ms", True)]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Makes each of these functions a benchmark; returns their names."""

    def make(*runs: Run) -> list[str]:
        names = [f"made_{number}" for number in range(len(runs))]
        for name, run in zip(names, runs, strict=True):
            module = ModuleType(f"bench_{name}")
            module.run = run  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, f"bench_{name}", module)
        return names

    return make


@pytest.mark.parametrize("failure", ["TimeoutError", "TooLongError", "RuntimeError"])
def test_what_was_measured_is_printed_when_another_fails(
    runner: ModuleType, benchmarks: Callable[..., list[str]], capsys: pytest.CaptureFixture[str], failure: str
) -> None:
    def fails() -> list[object]:
        raise getattr(sys.modules["stage"], failure, getattr(builtins, failure, None))("not\nwithin 3 seconds")

    assert runner.main(benchmarks(measured, fails, missed)) == 1
    first, second, third, fourth, *_ = capsys.readouterr().out.splitlines()
    assert first.split() == ["first", "1", "ms", "≤", "2", "ms", "ok"]
    assert second.startswith("made_1") and "not within 3 seconds" in second and second.endswith("MISSED")
    assert third.startswith("second") and third.endswith("MISSED")
    assert fourth.startswith("third") and fourth.endswith("ok")


def test_the_summary_names_each_missed_row_and_counts_all(
    runner: ModuleType, benchmarks: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(benchmarks(measured, missed)) == 1
    lines = capsys.readouterr().out.splitlines()[3:]
    assert lines[:2] == ["", "MISSED: second"]
    assert lines[2].startswith("2 of 3 rows kept; 2 benchmarks in ")
    assert lines[3].startswith("load ") and len(lines) == 4


def test_a_run_that_keeps_every_budget_names_no_row_as_missed(
    runner: ModuleType, benchmarks: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(benchmarks(measured)) == 0
    assert "MISSED" not in capsys.readouterr().out


def test_a_benchmark_without_rows_is_a_missed_row(
    runner: ModuleType, benchmarks: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(benchmarks(list)) == 1
    assert "MISSED: made_0" in capsys.readouterr().out


def test_what_was_measured_is_printed_when_the_run_is_interrupted(
    runner: ModuleType, benchmarks: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> list[object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.main(benchmarks(measured, interrupted))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("first") and lines[-1].startswith("ended early")


def test_every_module_of_the_folder_is_measured_when_none_is_named(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "measured", lambda name, run: [(name, "1 ms", "≤ 2 ms", True)])
    assert runner.main([]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.split("\n\n")[0].splitlines()]
    assert rows == sorted(path.stem.removeprefix("bench_") for path in BENCH.glob("bench_*.py"))


# The measurement


def test_a_duration_is_without_the_waiting_for_a_processor(runner: ModuleType) -> None:
    assert runner.stage.Duration(whole=2.0, ran=0.25, waited=1.5).own == 0.5
    assert runner.stage.Duration(whole=2.0, ran=0.25, waited=0.0).own == 2.0


def test_a_duration_is_never_shorter_than_what_was_computed_in_it(runner: ModuleType) -> None:
    assert runner.stage.Duration(whole=2.0, ran=0.75, waited=1.9).own == 0.75
    assert runner.stage.Duration(whole=2.0, ran=2.5, waited=1.9).own == 2.0


def test_a_quantile_is_no_longer_than_the_longest_sample(runner: ModuleType) -> None:
    assert runner.stage.quantile([1.0, 2.0, 3.0], 0.99) <= 3.0
    assert runner.stage.quantile([float(each) for each in range(101)], 0.95) == 95.0


def test_a_row_holds_the_time_without_waiting_and_prints_the_whole(runner: ModuleType) -> None:
    samples = [runner.stage.Duration(whole=0.3, ran=0.01, waited=0.28)] * 20
    what, measured, budget, is_kept = runner.stage.row_of("an answer", samples, 0.95, 25.0)
    assert (what, budget, is_kept) == ("an answer, p95", "≤ 25 ms", True)
    assert measured.startswith("20.0 ms ") and "300.0 with the waiting for a processor" in measured
    assert not runner.stage.row_of("an answer", samples, 0.95, 19.0)[3]
