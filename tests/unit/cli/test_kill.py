"""What `agtmux kill` says came of a signal."""

import pytest

from agtmux.cli.kill import told


@pytest.mark.parametrize(
    ("has_ended", "sentence"),
    [
        (True, "ended by SIGTERM"),
        (False, "SIGTERM was sent, and it still runs; --signal KILL ends it whatever it does"),
        (None, "SIGTERM was sent, and whether it has ended could not be seen; look at it (agtmux explain)"),
    ],
)
def test_what_nobody_could_see_is_not_said_to_run_or_to_have_ended(has_ended: bool | None, sentence: str):
    assert told(has_ended, "TERM") == sentence
