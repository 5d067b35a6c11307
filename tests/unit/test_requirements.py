"""docs/messaging.md tells for everything that is asked of messages which test shows it, and the test says so itself."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "messaging.md"
HEADING = "## What is asked of it, and the test that shows it"
GWT = [
    *(f"gwt FR-{number:03}" for number in range(1, 22)),
    *(f"gwt NFR-{number:03}" for number in range(1, 4)),
]
ORCHESTRATOR = [
    f"orchestrator: {name}"
    for name in (
        *("JSON-RPC", "tools", "fields", "thinking", "metadata", "retry count", "replies", "correlation"),
        *("types", "ping", "shutdown", "priorities", "TTL", "configuration home", "starting", "sending", "task flow"),
        *("error codes", "rate limit", "start time-out", "send time-out", "receive time-out", "task time-out"),
        *("idle time-out", "reconnecting", "authentication", "validation", "permissions", "word to the user"),
        *("message size", "thinking size", "throughput", "latency", "log", "log levels"),
    )
]
# A row that begins so says why there is no test.
NO_TEST = "no test: "


def rows() -> dict[str, str]:
    """By what is asked, what shows it."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2]
    cells = [
        [each.strip() for each in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith(("| gwt ", "| orchestrator: "))
    ]
    assert {len(each) for each in cells} == {3}
    assert len({each[0] for each in cells}) == len(cells), "a requirement has one row"
    return {each[0]: each[2] for each in cells}


def shown_by(cell: str) -> list[str]:
    """The tests that it names, and the files whose whole is meant."""
    return re.findall(r"`(test_\w+|tests/[\w/]+\.py)`", cell)


@cache
def docstrings() -> dict[str, str]:
    """Of every test by its name, and of every file by its path. What two tests of one name say counts as one."""
    found: dict[str, str] = defaultdict(str)
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_bytes())
        found[str(path.relative_to(ROOT))] = ast.get_docstring(tree) or ""
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                found[node.name] += f"{ast.get_docstring(node) or ''}\n"
    return dict(found)


def named_in(docstring: str) -> set[str]:
    """`gwt FR-007 to FR-009, NFR-001; orchestrator: types, TTL. Anything else.`"""
    text = " ".join(docstring.split())
    spans = re.findall(r"\b(N?FR)-(\d{3})(?: to \1-(\d{3}))?", text)
    gwt = {f"gwt {kind}-{at:03}" for kind, first, last in spans for at in range(int(first), int(last or first) + 1)}
    lists = re.findall(r"\borchestrator: ([^.;]+)", text)
    return gwt | {f"orchestrator: {name.strip()}" for each in lists for name in each.split(",")}


@pytest.mark.parametrize("asked", [*GWT, *ORCHESTRATOR])
def test_what_is_asked_has_a_row_with_tests_that_name_it(asked: str) -> None:
    cell = rows()[asked]
    tests = shown_by(cell)
    assert bool(tests) is not cell.startswith(NO_TEST), cell
    for test in tests:
        assert test in docstrings(), f"{test} does not exist"
        assert asked in named_in(docstrings()[test]), f"{test} does not name {asked}"


def test_nothing_else_is_in_the_table() -> None:
    assert [*rows()] == [*GWT, *ORCHESTRATOR]


def test_every_test_that_the_page_names_exists() -> None:
    assert not [test for test in shown_by(PAGE.read_text("utf-8")) if test not in docstrings()]


def test_no_test_names_what_nobody_asked_for() -> None:
    """A word that is misspelt would prove nothing."""
    known = {*GWT, *ORCHESTRATOR}
    assert not {test: named_in(text) - known for test, text in docstrings().items() if named_in(text) - known}


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("gwt FR-001.", {"gwt FR-001"}),
        ("gwt FR-009 to FR-011, NFR-001: why.", {"gwt FR-009", "gwt FR-010", "gwt FR-011", "gwt NFR-001"}),
        (
            "gwt FR-002; orchestrator: TTL, log levels. More.",
            {"gwt FR-002", "orchestrator: TTL", "orchestrator: log levels"},
        ),
        ("FR-13 is another document's.", set()),
        ("", set()),
    ],
)
def test_docstrings_are_read_as_they_are_meant(docstring: str, names: set[str]) -> None:
    assert named_in(docstring) == names
