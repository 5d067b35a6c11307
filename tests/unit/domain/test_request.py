"""What a request lacks: hidden code, hidden addresses, and whether one line of it says all."""

import pytest

from agtmux.domain.events import FULL_ROW, Incomplete, request
from agtmux.domain.redact import redact_text


@pytest.mark.parametrize(
    "command",
    [
        'git push --token="x$(touch x)abcdefgh"',
        "API_KEY=/tmp/evil.sh make deploy",
        "deploy --api-key=https://evil.example make",
        "deploy --password ~/evil",
        "curl 'https://x.example/?code=/tmp/evil'",
        # Hidden before it came here, as in an event that a hook had to keep on disk.
        "deploy --token=[redacted]",
    ],
)
def test_what_is_hidden_may_be_more_than_a_key(command: str) -> None:
    assert "[redacted]" in redact_text(command)
    asked = request("approval", command, None, subject=command, is_brief=True)
    assert (asked.incomplete, asked.is_brief) == (Incomplete.REDACTED, False)


@pytest.mark.parametrize("command", ["deploy --token=abcdef012345", "curl -H 'Authorization: Bearer abc123.x-y_z=' x"])
def test_a_hidden_key_is_no_reason_to_refuse(command: str) -> None:
    asked = request("approval", command, None, subject=command, is_brief=True)
    assert (asked.incomplete, asked.is_brief) == (None, True)


@pytest.mark.parametrize("name", ["--password-command evil", "SECRET_CMD=evil run", "--token-script evil"])
def test_the_name_of_a_program_is_no_secret(name: str) -> None:
    assert "evil" in redact_text(f"deploy {name}")


@pytest.mark.parametrize("line_break", ["\n", FULL_ROW])
def test_one_line_does_not_say_all_of_two(line_break: str) -> None:
    subject = f"echo a #{line_break}touch x"
    asked = request("approval", "echo a # touch x", "echo a #\ntouch x", subject=subject, is_brief=True)
    assert asked.is_whole and not asked.is_brief
