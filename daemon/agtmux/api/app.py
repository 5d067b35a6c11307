"""API v1: which request asks what of the service, and one shape for every answer that is an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from agtmux import __version__
from agtmux.actions.chats import recent
from agtmux.actions.output import PREVIEW_LINES, preview
from agtmux.api.actions import ACTIONS, LaunchAsked, action_json, answer_json, launched_json, read_query
from agtmux.api.boarding import Board
from agtmux.api.bodies import MAX_TEXT_BYTES, as_json, decoded, envelope, left, read_body
from agtmux.api.chat import ChatSocket
from agtmux.api.conversations import ConversationsApi
from agtmux.api.messages import MessagesApi
from agtmux.api.protocol import ACTOR, peer_of
from agtmux.api.socket import BridgeSocket
from agtmux.api.teams import TeamsApi
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.domain.timestamps import format_timestamp
from agtmux.engine.apply import Outcome
from agtmux.observe import views
from agtmux.observe.feeds import Reach, View
from agtmux.observe.filters import GroupBy, Subject, read_flag, read_scope, read_subject
from agtmux.observe.filters import Scope as Listed
from agtmux.observe.intake import HOOK_TYPE
from agtmux.observe.lookup import resolve
from agtmux.observe.submissions import Receipt
from agtmux.probe.processes import lineage
from agtmux.service import Service
from agtmux.worktrees import launcher, stopper
from agtmux.worktrees.items import worktree_item
from agtmux.worktrees.trees import MOST_BYTES as MOST_DIFF_BYTES

_log = logging.getLogger(__name__)

T = TypeVar("T")

# What a page may ask for if there is a route of that name.
_FEATURES: Final = ("conversations",)
# What says nothing about agents, or comes from them, does not wait for the first look at every target.
_AT_ONCE: Final = frozenset(
    {"/v1/health", "/v1/events", "/v1/decisions/wait", "/v1/targets", "/v1/here", "/v1/board", "/v1/ws", "/v1/chat"}
)
_JSON_LINES: Final = "application/x-ndjson"
_HTTP_ERRORS: Final = {404: ErrorCode.NOT_FOUND, 405: ErrorCode.NOT_FOUND}


class NewTarget(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    kind: TargetKind = TargetKind.LOCAL
    ssh_target: str = ""
    tmux_socket: str = ""
    ephemeral: bool = False


class WaitAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    event_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class HooksAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    action: Literal["install", "uninstall", "status"]
    agents: list[str] = []
    target: str = HOST
    # The caller's PATH: which version of an agent is started may depend on it. It is about this machine alone.
    search_path: str = ""


class McpAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    action: Literal["register", "unregister", "status"]
    agents: list[str] = []
    target: str = HOST
    search_path: str = ""
    # Not somebody's word but what comes with starting agtmux, which settings may forbid.
    automatic: bool = False


def build_app(service: Service) -> App:
    return App(service)


class App:
    """The routes, and the one place where what went wrong becomes an answer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._api = api = _Api(service)
        messages, teams, conversations = MessagesApi(service), TeamsApi(service), ConversationsApi(service)
        self.board = Board(service, self, api.answer_to)
        self._router = Router(
            [
                Route("/v1/events", _Endpoint(api.events), methods=["POST"]),
                Route("/v1/decisions/wait", _Endpoint(api.wait_for_decision), methods=["POST"]),
                Route("/v1/hooks", _Endpoint(api.hooks), methods=["POST"]),
                Route("/v1/mcp", _Endpoint(api.mcp), methods=["POST"]),
                Route("/v1/actions", _Endpoint(api.actions), methods=["GET"]),
                *(
                    Route(f"/v1/actions/{name}", _Endpoint(partial(api.act, name)), methods=["POST"])
                    for name in ACTIONS
                ),
                Route("/v1/actions/launch", _Endpoint(api.launch), methods=["POST"]),
                Route("/v1/worktrees", _Endpoint(api.worktrees), methods=["GET"]),
                Route("/v1/worktrees/diff", _Endpoint(api.worktree_diff), methods=["GET"]),
                Route("/v1/here", _Endpoint(api.here), methods=["GET"]),
                Route("/v1/health", _Endpoint(api.health), methods=["GET"]),
                Route("/v1/panes", _Endpoint(api.panes), methods=["GET"]),
                Route("/v1/preview", _Endpoint(api.preview), methods=["GET"]),
                Route("/v1/windows", _Endpoint(api.windows), methods=["GET"]),
                Route("/v1/sessions", _Endpoint(api.sessions), methods=["GET"]),
                Route("/v1/messages", _Endpoint(messages.listing), methods=["GET"]),
                Route("/v1/messages", _Endpoint(messages.send), methods=["POST"]),
                Route("/v1/inbox", _Endpoint(messages.fetch), methods=["POST"]),
                Route("/v1/messages/{message_id}", _Endpoint(messages.take_back), methods=["DELETE"]),
                Route("/v1/teams", _Endpoint(teams.listing), methods=["GET"]),
                Route("/v1/teams", _Endpoint(teams.bring), methods=["POST"]),
                Route("/v1/teams/{name}/launch", _Endpoint(teams.launch), methods=["POST"]),
                Route("/v1/teams/{name}", _Endpoint(teams.forget), methods=["DELETE"]),
                Route("/v1/conversations", _Endpoint(conversations.listing), methods=["GET"]),
                Route("/v1/conversations/markdown", _Endpoint(conversations.markdown), methods=["POST"]),
                Route("/v1/conversations/messages", _Endpoint(conversations.messages), methods=["GET"]),
                Route("/v1/targets", _Endpoint(api.targets), methods=["GET"]),
                Route("/v1/targets", _Endpoint(api.add_target), methods=["POST"]),
                Route("/v1/targets/{name}/connect", _Endpoint(api.connect_target), methods=["POST"]),
                Route("/v1/targets/{name}", _Endpoint(api.remove_target), methods=["DELETE"]),
                Route("/v1/doctor", _Endpoint(api.doctor), methods=["GET"]),
                Route("/v1/explain", _Endpoint(api.explain), methods=["GET"]),
                Route("/v1/watch", _Endpoint(api.watch), methods=["GET"]),
                Route("/v1/board", _Endpoint(self.board.status), methods=["GET"]),
                Route("/v1/board", _Endpoint(self.board.change), methods=["POST"]),
                WebSocketRoute("/v1/ws", BridgeSocket(service)),
                WebSocketRoute("/v1/chat", ChatSocket(service)),
                WebSocketRoute("/v1/live", _Socket(self.board.live)),
            ],
            # A path with a slash too many is not found, like any other.
            redirect_slashes=False,
        )
        # A router tries its routes one by one; most requests are for a path that is one word for word.
        self._by_path = {
            (method, route.path): route.app
            for route in self._router.routes
            if isinstance(route, Route) and not route.param_convertors
            for method in route.methods or ()
        }
        known = {route.path for route in self._router.routes if isinstance(route, Route)}
        self.board.features = [name for name in _FEATURES if f"/v1/{name}" in known]

    @property
    def routes(self) -> list[BaseRoute]:
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # With an app in its scope, the router raises for what it does not know instead of answering by itself.
        scope["app"] = self
        answer = self._by_path.get((scope.get("method", ""), scope["path"]), self._router)
        if scope["path"] not in _AT_ONCE:
            await self._service.fleet.first_answers()
        try:
            await answer(scope, receive, send)
        except ClientDisconnect:
            # Whoever asked has left, or was refused by the connection already.
            return
        except Exception as error:
            await self._api.answer_to(error, scope)(scope, receive, send)


class _Endpoint:
    """A function of a request as Starlette's routes take it without wrapping it into handlers of their own."""

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._answer(Request(scope, receive)))(scope, receive, send)


class _Socket:
    """A function as Starlette's routes take a WebSocket's endpoint without wrapping it."""

    def __init__(self, serve: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)


class _Api:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def health(self, request: Request) -> Response:
        return as_json(self._service.health())

    async def events(self, request: Request) -> Response:
        body = await read_body(request)
        if request.headers.get("content-type", "").startswith(HOOK_TYPE):
            receipt = (await self._service.take([self._service.intake.hook(body, lambda: _lineage(request))]))[0]
            return as_json(self._envelope(_told(receipt)))
        taken, is_batch = self._service.intake.envelopes(body)
        receipts = iter(await self._service.take([each for each in taken if isinstance(each, Event)]))
        results = [each if isinstance(each, AgtmuxError) else _outcome(next(receipts)) for each in taken]
        if not is_batch:
            only = results[0]
            if isinstance(only, AgtmuxError):
                raise only
            return as_json(self._envelope(only))
        for error in results:
            if isinstance(error, AgtmuxError):
                self._count(error)
        told = [each.as_json() | {"status": "refused"} if isinstance(each, AgtmuxError) else each for each in results]
        return as_json(self._envelope({"results": told}))

    async def wait_for_decision(self, request: Request) -> Response:
        asked = decoded(await read_body(request), WaitAsked)
        answer = await self._service.decisions.wait(asked.event_id, left(request))
        decision = None if answer.allow is None else "allow" if answer.allow else "deny"
        content = {"event_id": asked.event_id, "decision": decision, "answer": answer.text, "over": answer.over}
        return as_json(self._envelope(content))

    async def panes(self, request: Request) -> Response:
        return as_json(self._listing(Listed.PANES, request))

    async def windows(self, request: Request) -> Response:
        return as_json(self._listing(Listed.WINDOWS, request))

    async def sessions(self, request: Request) -> Response:
        group_by = request.query_params.get("group_by", GroupBy.TARGET_SESSION.value)
        return as_json(self._listing(Listed.SESSIONS, request) | {"group_by": group_by})

    async def targets(self, request: Request) -> Response:
        items = [self._target_item(target) for target in self._service.world.targets.values()]
        return as_json(self._envelope({"filters": {}, "summary": {"total": len(items)}, "items": items}))

    async def hooks(self, request: Request) -> Response:
        asked = decoded(await read_body(request), HooksAsked)
        items = await self._service.hooks.change(asked.action, asked.agents, asked.target, asked.search_path)
        return as_json(self._envelope({"action": asked.action, "target": asked.target, "items": items}))

    async def mcp(self, request: Request) -> Response:
        asked = decoded(await read_body(request), McpAsked)
        items = await self._service.registrar.change(
            asked.action, asked.agents, asked.target, asked.search_path, automatic=asked.automatic
        )
        consent = await asyncio.to_thread(self._service.registrar.consent.about)
        told = {"action": asked.action, "target": asked.target, "items": items, "consent": consent}
        return as_json(self._envelope(told))

    async def doctor(self, request: Request) -> Response:
        query = request.query_params
        if unknown := sorted(query.keys() - {"target", "tmux_socket", "client_version"}):
            raise AgtmuxError(ErrorCode.USAGE, f"doctor takes no {unknown[0][:40]!r}")
        client_version = query.get("client_version", __version__)
        return as_json(await self._service.doctor(query.get("target"), query.get("tmux_socket", ""), client_version))

    async def act(self, action_type: str, request: Request) -> Response:
        asked = decoded(await read_body(request, MAX_TEXT_BYTES), ACTIONS[action_type])
        asked = msgspec.structs.replace(asked, actor=request.scope.get(ACTOR, asked.actor))
        service = self._service
        try:
            meant = asked.as_asked(action_type, service.world)
        except AgtmuxError as error:
            # The pane may be gone by its own doing.
            earlier = await service.ledger.requested(action_type, asked.request_ref)
            if error.code is not ErrorCode.REF_NOT_FOUND or earlier is None:
                raise
            meant = asked.as_asked(action_type, service.world, (earlier.target_id, earlier.pane_id))
        if action_type == stopper.ACTION:
            by = await service.by(peer_of(request.scope))
            return as_json(self._envelope(answer_json(await service.stopper.stop(meant, by))))
        return as_json(self._envelope(answer_json(await service.desk.act(meant))))

    async def launch(self, request: Request) -> Response:
        asked = decoded(await read_body(request, MAX_TEXT_BYTES), LaunchAsked)
        order, by = asked.as_order(), await self._service.by(peer_of(request.scope))
        launched = await self._service.launcher.launch(asked.request_ref, order, by, asked.actor)
        return as_json(self._envelope(launched_json(launched)))

    async def worktrees(self, request: Request) -> Response:
        """The work trees of the repositories that agents work in."""
        query, service = request.query_params, self._service
        if unknown := sorted(query.keys() - {"target"}):
            raise AgtmuxError(ErrorCode.USAGE, f"there is no filter {unknown[0][:40]!r}; known is target")
        target = query.get("target")
        if target is not None and target not in service.world.targets:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {target[:64]!r}")
        found, errors = await service.trees.survey(target)
        latest = await service.conversations.archive.latest()
        items = [worktree_item(service.world, service.directory, each, latest) for each in found]
        filters = {} if target is None else {"target": target}
        told = {"filters": filters, "summary": {"total": len(items)}, "partial": bool(errors), "target_errors": errors}
        return as_json(self._envelope({**told, "items": items}))

    async def worktree_diff(self, request: Request) -> Response:
        """What is not committed in one of those work trees, as text."""
        query, service = request.query_params, self._service
        if unknown := sorted(query.keys() - {"target", "path", "file"}):
            raise AgtmuxError(ErrorCode.USAGE, f"there is no {unknown[0][:40]!r}; known are target, path and file")
        target, path = query.get("target", HOST), query.get("path", "")
        if not path:
            raise AgtmuxError(ErrorCode.USAGE, "which work tree? Its path is asked for, as /v1/worktrees tells it")
        if target not in service.world.targets:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {target[:64]!r}")
        found, errors = await service.trees.survey(target)
        if not any(each.worktree.path == path for each in found):
            if errors:
                raise AgtmuxError(ErrorCode(errors[0]["code"]), errors[0]["message"])
            raise AgtmuxError(ErrorCode.NOT_FOUND, "no agent works in the repository of that work tree")
        diff = await service.trees.diff_at(TargetId(target), path, query.get("file", ""), MOST_DIFF_BYTES)
        told = {"target": target, "path": diff.top, "branch": diff.branch or None}
        return as_json(self._envelope({**told, "diff": diff.diff, "is_cut": diff.is_cut, "untracked": diff.untracked}))

    async def here(self, request: Request) -> Response:
        """Which target watches the tmux server that a caller is in, by its $TMUX."""
        socket_path = request.query_params.get("tmux", "").rsplit(",", 2)[0]
        target = self._service.fleet.local_target_at(socket_path) if socket_path else None
        return as_json(self._envelope({"target": target}))

    async def preview(self, request: Request) -> Response:
        """A look at a pane's last lines. It is no action, and nothing is written down."""
        key = resolve(self._service.world, request.query_params.get("ref", ""))
        record = self._service.world.records[key]
        if (session := self._service.chats.of(record)) is not None:
            text = await recent(session, PREVIEW_LINES)
        else:
            record, text = await preview(self._service.fleet, self._service.world, key)
        return as_json(self._envelope({"runtime_id": record.runtime.runtime_id, "output": text}))

    async def actions(self, request: Request) -> Response:
        service, query = self._service, request.query_params
        known = sorted([*service.desk.action_types, launcher.ACTION])
        action_id, wanted, limit, filters = read_query(query, known, service.clock.now(), service.world)
        if action_id is None:
            items = [action_json(each) for each in await service.history.actions(wanted, limit)]
        else:
            action = await service.history.action(action_id)
            items = [action_json(action) | {"events": await service.history.events(action)}]
        return as_json(self._envelope({"filters": filters, "summary": {"total": len(items)}, "items": items}))

    async def explain(self, request: Request) -> Response:
        key = resolve(self._service.world, request.query_params.get("ref", ""))
        item = views.pane_item(self._service.world, key)
        record = self._service.world.records[key]
        waiting = self._service.decisions.waiting(record.runtime.runtime_id)
        hook = None if waiting is None else {"event_id": waiting.event_id, "since": format_timestamp(waiting.since)}
        evidence = views.evidence_items(record)
        return as_json(self._envelope({"item": item, "evidence": evidence, "waiting_hook": hook}))

    def _listing(self, scope: Listed, request: Request) -> dict[str, Any]:
        """What was asked for. A target that fails costs the others nothing."""
        service = self._service
        subject = self._subject(scope, request.query_params)
        view = View(service.world, subject)
        reach = Reach.of(service.world, subject, service.fleet.listing_errors())
        return self._envelope(
            {
                "filters": subject.filters.as_json(),
                "summary": view.summary(),
                **reach.as_json(),
                "items": view.items(),
            }
        )

    def _subject(self, scope: Listed, query: Mapping[str, str]) -> Subject:
        return read_subject(scope, query, self._service.world.targets.keys(), self._service.registry.agent_types)

    async def add_target(self, request: Request) -> Response:
        asked = decoded(await read_body(request), NewTarget)
        target = await self._service.fleet.add(
            Target(
                TargetId(asked.name),
                asked.kind,
                connection_ref=asked.ssh_target,
                tmux_socket=asked.tmux_socket,
                is_ephemeral=asked.ephemeral,
            )
        )
        return as_json(self._envelope({"item": self._target_item(target)}))

    def _target_item(self, target: Target) -> views.TargetItem:
        fleet = self._service.fleet
        error = fleet.error_of(target.target_id)
        warning = fleet.excess_of(target.target_id) or fleet.warning_of(target.target_id)
        return views.target_item(self._service.world, target, error, warning)

    async def connect_target(self, request: Request) -> Response:
        target = await self._service.fleet.connect(request.path_params["name"])
        return as_json(self._envelope({"item": self._target_item(target)}))

    async def remove_target(self, request: Request) -> Response:
        warnings = await self._service.fleet.remove(request.path_params["name"])
        return as_json(self._envelope({"removed": request.path_params["name"], "warnings": warnings}))

    async def watch(self, request: Request) -> Response:
        query = dict(request.query_params)
        scope, cursor = read_scope(query.pop("scope", Listed.PANES)), query.pop("cursor", None)
        is_once = read_flag("once", query)
        query.pop("once", None)
        subject = self._subject(scope, query)
        if request.method == "HEAD":
            return Response(media_type=_JSON_LINES)
        hub = self._service.hub
        if is_once:
            return Response(hub.once(subject, cursor), media_type=_JSON_LINES)
        return StreamingResponse(hub.watch(subject, cursor), media_type=_JSON_LINES)

    def answer_to(self, error: Exception, scope: Scope) -> Response:
        asked = f"{scope.get('method', scope['type'])} {scope['path']}"
        status = None
        if isinstance(error, HTTPException):
            status = error.status_code
            error = AgtmuxError(_HTTP_ERRORS.get(status, ErrorCode.USAGE), f"there is no {asked}")
        elif not isinstance(error, AgtmuxError):
            _log.error("%s failed", asked, exc_info=error)
            error = AgtmuxError(ErrorCode.INTERNAL, "agtmuxd failed at this; its log says more")
        self._count(error)
        return as_json(error.as_json(), status or error.http_status)

    def _count(self, error: AgtmuxError) -> None:
        self._service.refusals[error.code] += 1

    def _envelope(self, content: dict[str, Any]) -> dict[str, Any]:
        return envelope(self._service.clock.now(), content)


def _lineage(request: Request) -> list[int] | None:
    pid = peer_of(request.scope).pid
    return None if pid is None else lineage(pid)


def _outcome(receipt: Receipt) -> dict[str, Any] | AgtmuxError:
    if receipt.status == Outcome.STALE_RUNTIME:
        return AgtmuxError(ErrorCode.RUNTIME_STALE, "that runtime has ended or never was; list the panes again")
    return _told(receipt)


def _told(receipt: Receipt) -> dict[str, Any]:
    return {
        "event_id": receipt.event_id,
        "status": receipt.status,
        "runtime_id": receipt.runtime_id,
        "reason_code": receipt.reason_code,
    }
