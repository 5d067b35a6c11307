"""The words for messages are the same wherever one is asked for, and no others."""

from typing import get_args

from agtmux.bridge.tools.mail import Kind, Urgency
from agtmux.cli import message as command
from agtmux.domain.mail import MessageType, Priority

TASKS = ["task_request", "task_response", "task_complete", "task_failed"]
OTHERS = ["info", "progress", "error", "ping", "pong", "shutdown"]


def test_there_are_ten_types() -> None:
    """orchestrator: types."""
    assert [*MessageType] == [*get_args(Kind)] == TASKS + OTHERS
    # A pong is agtmux's own answer.
    assert {*command._TYPES} == {*TASKS, *OTHERS} - {"pong"}


def test_there_are_four_priorities_and_each_is_above_the_one_before() -> None:
    """orchestrator: priorities."""
    assert [*Priority] == [*get_args(Urgency)] == [*command._PRIORITIES] == ["low", "normal", "high", "urgent"]
    assert [priority.rank for priority in Priority] == [0, 1, 2, 3]
