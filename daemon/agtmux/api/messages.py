"""`/v1/messages`: what people and programs ask of the post office. Who sends is who the kernel says has connected."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agtmux.api.bodies import MAX_TEXT_BYTES, as_json, decoded, envelope, left, read_body
from agtmux.api.protocol import peer_of
from agtmux.api.shapes import Answer, Total
from agtmux.bridge.asker import AskerKind
from agtmux.bridge.caller import Caller, find_caller
from agtmux.domain.durations import parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, MessageType, Party, Priority, Status
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.messages.directory import OUTSIDE, USER
from agtmux.messages.letters import Letter
from agtmux.messages.mailbox import Wanted
from agtmux.messages.post import LONGEST_FETCH, LONGEST_SEND, Sender
from agtmux.service import Service

_MOST: Final = 1_000
_FILTERS: Final = ("message_id", "with", "to", "status", "type", "correlation_id", "request_ref", "since", "limit")
Word = Annotated[str, msgspec.Meta(max_length=128)]


class SendAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # Empty: to all other agents.
    to: Annotated[str, msgspec.Meta(max_length=512)] = ""
    content: str
    type: MessageType = MessageType.INFO
    priority: Priority = Priority.NORMAL
    thinking: str | None = None
    reply_to: Word | None = None
    task_id: Word | None = None
    correlation_id: Word | None = None
    ttl_seconds: int | None = None
    delivery: Literal["queue", "now"] = "queue"
    request_ref: Word | None = None
    # Of those who are meant if nobody is named.
    team: Word = ""
    # How long to wait for what becomes of it.
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_SEND)] = 0.0

    def letter(self) -> Letter:
        return Letter(
            content=self.content,
            type=self.type,
            priority=self.priority,
            thinking=self.thinking,
            reply_to=self.reply_to,
            task_id=self.task_id,
            correlation_id=self.correlation_id,
            ttl_seconds=self.ttl_seconds,
            request_ref=self.request_ref,
            now_or_never=self.delivery == "now",
        )


class FetchAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)]
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_FETCH)] = 0.0


class MessageShown(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    from_agent: str
    from_runtime: str | None
    to_agent: str
    to_runtime: str | None
    type: MessageType
    priority: Priority
    # None when it has been forgotten.
    content: str | None
    # It is the redacted form of what was sent; its receiver gets what was sent.
    is_redacted: bool
    thinking: str | None
    size: int
    reply_to: str | None
    task_id: str | None
    correlation_id: str | None
    sent_at: str
    expires_at: str
    ttl_seconds: int
    status: Status
    reason: str
    via: str
    retry_count: int
    action_id: str | None
    settled_at: str | None
    # From when it was accepted until it ended.
    duration_ms: float | None


class MessageFilters(msgspec.Struct, frozen=True, rename={"with_": "with"}):
    message_id: str | UnsetType = UNSET
    with_: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    correlation_id: str | UnsetType = UNSET
    request_ref: str | UnsetType = UNSET
    since: str | UnsetType = UNSET


class MessagesAnswer(Answer, frozen=True, kw_only=True):
    filters: MessageFilters
    summary: Total
    items: list[MessageShown]


class MessagesApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def send(self, request: Request) -> Response:
        asked = decoded(await read_body(request, MAX_TEXT_BYTES), SendAsked)
        sender, post = await self._sender(request), self._service.post
        if asked.to:
            items = [await post.send(sender, asked.to, asked.letter(), asked.wait_seconds)]
        else:
            items = await post.broadcast(sender, asked.letter(), asked.team, asked.wait_seconds)
        return self._told(items)

    async def fetch(self, request: Request) -> Response:
        """What waits for whoever asks, which is their own from then on."""
        asked = decoded(await read_body(request), FetchAsked)
        self._check_known(request)
        agent = self._agent(request)
        receiver = Party(USER) if agent is None else agent.party
        fetching = asyncio.ensure_future(self._service.post.fetch(receiver, asked.limit, asked.wait_seconds))
        leaving = asyncio.ensure_future(left(request))
        try:
            await asyncio.wait((fetching, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not fetching.done():
                # What comes from now on is not for somebody who has gone.
                raise ClientDisconnect
            return self._told(fetching.result())
        finally:
            fetching.cancel()
            leaving.cancel()

    async def take_back(self, request: Request) -> Response:
        self._check_known(request)
        agent = self._agent(request)
        message_id = request.path_params["message_id"]
        sender = agent or Sender(Party(USER))
        return self._told([await self._service.post.take_back(sender, message_id, is_any=agent is None)])

    async def listing(self, request: Request) -> Response:
        query, service = request.query_params, self._service
        if unknown := sorted(set(query) - set(_FILTERS)):
            raise AgtmuxError(
                ErrorCode.USAGE, f"there is no filter {unknown[0][:40]!r}; known are {', '.join(_FILTERS)}"
            )
        limit = query.get("limit", "50")
        if not limit.isdecimal() or len(limit) > len(str(_MOST)) or not 1 <= int(limit) <= _MOST:
            raise AgtmuxError(ErrorCode.USAGE, f"limit may be 1 to {_MOST}")
        mailbox = service.post.mailbox
        if "message_id" in query:
            items = [await mailbox.find(query["message_id"])]
        else:
            since = Timestamp(service.clock.now() - parse_duration(query["since"])) if "since" in query else None
            wanted = Wanted(
                party=self._party(query["with"]) if "with" in query else None,
                receiver_name=self._party(query["to"]).name if "to" in query else None,
                status=_one_of(Status, query.get("status"), "status"),
                type=_one_of(MessageType, query.get("type"), "type"),
                correlation_id=query.get("correlation_id"),
                request_ref=query.get("request_ref"),
                since=since,
            )
            items = await mailbox.listing(wanted, int(limit))
        filters = {name: query[name] for name in _FILTERS[:-1] if name in query}
        return self._told(items, filters)

    def _party(self, text: str) -> Party:
        """An agent that is there, or whoever was called that."""
        try:
            return self._service.post.agent(self._service.directory.find(text)).party
        except AgtmuxError:
            return Party(text)

    async def _sender(self, request: Request) -> Sender:
        """An agent where the process that asks was started by one; the user where something shows that it is them."""
        asker = await self._service.askers.find(peer_of(request.scope))
        if asker.key is not None:
            return self._service.post.agent(asker.key)
        return Sender(Party(USER if asker.kind is AskerKind.USER else OUTSIDE))

    def _agent(self, request: Request) -> Sender | None:
        """The agent that asks; None for everybody else, who have what is for the user."""
        caller = self._caller(request)
        if caller.key is None or not self._service.world.records[caller.key].runtime.has_agent:
            return None
        return self._service.post.agent(caller.key)

    def _check_known(self, request: Request) -> None:
        """Raises for an agent of which nobody knows which it is: what is for the user, or another's, is not for it."""
        caller = self._caller(request)
        if caller.is_shared:
            raise AgtmuxError(ErrorCode.FORBIDDEN, f"who you are is not known: {caller.why_not}")

    def _caller(self, request: Request) -> Caller:
        return find_caller(self._service.world, self._service.registry, peer_of(request.scope))

    def _told(self, items: list[Message], filters: dict[str, str] | None = None) -> Response:
        content = {"filters": filters or {}, "summary": {"total": len(items)}, "items": [*map(shown, items)]}
        return as_json(envelope(self._service.clock.now(), content))


def shown(message: Message) -> MessageShown:
    over = message.settled_at
    return MessageShown(
        message_id=message.message_id,
        from_agent=message.sender.name,
        from_runtime=message.sender.runtime_id,
        to_agent=message.receiver.name,
        to_runtime=message.receiver.runtime_id,
        type=message.type,
        priority=message.priority,
        content=message.content,
        is_redacted=message.is_redacted,
        thinking=message.thinking,
        size=message.size,
        reply_to=message.reply_to,
        task_id=message.task_id,
        correlation_id=message.correlation_id,
        sent_at=format_timestamp(message.sent_at),
        expires_at=format_timestamp(message.expires_at),
        ttl_seconds=message.ttl_seconds,
        status=message.status,
        reason=message.reason,
        via=message.via,
        retry_count=max(message.attempts - 1, 0),
        action_id=message.action_id,
        settled_at=None if over is None else format_timestamp(over),
        duration_ms=None if over is None else (over - message.sent_at) / 1_000,
    )


def _one_of(kind: Any, text: str | None, name: str) -> Any:
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise AgtmuxError(ErrorCode.USAGE, f"no {name} is called {text[:40]!r}; known are {', '.join(kind)}") from None
