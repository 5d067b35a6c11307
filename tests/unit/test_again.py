"""`make again`: what failed is tried with the seed it failed with, and is named whatever comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "again.py"
SEEDED = """
import os

def test_random():
    print("seed", os.environ["AGTMUX_TEST_SEED"])
    assert os.environ["AGTMUX_TEST_SEED"] != "bad"
"""


def again(folder: Path, status: int, names: list[str], seed: str) -> subprocess.CompletedProcess[str]:
    cache = folder / ".pytest_cache" / "v"
    for place, content in (
        ("cache/lastfailed", dict.fromkeys(names, True)),
        ("agtmux/exitstatus", status),
        ("agtmux/seed", seed),
    ):
        path = cache / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), "utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AGTMUX_", "PYTEST_"))}
    words = [sys.executable, PROGRAM]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(("seed", "status"), [("good", 0), ("bad", 1)])
def test_the_seed_is_the_one_it_failed_with(tmp_path: Path, seed: str, status: int) -> None:
    (tmp_path / "test_it.py").write_text(SEEDED, "utf-8")
    done = again(tmp_path, 1, ["test_it.py::test_random"], seed)
    assert done.returncode == status, done
    if not status:
        assert done.stdout.count("1 passed") == 3
        assert done.stdout.endswith("each a bug to be found: \n  test_it.py::test_random\n"), done.stdout


@pytest.mark.parametrize(("status", "count"), [(0, 0), (2, 1), (1, 0), (1, 5)])
def test_what_is_no_few_failures_is_not_tried(tmp_path: Path, status: int, count: int) -> None:
    done = again(tmp_path, status, [f"test_it.py::test_{number}" for number in range(count)], "x")
    assert done.returncode == 1 and "passed" not in done.stdout, done
