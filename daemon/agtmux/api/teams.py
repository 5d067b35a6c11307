"""`/v1/teams`: several agents that were described in one file, brought up role by role. Only its user can."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agtmux.api.actions import launched_json
from agtmux.api.bodies import as_json, decoded, envelope, read_body
from agtmux.api.protocol import peer_of
from agtmux.api.shapes import Answer, Total
from agtmux.bridge.homes import tell_home, untell_home
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import RuntimeId
from agtmux.messages.team import TeamSheet, read_sheet
from agtmux.observe import views
from agtmux.service import Service
from agtmux.worktrees.order import THE_USER
from agtmux.worktrees.teaming import home_of, order_of


class RoleLaunch(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    role: Annotated[str, msgspec.Meta(max_length=32)]
    request_ref: str
    actor: Annotated[str, msgspec.Meta(max_length=64)] = ""


class RoleShown(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    agent_type: str
    peers: list[str]
    is_isolated: bool
    # None where nobody is there.
    ref: str | None
    runtime_id: str | None
    state: str | None
    asks: str | None
    # Confirmed once it was seen to end a turn since it was told what it is for; None where nobody is there.
    confirmation: Literal["confirmed", "unconfirmed"] | None
    # Messages that wait for it.
    waiting: int


class TaskShown(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    task_id: str | None
    from_agent: str
    to_agent: str
    status: str
    is_over: bool


class TeamShown(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    folder: str
    roles: list[RoleShown]
    # Of the last day, the latest first.
    tasks: list[TaskShown]


class NoFilters(msgspec.Struct, frozen=True):
    pass


class TeamsAnswer(Answer, frozen=True, kw_only=True):
    filters: NoFilters
    summary: Total
    items: list[TeamShown]


class TeamsApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def listing(self, request: Request) -> Response:
        return self._told([await self._shown(sheet) for sheet in self._service.teams.sheets])

    async def bring(self, request: Request) -> Response:
        sheet = read_sheet(decoded(await read_body(request), dict[str, Any]))
        await self._check_user(request)
        for name in sheet.roles:
            order_of(sheet, name, self._service.registry, self._service.homes).checked(self._service.registry)
        await self._service.teams.bring(sheet)
        return self._told([await self._shown(sheet)])

    async def launch(self, request: Request) -> Response:
        service = self._service
        asked = decoded(await read_body(request), RoleLaunch)
        await self._check_user(request)
        sheet = service.teams.sheet(request.path_params["name"])
        order = order_of(sheet, asked.role, service.registry, service.homes)
        if sheet.roles[asked.role].isolated:
            environ = home_of(sheet, asked.role, service.registry, service.homes)
            await asyncio.to_thread(tell_home, service.registry, order.agent, environ, service.homes / "backups")
        launched = await service.launcher.launch(asked.request_ref, order, THE_USER, asked.actor)
        return as_json(envelope(service.clock.now(), launched_json(launched)))

    async def forget(self, request: Request) -> Response:
        """It is no team any more. Its members are its user's to stop, and are asked to by the command."""
        await self._check_user(request)
        service = self._service
        sheet = service.teams.sheet(request.path_params["name"])
        await service.teams.forget(sheet.name)
        for name, role in sheet.roles.items():
            if role.isolated:
                environ = home_of(sheet, name, service.registry, service.homes)
                await asyncio.to_thread(untell_home, service.registry, role.agent, environ, service.homes / "backups")
        return self._told([await self._shown(sheet)])

    async def _check_user(self, request: Request) -> None:
        by = await self._service.by(peer_of(request.scope))
        if not by.is_user:
            raise AgtmuxError(
                ErrorCode.FORBIDDEN, by.refusal("teams are the user's to bring up and down, and no agent's")
            )

    def _confirmation(self, runtime_id: RuntimeId | None) -> Literal["confirmed", "unconfirmed"] | None:
        if runtime_id is None:
            return None
        return "confirmed" if self._service.directory.is_confirmed(runtime_id) else "unconfirmed"

    async def _shown(self, sheet: TeamSheet) -> TeamShown:
        service = self._service
        members = service.teams.members(sheet.name)
        roles = []
        for name, role in sheet.roles.items():
            key = members.get(name)
            item = None if key is None else views.pane_item(service.world, key)
            runtime_id = None if key is None else service.world.records[key].runtime.runtime_id
            roles.append(
                RoleShown(
                    role=name,
                    agent_type=role.agent,
                    peers=list(sheet.role(name).peers or ()),
                    is_isolated=role.isolated,
                    ref=None if item is None else item.ref,
                    runtime_id=runtime_id,
                    state=None if item is None else item.state,
                    asks=None if item is None or item.attention is None else item.attention.summary,
                    confirmation=self._confirmation(runtime_id),
                    waiting=0 if runtime_id is None else service.postman.waiting(runtime_id),
                )
            )
        tasks = [
            TaskShown(
                message_id=task.request.message_id,
                task_id=task.request.task_id,
                from_agent=task.request.sender.name,
                to_agent=task.request.receiver.name,
                status=task.request.status,
                is_over=task.is_over,
            )
            for task in await service.teams.tasks(sheet.name)
        ]
        return TeamShown(name=sheet.name, folder=sheet.folder, roles=roles, tasks=tasks)

    def _told(self, items: list[TeamShown]) -> Response:
        content = {"filters": {}, "summary": {"total": len(items)}, "items": items}
        return as_json(envelope(self._service.clock.now(), content))
