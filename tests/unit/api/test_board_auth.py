"""Tokens, codes, sessions and attempts, by a clock of the test's own."""

import pytest

from agtmux.api.board.auth import CODE_LASTS, MOST_FAILURES, SESSION_LASTS, Attempts, Codes, Credentials, new_token
from agtmux.api.board.gate import own_hosts
from agtmux.domain.errors import AgtmuxError


def test_a_session_lasts_and_ends():
    credentials = Credentials(new_token())
    cookie, key = credentials.new_session(1_000.0)
    assert credentials.is_session(cookie, key, 1_000.0)
    assert credentials.is_session(cookie, key, 999.0 + SESSION_LASTS)
    assert not credentials.is_session(cookie, key, 1_001.0 + SESSION_LASTS)


def test_a_session_is_of_its_token_and_cannot_be_made_longer():
    credentials = Credentials(new_token())
    cookie, key = credentials.new_session(1_000.0)
    assert not Credentials(new_token()).is_session(cookie, key, 1_000.0)
    name, expires, seal = cookie.split(".")
    for wrong in (f"{name}.{int(expires) + 1}.{seal}", f"{name}.{expires}.", f"{name}.{seal}", "", "..", "é.é.é"):
        assert not credentials.is_session(wrong, key, 1_000.0)
    for wrong in ("", key[:-1], key + "0", seal, "é"):
        assert not credentials.is_session(cookie, wrong, 1_000.0)


def test_the_token_itself_and_no_other():
    token = new_token()
    credentials = Credentials(token)
    assert credentials.is_token(token)
    assert not any(map(credentials.is_token, ("", token[:-1], token + "x", f" {token}", "\udcff")))
    assert new_token() != token and len(token) >= 43


def test_a_code_is_good_once_and_for_a_minute():
    codes = Codes()
    first, second = codes.issue(0.0), codes.issue(1.0)
    assert codes.take(second, "", 2.0)
    assert not codes.take(second, "", 2.0)
    assert not codes.take(first, "", CODE_LASTS)
    assert not codes.take("", "", 0.0)
    many = [codes.issue(100.0) for _ in range(100)]
    assert sum(codes.take(code, "", 100.0) for code in many) <= 16


def test_a_code_may_be_used_again_by_who_used_it_and_did_not_hear_the_answer():
    codes = Codes()
    code, mine, theirs = codes.issue(0.0), new_token(), new_token()
    assert codes.take(code, mine, 1.0)
    assert not codes.take(code, theirs, 2.0)
    assert not codes.take(code, "", 2.0)
    assert codes.take(code, mine, 2.0)
    assert not codes.take(code, mine, CODE_LASTS)
    # A name that could be guessed is none.
    short = codes.issue(100.0)
    assert codes.take(short, "1", 100.0)
    assert not codes.take(short, "1", 100.0)


def test_who_is_wrong_too_often_has_to_wait():
    attempts = Attempts()
    for second in range(MOST_FAILURES):
        attempts.check("a", float(second))
        attempts.failed("a", float(second))
    with pytest.raises(AgtmuxError) as refused:
        attempts.check("a", 10.0)
    assert refused.value.details == {"retry_after_seconds": 50}
    attempts.check("b", 10.0)
    attempts.check("a", 60.0)


def test_many_who_are_wrong_a_little_are_slowed_down_together():
    attempts = Attempts()
    for number in range(5_000):
        attempts.failed(f"2001:db8::{number:x}", 0.0)
    with pytest.raises(AgtmuxError, match="E_LIMIT_RATE"):
        attempts.check("somebody else", 1.0)
    attempts.check("somebody else", 61.0)


@pytest.mark.parametrize(
    ("bind", "host", "is_own"),
    [
        ("127.0.0.1", "127.0.0.1:80", True),
        ("127.0.0.1", "LOCALHOST:80", True),
        ("127.0.0.1", "[::1]:80", True),
        ("::1", "[::1]:80", True),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1:81", False),
        ("127.0.0.1", "10.0.0.1:80", False),
        ("127.0.0.1", "laptop.local:80", True),
        ("127.0.0.1", "laptop.local.evil:80", False),
        ("10.0.0.1", "10.0.0.1:80", True),
        ("10.0.0.1", "localhost:80", False),
        ("0.0.0.0", "10.0.0.1:80", True),
        ("0.0.0.0", "evil.example:80", False),
        ("::", "[fe80::1]:80", True),
    ],
)
def test_which_names_are_its_own(bind, host, is_own):
    assert own_hosts(bind, 80, ["laptop.local"])(host) is is_own
