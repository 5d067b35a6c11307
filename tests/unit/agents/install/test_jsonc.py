"""Reading JSON with comments: what is taken, what is refused, and where it says the fault is."""

import json

import pytest
from hypothesis import given, settings

from agtmux.agents.install.jsonc import JsoncError, comments, parse
from unit.agents.install.documents import as_python, documents


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("\ufeff{ }", {}),
        ("[1, -0, 0.5, 1e9, -2.5E-3]", [1, 0, 0.5, 1e9, -0.0025]),
        ('["\\u00e9\\n\\/", "\\ud83d\\ude00"]', ["é\n/", "😀"]),
        ("// a\r\n[true, // b\n false, /* c, ] */ null,]// d", [True, False, None]),
        ('{"a": 1, "a": 2,}', {"a": 2}),
        ('{"a" /* : */ : /**/ {"b": []}}', {"a": {"b": []}}),
        ('"// no comment /* */"', "// no comment /* */"),
        ("[" * 150 + "]" * 150, json.loads("[" * 150 + "]" * 150)),
    ],
)
def test_json_with_comments_is_read(text: str, value: object) -> None:
    assert as_python(text) == value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("  \n", 2, 1),
        ("{", 1, 2),
        ('{"a": 1\n  "b": 2}', 2, 3),
        ("{\r\n'a': 1}", 2, 1),
        ("{a: 1}", 1, 2),
        ('{"a" 1}', 1, 6),
        ("[1 2]", 1, 4),
        ("[,]", 1, 2),
        ("[1,,2]", 1, 4),
        ("{} {}", 1, 4),
        ("\ufeff{} x", 1, 4),
        ('{"a": "b', 1, 7),
        ('{"a": "tab\there"}', 1, 7),
        ('["\\x41"]', 1, 2),
        ('["a\\u"]', 1, 2),
        ('["\\u00e9\\u12"]', 1, 2),
        ("[01]", 1, 2),
        ("[1.]", 1, 2),
        ("[+1]", 1, 2),
        ("[NaN]", 1, 2),
        ("[True]", 1, 2),
        ("[nullx]", 1, 2),
        ("[1] /* open", 1, 5),
        ("[1 / 2]", 1, 4),
        ("# no comment\n{}", 1, 1),
        ("[" * 300, 1, 202),
    ],
)
def test_what_is_not_json_is_refused_where_it_goes_wrong(text: str, line: int, column: int) -> None:
    with pytest.raises(JsoncError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@settings(max_examples=50, deadline=None)
@given(text=documents(strict=True))
def test_strict_json_means_what_it_means_to_everyone(text: str) -> None:
    assert as_python(text) == json.loads(text)


def test_a_string_without_an_end_is_refused_at_once() -> None:
    with pytest.raises(JsoncError):
        parse('"' + "\\n" * 100_000)


def test_comments_between_elements_are_found() -> None:
    text = ", /* a, // */ // b /* \n ,"
    found = [(text[each.start : each.end], each.to_line_end) for each in comments(text, 0, len(text))]
    assert found == [("/* a, // */", False), ("// b /* ", True)]
