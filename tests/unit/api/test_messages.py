"""A message as the API shows it: all that was asked for with it, and what became of it."""

from pathlib import Path

from agtmux.api.messages import shown
from agtmux.domain.durations import SECOND
from agtmux.domain.mail import MessageType, Party, Priority, Reason, Status, Via
from agtmux.domain.runtimes import RuntimeId
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox
from unit.builders import a_core


async def test_a_message_is_kept_with_its_fields_and_shown_with_its_end(tmp_path: Path) -> None:
    """orchestrator: fields, metadata, thinking, retry count, log."""
    async with a_core(tmp_path) as core:
        mailbox, now = Mailbox(core.database), core.clock.now()
        letter = Letter(
            content="zähle die Tests",
            type=MessageType.TASK_REQUEST,
            priority=Priority.HIGH,
            thinking="it knows them",
            reply_to="0123456789abcdef",
            task_id="t1",
            correlation_id="c1",
            ttl_seconds=90,
        )
        message = message_of(Party("lead", RuntimeId("a")), Party("writer", RuntimeId("b")), letter, now, SECOND)
        [message] = await mailbox.put([message])
        # Begun with, given up, and begun with again.
        await mailbox.begin(message)
        await mailbox.back(message, Reason.DRAFT_PRESENT)
        await mailbox.begin(message)
        over = Timestamp(now + 2 * SECOND)
        await mailbox.settle(message, over, Status.DELIVERED, via=Via.TYPED, action_id="a1")
        told = shown(await mailbox.find(message.message_id))
    assert {name: getattr(told, name) for name in told.__struct_fields__} == {
        "message_id": message.message_id,
        "from_agent": "lead",
        "from_runtime": "a",
        "to_agent": "writer",
        "to_runtime": "b",
        "type": "task_request",
        "priority": "high",
        "content": "zähle die Tests",
        "thinking": "it knows them",
        "size": 16,
        "is_redacted": False,
        "reply_to": "0123456789abcdef",
        "task_id": "t1",
        "correlation_id": "c1",
        "sent_at": format_timestamp(now),
        "expires_at": format_timestamp(Timestamp(now + 90 * SECOND)),
        "ttl_seconds": 90,
        "status": "delivered",
        "reason": "",
        "via": "typed",
        "retry_count": 1,
        "action_id": "a1",
        "settled_at": format_timestamp(over),
        "duration_ms": 2_000.0,
    }
