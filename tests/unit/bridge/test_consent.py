"""What the user has decided about the bridge, kept in a file."""

from pathlib import Path

import pytest

from agtmux.bridge.consent import FILE, Consent, Decisions
from agtmux.domain.errors import AgtmuxError

AGENTS = ["claude", "codex"]


def test_no_decision_allows_nothing(tmp_path: Path) -> None:
    assert Consent(tmp_path, None).allowed(AGENTS) == []
    assert Consent(tmp_path, None).about() == {"register": None, "agents": {}, "decided_by": None}


def test_a_decision_is_kept_for_all_and_by_name(tmp_path: Path) -> None:
    consent = Consent(tmp_path, None)
    consent.decide([], allow=True)
    consent.decide(["codex"], allow=False)
    assert Consent(tmp_path, None).allowed(AGENTS) == ["claude"]
    consent.decide([], allow=False)
    assert Consent(tmp_path, None).read() == Decisions(False)
    consent.decide(["codex"], allow=True)
    assert Consent(tmp_path, None).allowed(AGENTS) == ["codex"]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_settings_win(tmp_path: Path) -> None:
    Consent(tmp_path, None).decide([], allow=True)
    assert Consent(tmp_path, False).allowed(AGENTS) == []
    Consent(tmp_path, None).decide([], allow=False)
    assert Consent(tmp_path, True).allowed(AGENTS) == AGENTS
    # What was taken out by name stays out.
    Consent(tmp_path, None).decide(["claude"], allow=False)
    assert Consent(tmp_path, True).allowed(AGENTS) == ["codex"]


def test_what_was_taken_out_by_name_in_an_earlier_version_stays_out(tmp_path: Path) -> None:
    (tmp_path / "mcp-declined.json").write_text('["codex"]')
    assert Consent(tmp_path, None).read() == Decisions(None, {"codex": False})
    assert Consent(tmp_path, True).allowed(AGENTS) == ["claude"]
    Consent(tmp_path, None).decide(["claude"], allow=True)
    assert Consent(tmp_path, None).read() == Decisions(None, {"codex": False, "claude": True})
    assert not (tmp_path / "mcp-declined.json").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"register": 1, "agents": {}}', '{"register": true}', "\udcff"]
)
def test_a_file_that_cannot_be_read_is_no_consent(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Consent(tmp_path, None).allowed(AGENTS) == []
    assert Consent(tmp_path, None).read().everyone is None


def test_a_decision_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgtmuxError, match="not kept"):
        Consent(tmp_path / "missing", None).decide([], allow=True)
