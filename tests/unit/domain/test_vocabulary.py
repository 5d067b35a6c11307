"""The words of the interface: error codes and their statuses, states, sources, keys of events."""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain import errors
from agtmux.domain.errors import STATUSES, AgtmuxError, ErrorCode
from agtmux.domain.events import derive_dedupe_key
from agtmux.domain.states import EXTERNAL_SOURCES, NEEDS_ACTION, Reason, Source, State

# DESIGN §4
HTTP_STATUSES = {400, 401, 403, 404, 409, 410, 412, 413, 429, 500, 503}
EXIT_STATUSES = range(1, 7)


def test_every_code_has_an_exit_status_and_an_http_status() -> None:
    assert set(STATUSES) == set(ErrorCode)
    assert {exit_status for exit_status, _ in STATUSES.values()} == set(EXIT_STATUSES)
    assert {http_status for _, http_status in STATUSES.values()} <= HTTP_STATUSES


def test_the_tree_in_the_docstring_is_the_table() -> None:
    tree: dict[int, set[str]] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.search(r"exit (\d)", line):
            status = int(match[1])
        for code in re.findall(r"E_[A-Z_]+", line):
            tree.setdefault(status, set()).add(code)
    table: dict[int, set[str]] = {}
    for code, (exit_status, _) in STATUSES.items():
        table.setdefault(exit_status, set()).add(code.value)
    assert tree == table


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_survives_the_way_over_the_socket(code: ErrorCode) -> None:
    error = AgtmuxError(code, "it broke; mend it", {"why": ["so"]})
    read = AgtmuxError.from_json(json.loads(json.dumps(error.as_json())))
    assert read is not None
    assert (read.code, read.message, read.details) == (code, error.message, error.details)
    assert (read.exit_status, read.http_status) == STATUSES[code]
    assert str(read) == f"{code}: it broke; mend it"


def test_a_code_of_a_newer_daemon_is_an_internal_error_with_its_sentence() -> None:
    read = AgtmuxError.from_json({"error": {"code": "E_TOMORROW", "message": "wait"}})
    assert read is not None
    assert (read.code, read.message) == (ErrorCode.INTERNAL, "wait")


@pytest.mark.parametrize("body", [None, [], {}, "error", {"error": None}, {"error": "E_STORE"}])
def test_what_carries_no_error_is_none(body: object) -> None:
    assert AgtmuxError.from_json(body) is None


def test_the_words_are_the_specs() -> None:
    assert set(State) == {"running", "waiting_input", "waiting_approval", "completed", "idle", "error", "unknown"}
    assert {"hook", "notify", "wrapper", "poller"} == EXTERNAL_SOURCES
    assert {"error", "waiting_approval", "waiting_input"} == NEEDS_ACTION
    assert all(re.fullmatch(r"[a-z][a-z_]*", reason) for reason in Reason)


@given(st.tuples(st.sampled_from(list(Source)), st.none() | st.text(), st.text(), st.binary()))
def test_a_dedupe_key_is_the_same_for_the_same_event(parts) -> None:
    assert derive_dedupe_key(*parts) == derive_dedupe_key(*parts)
    assert re.fullmatch(r"[0-9a-f]{64}", derive_dedupe_key(*parts))


def test_a_dedupe_key_follows_the_specs_recipe() -> None:
    payload_hash = hashlib.sha256(b"{}").hexdigest()
    recipe = hashlib.sha256(f"hook:7:{payload_hash}:stop".encode()).hexdigest()
    assert derive_dedupe_key("hook", "7", "stop", b"{}") == recipe
    assert derive_dedupe_key("hook", "7", " Stop ", b"{}") == derive_dedupe_key("hook", "7", "stop", b"{}")
    different = [
        derive_dedupe_key("hook", "7", "stop", b"{}"),
        derive_dedupe_key("notify", "7", "stop", b"{}"),
        derive_dedupe_key("hook", "8", "stop", b"{}"),
        derive_dedupe_key("hook", None, "stop", b"{}"),
        derive_dedupe_key("hook", "7", "start", b"{}"),
        derive_dedupe_key("hook", "7", "stop", b"[]"),
    ]
    assert len(set(different)) == len(different)
