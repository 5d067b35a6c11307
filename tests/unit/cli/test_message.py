"""What `agtmux message send` says when it is interrupted."""

from agtmux.cli.message import _left_behind


def test_nothing_that_was_accepted_is_nothing_that_was_sent() -> None:
    assert _left_behind([]) == ["agtmux: interrupted before the message was accepted; nothing was sent"]


def test_only_what_still_waits_can_be_cancelled() -> None:
    items = [
        {"type": "info", "status": status, "to_agent": "claude-0", "reason": "", "message_id": f"id-{status}"}
        for status in ("queued", "delivering", "delivered", "uncertain")
    ]
    told = "\n".join(_left_behind(items))
    assert "agtmux message cancel id-queued" in told and "agtmux message cancel id-delivering" in told
    assert "cancel id-delivered" not in told and "cancel id-uncertain" not in told
