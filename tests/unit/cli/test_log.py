"""What `agtmux log actions` says of an action in a few words."""

import pytest

from agtmux.cli.log import _what


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"characters": 1, "enter": False}, "1 character"),
        ({"characters": 9, "enter": True}, "9 characters, Enter"),
        ({"question": "touch x", "key": "1"}, "touch x"),
        ({"key": "Escape"}, "Escape"),
    ],
)
def test_an_action_is_told_in_a_few_words(about: dict[str, object], says: str) -> None:
    assert _what(about) == says
