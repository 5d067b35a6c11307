"""What a probe says of files: an excerpt is one of a file, with a mark for each part that it has not."""

import base64
import json

import msgspec
import pytest

from agtmux.domain.errors import AgtmuxError
from agtmux.probe.excerpts import excerpt
from agtmux.probe.files import FileState, digest
from agtmux.targets.messages import FileRead, answer

DATA = b'{"a": [1, 2], "b": "x"}'


def said(**other: object) -> msgspec.Raw:
    found = excerpt(DATA, ["b"], 1_000, least=1)
    told = {"data": found.data, "mode": 0o600, "left_out": found.left_out, "whole_digest": digest(DATA)} | other
    assert isinstance(told["data"], bytes)
    return msgspec.Raw(json.dumps(told | {"data": base64.b64encode(told["data"]).decode()}).encode())


def test_an_excerpt_is_told_with_what_is_not_in_it() -> None:
    state = answer(said(), FileRead).as_state()
    assert state is not None and state.left_out is not None
    assert state.digest == FileState(DATA, 0o600).digest
    assert b"".join(state.left_out.filled(state.data, DATA)) == DATA


@pytest.mark.parametrize(
    "other",
    [
        {"data": b"{}"},
        {"data": b'{"a": " 0", "b": " 99"}', "left_out": ["", [[0, 1, 2, 3]]]},
        {"left_out": None},
        {"whole_digest": ""},
        {"whole_digest": "x" * 64},
        {"left_out": ["x", [[1, 2]]]},
        {"data": b"x" * 1_000_001, "left_out": None, "whole_digest": ""},
    ],
)
def test_what_is_no_excerpt_is_not_taken(other: dict[str, object]) -> None:
    with pytest.raises(AgtmuxError, match="not taken"):
        answer(said(**other), FileRead)
