"""How a pane is named: what is written is read back, and what is wrong gets its code and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import (
    PaneRef,
    RuntimeRef,
    SessionRef,
    decode_session,
    encode_session,
    is_pane_id,
    is_runtime_id,
    is_target_name,
    parse_ref,
    parse_session_ref,
)

session_names = st.text(st.characters(codec="utf-8"), min_size=1)
targets = st.text("abcXYZ019._-", min_size=1, max_size=64)
digits = st.text("0123456789", min_size=1, max_size=9)
RUNTIME_ID = "0123456789abcdef"


def code_of(text: str) -> str:
    with pytest.raises(AgtmuxError) as refused:
        parse_ref(text)
    assert len(refused.value.message) < 700, "an error does not repeat a megabyte of input"
    return refused.value.code


@given(targets, session_names, digits, digits)
def test_any_pane_ref_is_read_back_as_it_was_written(target: str, session: str, window: str, pane: str) -> None:
    ref = PaneRef(target, session, f"@{window}", f"%{pane}")
    assert parse_ref(str(ref)) == ref
    assert str(ref).isascii()
    assert str(ref).count("/") == 3


@given(st.text("abcXYZ019._:-", min_size=16, max_size=128))
def test_any_runtime_ref_is_read_back_as_it_was_written(runtime_id: str) -> None:
    assert parse_ref(str(RuntimeRef(runtime_id))) == RuntimeRef(runtime_id)


@given(targets, session_names)
def test_any_session_ref_is_read_back_as_it_was_written(target: str, session: str) -> None:
    assert parse_session_ref(str(SessionRef(target, session))) == SessionRef(target, session)


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("main", "main"),
        ("a b", "a%20b"),
        ("50%", "50%25"),
        ("a/b:c@d", "a%2Fb%3Ac%40d"),
        ("~.-_", "~.-_"),
        ("作業", "%E4%BD%9C%E6%A5%AD"),
        ("🔥", "%F0%9F%94%A5"),
        ("a\tb\n", "a%09b%0A"),
    ],
)
def test_only_unreserved_characters_stand_for_themselves(name: str, encoded: str) -> None:
    assert encode_session(name) == encoded
    assert decode_session(encoded) == name


def test_small_hex_digits_mean_the_same_as_large_ones() -> None:
    assert decode_session("a%2fb") == decode_session("a%2Fb") == "a/b"


@pytest.mark.parametrize(
    "session",
    [
        "",
        "a b",
        "ä",
        "a%",
        "a%2",
        "a%zz",
        "%ff",
        "%C3",
        "%ED%A0%80",
        "%C0%80",
        "a+b\n",
        "a:b",
        "a%2G",
        "%\u0662\u0660",
        "a\x00",
    ],
)
def test_a_session_that_is_not_percent_encoded_utf8_has_its_own_code(session: str) -> None:
    assert code_of(f"pane:host/{session}/@1/%1") == ErrorCode.REF_INVALID_ENCODING
    with pytest.raises(AgtmuxError) as refused:
        parse_session_ref(f"host/{session}")
    assert refused.value.code is ErrorCode.REF_INVALID_ENCODING


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "pane",
        "pane:",
        "main",
        "%1",
        "window:host/main/@1/%1",
        "PANE:host/main/@1/%1",
        " pane:host/main/@1/%1",
        "pane:host/main/@1/%1\n",
        "pane:host/main/@1/%1/",
        "pane:host/main//@1/%1",
        "pane:host/a/b/@1/%1",
        "pane:host/main/@1",
        "pane:/main/@1/%1",
        "pane:ho st/main/@1/%1",
        "pane:höst/main/@1/%1",
        "pane:host\n/main/@1/%1",
        "pane:" + "h" * 65 + "/main/@1/%1",
        "pane:host/main/@/%1",
        "pane:host/main/1/%1",
        "pane:host/main/@1/%",
        "pane:host/main/@1/1",
        "pane:host/main/@1/%1x",
        "pane:host/main/@-1/%1",
        "pane:host/main/@\u0661/%1",
        "pane:host/main/@1/%\uff11",
        "runtime:",
        "runtime:" + "a" * 15,
        "runtime:" + "a" * 129,
        "runtime:" + "a" * 15 + "ä",
        "runtime:" + "a" * 16 + "\n",
        "runtime:" + "a" * 16 + "/x",
        "x" * 1_000_000,
    ],
)
def test_what_does_not_follow_the_grammar_is_invalid(text: str) -> None:
    assert code_of(text) == ErrorCode.REF_INVALID


@pytest.mark.parametrize("text", ["host", "", "/main", "ho st/main", "h" * 65 + "/main"])
def test_a_session_ref_needs_a_target_and_a_slash(text: str) -> None:
    with pytest.raises(AgtmuxError) as refused:
        parse_session_ref(text)
    assert refused.value.code is ErrorCode.REF_INVALID


anything = st.text() | st.text("panerutimhos:/@%0129aF \n٣", max_size=40).map(lambda rest: "pane:" + rest)


@given(
    anything | st.builds("pane:{}/{}/{}/{}".format, st.text(), st.text("ab%C3F /", max_size=9), st.text(), st.text())
)
@settings(max_examples=300)
def test_parsing_never_fails_with_anything_but_our_error(text: str) -> None:
    for parse in (parse_ref, parse_session_ref):
        try:
            ref = parse(text)
        except AgtmuxError as error:
            assert error.code in (ErrorCode.REF_INVALID, ErrorCode.REF_INVALID_ENCODING)
        else:
            assert parse(str(ref)) == ref


@pytest.mark.parametrize(
    ("text", "is_one"), [("%0", True), ("%123", True), ("%", False), ("%1\n", False), ("%²", False)]
)
def test_a_pane_id_is_a_percent_sign_and_digits(text: str, is_one: bool) -> None:
    assert is_pane_id(text) is is_one


def test_names_that_anyone_could_make_too_long_are_bounded() -> None:
    assert is_target_name("a" * 64)
    assert not is_target_name("a" * 65)
    assert not is_pane_id("%" + "1" * 20)
    assert is_runtime_id(RUNTIME_ID)
    assert not is_runtime_id("a" * 129)
