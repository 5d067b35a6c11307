"""Regular expressions that every supported Python matches alike.

Before 3.11.5 (Debian 12 has 3.11.2) a possessive group or an atomic one matches what it should not, or misses what it
should (python/cpython#106052). Possessive single characters, as in `[0-9]++`, are right everywhere.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)


def is_fragile(pattern: str) -> bool:
    try:
        parsed = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return any(
        code is codes.ATOMIC_GROUP
        or (code is codes.POSSESSIVE_REPEAT and [each[0] for each in value[2]] not in [[one] for one in SINGLE])
        for code, value in items(parsed)
    )


def items(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every (code, value) of a parsed pattern, however deep."""
    if isinstance(node, _parser.SubPattern):
        for code, value in node:
            yield code, value
            yield from items(value)
    elif isinstance(node, tuple | list):
        for each in node:
            yield from items(each)


def texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for each in content.values() if isinstance(content, dict) else content:
            yield from texts(each)


def candidates() -> Iterator[tuple[Path, str]]:
    for folder in ("daemon", "AgtmuxBar"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield path, node.value
    for path in (ROOT / "resources").rglob("*.toml"):
        for text in texts(tomllib.loads(path.read_text("utf-8"))):
            yield path, text


def test_no_pattern_needs_a_newer_python_than_the_oldest_supported() -> None:
    quick = re.compile(r"[)}*+?]\+|\(\?>")
    found = [f"{path.relative_to(ROOT)}: {text}" for path, text in candidates() if quick.search(text)]
    assert found, "the possessive characters of jsonc.py at least"
    assert [each for each in found if is_fragile(each.partition(": ")[2])] == []


@pytest.mark.parametrize(("pattern", "fragile"), [(r"(?:ab|c)*+d", True), (r"(?>a|b)", True), (r"x(y[0-9]++)", False)])
def test_the_rule_bites(pattern: str, fragile: bool) -> None:
    assert is_fragile(pattern) is fragile


def test_no_statement_numbers_its_parameters() -> None:
    """Up to Python 3.12.3, sqlite3 takes `?1` for a name and warns (python/cpython#117995)."""
    statement = re.compile(r"\b(SELECT|UPDATE|INSERT|DELETE)\b.*\?[0-9]", re.DOTALL)
    assert [f"{path.relative_to(ROOT)}: {text}" for path, text in candidates() if statement.search(text)] == []
