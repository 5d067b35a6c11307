"""`make bench`: one benchmark that fails costs its own row and no other's."""

import builtins
import importlib.util
import sys
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


@pytest.mark.parametrize("failure", ["TimeoutError", "TooLongError", "RuntimeError"])
def test_what_was_measured_is_printed_when_another_fails(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failure: str
) -> None:
    def fails() -> list[object]:
        raise getattr(sys.modules["stage"], failure, getattr(builtins, failure, None))("not\nwithin 3 seconds")

    for name, run in (("one", lambda: [("first", "1 ms", "≤ 2 ms", True)]), ("two", fails), ("three", lambda: [])):
        module = ModuleType(f"bench_{name}")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"bench_{name}", module)
    assert runner.main(["one", "two", "three"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["first", "1", "ms", "≤", "2", "ms", "ok"]
    assert second.startswith("two") and "not within 3 seconds" in second and second.endswith("MISSED")


def test_what_was_measured_is_printed_when_the_run_is_interrupted(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> list[object]:
        raise KeyboardInterrupt

    for name, run in (("one", lambda: [("first", "1 ms", "≤ 2 ms", True)]), ("two", interrupted)):
        module = ModuleType(f"bench_{name}")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"bench_{name}", module)
    with pytest.raises(KeyboardInterrupt):
        runner.main(["one", "two"])
    assert capsys.readouterr().out.startswith("first")
