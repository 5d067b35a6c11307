"""Tools by which agents write to each other. Who writes is who asks, as the system knows it, and nobody else."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from agtmux.bridge.caller import Caller
from agtmux.bridge.tools.tool import Tool
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import LONGEST_TTL, Message, MessageType, Priority, Status
from agtmux.domain.timestamps import format_timestamp
from agtmux.messages.letters import Letter
from agtmux.messages.mailbox import Wanted, that_fit
from agtmux.messages.post import LONGEST_FETCH, LONGEST_SEND, Post, Sender
from agtmux.observe.world import World

Kind = Literal[
    "task_request",
    "task_response",
    "task_complete",
    "task_failed",
    "info",
    "progress",
    "error",
    "ping",
    "pong",
    "shutdown",
]
Urgency = Literal["low", "normal", "high", "urgent"]
_KIND: Final = Meta(
    description="task_request asks for work; task_response, progress, task_complete and task_failed answer one; info"
    " and error tell something; ping asks whether it is there; shutdown ends an agent that you launched"
)
_URGENCY: Final = Meta(
    description="the more urgent are delivered first; urgent ones also to an agent whose work they interrupt"
)
Id = Annotated[str, Meta(max_length=64)]
Word = Annotated[str, Meta(min_length=1, max_length=128)]
Seconds = Annotated[int, Meta(ge=1, le=LONGEST_TTL)]
_CONTENT: Final = Meta(description="what to say, in words that the other understands without knowing your conversation")


class SendMessage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    to: Annotated[
        str, Meta(description='a name, ref or runtime_id from list_agents, or "user"', min_length=1, max_length=512)
    ]
    content: Annotated[str, _CONTENT]
    type: Annotated[Kind, _KIND] = "info"
    priority: Annotated[Urgency, _URGENCY] = "normal"
    thinking: Annotated[str | None, Meta(description="why, for the user's log; the other agent does not see it")] = None
    reply_to: Annotated[Id | None, Meta(description="the message_id that this answers")] = None
    task_id: Word | None = None
    correlation_id: Word | None = None
    ttl_seconds: Annotated[Seconds | None, Meta(description="how long it may wait for the other to be ready")] = None
    delivery: Annotated[
        Literal["queue", "now"], Meta(description="now: refuse it instead of waiting if the other is not ready")
    ] = "queue"


class BroadcastMessage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    content: Annotated[str, _CONTENT]
    type: Annotated[Literal["info", "progress", "error"], _KIND] = "info"
    priority: Annotated[Urgency, _URGENCY] = "normal"


class ReadMessages(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    include_delivered: Annotated[
        bool, Meta(description="also those that you were given before, newest first; they are not given again")
    ] = False


class WaitForMessages(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    timeout_seconds: Annotated[float, Meta(ge=0, le=LONGEST_FETCH)] = LONGEST_FETCH
    reply_to: Annotated[Id | None, Meta(description="only answers to this message_id; others come as usual")] = None


class SentMessage(msgspec.Struct, frozen=True):
    message_id: str
    to: str
    status: Annotated[
        str,
        Meta(
            description="delivered; queued or delivering, it will be delivered by itself, do not send it again;"
            " refused, expired; uncertain, it may or may not have been taken"
        ),
    ]
    reason: Annotated[str, Meta(description="why, as dialog_open, draft_present, busy, receiver_ended")]
    answer: Annotated[str | None, Meta(description="of a ping")] = None


class SentMessages(msgspec.Struct, frozen=True):
    sent_count: int
    messages: list[SentMessage]


class GivenMessage(msgspec.Struct, frozen=True):
    message_id: str
    from_agent: Annotated[str, Meta(description="who has sent it; answer to this name")]
    type: str
    priority: str
    content: str
    reply_to: str | None
    task_id: str | None
    correlation_id: str | None
    sent_at: str
    status: str


class GivenMessages(msgspec.Struct, frozen=True):
    messages: list[GivenMessage]


class MailDesk:
    def __init__(self, world: World, post: Post) -> None:
        self._world = world
        self._post = post

    async def send_message(self, caller: Caller, asked: SendMessage) -> SentMessage:
        letter = Letter(
            asked.content,
            MessageType(asked.type),
            Priority(asked.priority),
            asked.thinking,
            asked.reply_to,
            asked.task_id,
            asked.correlation_id,
            asked.ttl_seconds,
            now_or_never=asked.delivery == "now",
        )
        message = await self._post.send(self._sender(caller), asked.to, letter, _PATIENCE)
        if message.type is MessageType.PONG and letter.type is MessageType.PING:
            return SentMessage(str(message.reply_to), message.sender.name, "delivered", "", message.content)
        return _sent(message)

    async def broadcast_message(self, caller: Caller, asked: BroadcastMessage) -> SentMessages:
        letter = Letter(asked.content, MessageType(asked.type), Priority(asked.priority))
        messages = await self._post.broadcast(self._sender(caller), letter, wait=_PATIENCE)
        return SentMessages(len(messages), [_sent(message) for message in messages])

    async def read_messages(self, caller: Caller, asked: ReadMessages) -> GivenMessages:
        receiver = self._sender(caller).party
        earlier = []
        if asked.include_delivered:
            wanted = Wanted(receiver_id=receiver.runtime_id, status=Status.DELIVERED)
            mailbox = self._post.mailbox
            # With their secrets, for as long as these are kept after a fetch: its answer may have been lost.
            earlier = [mailbox.whole(each) for each in await mailbox.listing(wanted, asked.limit)]
        # Last: what was fetched is given back only as long as nothing else has to be waited for.
        messages = [*await self._post.fetch(receiver, asked.limit), *earlier]
        return GivenMessages([_given(message) for message in that_fit(messages[: asked.limit])])

    async def wait_for_messages(self, caller: Caller, asked: WaitForMessages) -> GivenMessages:
        receiver = self._sender(caller).party
        messages = await self._post.fetch(receiver, wait=asked.timeout_seconds, reply_to=asked.reply_to)
        return GivenMessages([_given(message) for message in messages])

    def _sender(self, caller: Caller) -> Sender:
        record = None if caller.key is None else self._world.records.get(caller.key)
        if caller.key is None or record is None or not record.runtime.has_agent:
            why = caller.why_not or "no agent is in the pane that this comes from"
            raise AgtmuxError(
                ErrorCode.FORBIDDEN, f"only agents in panes have messages, and who you are is not known: {why}"
            )
        return self._post.agent(caller.key)


# For a receiver that takes it at once; whoever does not is told as it is.
_PATIENCE: Final = min(3.0, LONGEST_SEND)


def _sent(message: Message) -> SentMessage:
    return SentMessage(message.message_id, message.receiver.name, message.status, message.reason)


def _given(message: Message) -> GivenMessage:
    return GivenMessage(
        message_id=message.message_id,
        from_agent=message.sender.name,
        type=message.type,
        priority=message.priority,
        content=message.content or "",
        reply_to=message.reply_to,
        task_id=message.task_id,
        correlation_id=message.correlation_id,
        sent_at=format_timestamp(message.sent_at),
        status=message.status,
    )


TOOLS: Final = (
    Tool(
        "send_message",
        "Send a message",
        "Write to another coding agent, or to the user. It is delivered as a prompt of its own as soon as the other can"
        " take one, never into a dialog or a draft; if it has to wait, it is queued and delivered by itself.",
        SendMessage,
        SentMessage,
        MailDesk.send_message,
        MailDesk,
    ),
    Tool(
        "broadcast_message",
        "Write to all agents",
        "Write the same to all other agents that you may write to. For what concerns every one of them only.",
        BroadcastMessage,
        SentMessages,
        MailDesk.broadcast_message,
        MailDesk,
    ),
    Tool(
        "read_messages",
        "Read your messages",
        "Fetch what waits for you now. What you fetch is not typed into your prompt as well. Long ones come a few at a"
        " time: call it again until there are none.",
        ReadMessages,
        GivenMessages,
        MailDesk.read_messages,
        MailDesk,
    ),
    Tool(
        "wait_for_messages",
        "Wait for messages",
        "Wait until somebody writes to you, for an answer that you cannot go on without. Comes back empty when the time"
        " is over; otherwise end your turn, and messages come as prompts.",
        WaitForMessages,
        GivenMessages,
        MailDesk.wait_for_messages,
        MailDesk,
    ),
)
