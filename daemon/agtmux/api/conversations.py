"""`/v1/conversations`: what was asked and answered, by pane, by work tree, or wherever certain words are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from agtmux.api.bodies import as_json, decoded, envelope, left, read_body
from agtmux.api.shapes import Answer
from agtmux.conversations.archive import Conversation, Wanted
from agtmux.conversations.message import Message, Role, Source
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.timestamps import format_timestamp
from agtmux.observe import views
from agtmux.observe.lookup import find_pane, resolve_ref
from agtmux.service import Service

_MOST: Final = 1_000
_USUAL: Final = 50
# Seconds.
_LONGEST_WAIT: Final = 60
_LISTED: Final = ("ref", "worktree", "target", "limit")
_SAID: Final = ("conversation", "ref", "worktree", "target", "search", "after", "before", "wait", "limit")


class ConversationShown(msgspec.Struct, frozen=True, kw_only=True):
    conversation_id: str
    target: str
    agent_type: str
    # As the agent calls it.
    session_id: str | None
    runtime_id: str | None
    # Of the pane that it goes on in, and what the agent there is called.
    ref: str | None
    name: str | None
    worktree: str | None
    branch: str | None
    # The first prompt, in a line.
    title: str
    started_at: str
    updated_at: str
    messages: int
    source: Source


class MessageSaid(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    # Grows over all conversations: what `after` and `before` mean.
    seq: int
    conversation_id: str
    target: str
    agent_type: str
    ref: str | None
    runtime_id: str | None
    role: Role
    content: str
    summary: str
    at: str
    request_id: str | None
    source: Source
    # It was longer than what is kept.
    is_cut: bool


class ConversationFilters(msgspec.Struct, frozen=True):
    ref: str | UnsetType = UNSET
    worktree: str | UnsetType = UNSET
    target: str | UnsetType = UNSET


class SaidFilters(msgspec.Struct, frozen=True):
    conversation: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    worktree: str | UnsetType = UNSET
    target: str | UnsetType = UNSET
    search: str | UnsetType = UNSET
    after: str | UnsetType = UNSET
    before: str | UnsetType = UNSET


class Returned(msgspec.Struct, frozen=True):
    # Of those in this answer.
    total: int


class ConversationListing(Answer, frozen=True, kw_only=True):
    filters: ConversationFilters
    summary: Returned
    # Whether there are more than were asked for.
    has_more: bool
    items: list[ConversationShown]


class SaidListing(Answer, frozen=True, kw_only=True):
    filters: SaidFilters
    summary: Returned
    has_more: bool
    items: list[MessageSaid]


class MarkdownAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One of the first three; of a work tree all of its conversations."""

    conversation: str = ""
    ref: str = ""
    worktree: str = ""
    target: str | None = None


class LogShown(msgspec.Struct, frozen=True):
    conversation_id: str
    target: str
    # The file that was written.
    path: str
    messages: int


class MarkdownAnswer(Answer, frozen=True, kw_only=True):
    summary: Returned
    items: list[LogShown]


class ConversationsApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def listing(self, request: Request) -> Response:
        query = _checked(request.query_params, _LISTED)
        limit = _number(query, "limit", _USUAL)
        found = await self._service.conversations.archive.listing(
            self._runtime(query), query.get("worktree"), query.get("target"), limit + 1
        )
        items = [self._conversation(*each) for each in found[:limit]]
        return self._told(query, items, has_more=len(found) > limit)

    async def messages(self, request: Request) -> Response:
        query = _checked(request.query_params, _SAID)
        limit = _number(query, "limit", _USUAL)
        wanted = Wanted(
            conversation_id=query.get("conversation"),
            runtime_id=self._runtime(query),
            target_id=TargetId(query["target"]) if "target" in query else None,
            worktree=query.get("worktree"),
            search=query.get("search"),
            after=_number(query, "after", 0, 2**63 - 1) if "after" in query else None,
            before=_number(query, "before", 0, 2**63 - 1) if "before" in query else None,
        )
        found = await self._found(request, wanted, limit + 1, _number(query, "wait", 0, _LONGEST_WAIT))
        has_more = len(found) > limit
        # The one too many is at the far end of what was asked for.
        kept = found[:limit] if wanted.after is not None or not has_more else found[-limit:]
        return self._told(query, [said(self._service, each) for each in kept], has_more=has_more)

    async def markdown(self, request: Request) -> Response:
        asked = decoded(await read_body(request), MarkdownAsked)
        if sum(map(bool, (asked.conversation, asked.ref, asked.worktree))) != 1:
            raise AgtmuxError(ErrorCode.USAGE, "name one of conversation, ref and worktree")
        conversations = self._service.conversations
        found: list[Conversation] = []
        if asked.conversation:
            one = await conversations.archive.find(asked.conversation)
            found += [] if one is None else [one]
        else:
            runtime_id = self._runtime({"ref": asked.ref}) if asked.ref else None
            listed = await conversations.archive.listing(runtime_id, asked.worktree or None, asked.target, _MOST)
            found += [each for each, _ in listed]
        if not found:
            raise AgtmuxError(ErrorCode.NOT_FOUND, "nothing was said there that could be written down")
        items = [LogShown(each.conversation_id, each.target_id, *await conversations.keep(each)) for each in found]
        content = {"summary": {"total": len(items)}, "items": items}
        return as_json(envelope(self._service.clock.now(), content))

    async def _found(self, request: Request, wanted: Wanted, limit: int, wait: int) -> list[Message]:
        """Where there is nothing yet, and somebody waits for it, the next thing that is said."""
        conversations = self._service.conversations
        gone = asyncio.ensure_future(left(request))
        try:
            until = asyncio.get_running_loop().time() + wait
            while True:
                news = conversations.news
                found = await conversations.archive.messages(wanted, limit)
                rest = until - asyncio.get_running_loop().time()
                if found or rest <= 0 or gone.done() or conversations.is_closed:
                    return found
                waiting = asyncio.ensure_future(news.wait())
                await asyncio.wait((waiting, gone), timeout=rest, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            gone.cancel()

    def _runtime(self, query: Mapping[str, str]) -> RuntimeId | None:
        """Who is meant: an agent that is there, or, by its id, one that was."""
        if "ref" not in query:
            return None
        ref = resolve_ref(self._service.world, query["ref"])
        runtime_id = getattr(ref, "runtime_id", None)
        if runtime_id is not None:
            return RuntimeId(runtime_id)
        world = self._service.world
        return world.records[find_pane(world, ref)].runtime.runtime_id

    def _conversation(self, found: Conversation, messages: int) -> ConversationShown:
        service = self._service
        key = service.world.by_runtime.get(found.runtime_id or RuntimeId(""))
        return ConversationShown(
            conversation_id=found.conversation_id,
            target=found.target_id,
            agent_type=found.agent_type,
            session_id=found.session_id,
            runtime_id=found.runtime_id,
            ref=_ref(service, found.runtime_id),
            name=None if key is None else service.directory.name(service.world.records[key].runtime),
            worktree=found.worktree,
            branch=found.branch or None,
            title=found.title,
            started_at=format_timestamp(found.started_at),
            updated_at=format_timestamp(found.updated_at),
            messages=messages,
            source=found.source,
        )

    def _told(self, query: Mapping[str, str], items: list[Any], *, has_more: bool) -> Response:
        filters = {name: value for name, value in query.items() if name not in ("limit", "wait")}
        content = {"filters": filters, "summary": {"total": len(items)}, "has_more": has_more, "items": items}
        return as_json(envelope(self._service.clock.now(), content))


def said(service: Service, message: Message) -> MessageSaid:
    """A message as it is shown."""
    return MessageSaid(
        message_id=message.message_id,
        seq=message.seq,
        conversation_id=message.conversation_id,
        target=message.target_id,
        agent_type=message.agent_type,
        ref=_ref(service, message.runtime_id),
        runtime_id=message.runtime_id,
        role=message.role,
        content=message.content,
        summary=message.summary,
        at=format_timestamp(message.at),
        request_id=message.request_id,
        source=message.source,
        is_cut=message.is_cut,
    )


def _ref(service: Service, runtime_id: RuntimeId | None) -> str | None:
    key = None if runtime_id is None else service.world.by_runtime.get(runtime_id)
    item = None if key is None else views.pane_item(service.world, key)
    return None if item is None else item.ref


def _checked(query: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    if unknown := sorted(set(query) - set(known)):
        raise AgtmuxError(ErrorCode.USAGE, f"there is no filter {unknown[0][:40]!r}; known are {', '.join(known)}")
    return dict(query)


def _number(query: Mapping[str, str], name: str, usual: int, most: int = _MOST) -> int:
    text = query.get(name, str(usual))
    least: Literal[0, 1] = 1 if name == "limit" else 0
    if not text.isdecimal() or len(text) > 19 or not least <= int(text) <= most:
        raise AgtmuxError(ErrorCode.USAGE, f"{name} may be {least} to {most}")
    return int(text)
