"""Messages on a probe's line come out as they went in, however the bytes were cut, and too long ones do not."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.probe.frames import MAX_FRAME, FrameError, Frames, decode, encode
from support.cutting import CUTS, parts

MESSAGES = st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=40) | st.integers()), max_size=6)


@given(MESSAGES, CUTS)
def test_messages_survive_any_cut(messages, cuts):
    stream = b"".join(encode(message) for message in messages)
    frames, found = Frames(), []
    for part in parts(stream, cuts):
        found += frames.feed(part)
    assert [decode(frame) for frame in found] == messages


def test_a_length_beyond_the_limit_is_refused_before_any_of_it_came():
    with pytest.raises(FrameError, match=str(MAX_FRAME + 1)):
        Frames().feed(struct.pack(">I", MAX_FRAME + 1))


@pytest.mark.parametrize("frame", [b"", b"{", b"\xff", b"[1]", b"3", b"[" * 100_000])
def test_what_is_no_message_is_refused(frame):
    with pytest.raises(FrameError):
        decode(frame)
