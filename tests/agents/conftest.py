"""What the driven agents' tests measure is told at the end of the run."""

from __future__ import annotations

import statistics
from collections import defaultdict

import pytest

_MEASURED: dict[str, list[float]] = defaultdict(list)


@pytest.fixture
def measured(request: pytest.FixtureRequest, record_property) -> dict[str, list[float]]:
    """By what was measured: seconds. Handed to the process that reports, which may be another."""
    found: dict[str, list[float]] = defaultdict(list)
    request.addfinalizer(lambda: record_property("measured", {name: list(each) for name, each in found.items()}))
    return found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, found in report.user_properties if report.when == "teardown" else ():
        if name == "measured":
            for what, seconds in dict(found).items():
                _MEASURED[what] += seconds


def pytest_terminal_summary(terminalreporter) -> None:
    if not _MEASURED:
        return
    terminalreporter.section("how soon agents' states were shown, in ms")
    terminalreporter.write_line(f"{'':<52}{'n':>5}{'median':>9}{'p95':>8}{'max':>8}")
    for what, seconds in sorted(_MEASURED.items()):
        values = sorted(second * 1000 for second in seconds)
        p95 = values[min(len(values) - 1, round(0.95 * (len(values) - 1)))]
        terminalreporter.write_line(
            f"{what:<52}{len(values):>5}{statistics.median(values):>9.0f}{p95:>8.0f}{values[-1]:>8.0f}"
        )
