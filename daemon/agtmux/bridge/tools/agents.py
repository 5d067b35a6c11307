"""Tools that tell which agents there are, what they do and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from agtmux.agents.registry import Registry
from agtmux.bridge.caller import Caller
from agtmux.bridge.tools.tool import Tool
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, TargetId
from agtmux.messages.directory import Directory
from agtmux.observe import views
from agtmux.observe.filters import read_filters
from agtmux.observe.world import PaneKey, World

if TYPE_CHECKING:
    from agtmux.observe.fleet import Fleet


class You(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    ref: str
    runtime_id: str
    agent_type: str


class Agent(msgspec.Struct, frozen=True):
    name: Annotated[str, Meta(description="what it is called here; other tools take it")]
    ref: Annotated[str, Meta(description="its place, which other tools take too")]
    runtime_id: str
    agent_type: str
    state: Annotated[
        str, Meta(description="running, waiting_approval, waiting_input, completed, idle, error or unknown")
    ]
    updated_at: Annotated[str, Meta(description="since when it is in that state")]
    asks: Annotated[str | None, Meta(description="what it waits for its user to answer, in a line")]
    title: str
    cwd: str
    branch: str | None
    target: Annotated[str, Meta(description="the machine or tmux server it is on")]
    is_you: bool
    worktree_path: Annotated[str | None, Meta(description="the top of the git work tree that it works in")] = None
    session_id: Annotated[str | None, Meta(description="what the agent itself calls its session, where known")] = None


class AgentList(msgspec.Struct, frozen=True):
    agents: list[Agent]
    you: You | None
    you_unknown: Annotated[str | None, Meta(description="why it is not known which of them you are")]
    unreachable: Annotated[list[str], Meta(description="targets that cannot be looked at; their agents may be missing")]


class Attention(msgspec.Struct, frozen=True):
    kind: str
    summary: str
    detail: str | None
    options: list[str]


class AgentDetails(msgspec.Struct, frozen=True):
    agent: Agent
    session_name: str
    window_id: str
    pane_id: str
    agent_version: str | None
    reason_code: str
    confidence: Annotated[str, Meta(description="how sure the state is: high, medium or low")]
    attention: Annotated[Attention | None, Meta(description="what it asks its user, in full")]
    evidence: Annotated[list[str], Meta(description="why the state is thought to be so, what decided first")]
    you: You | None
    you_unknown: str | None


class ListAgents(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    state: Annotated[str, Meta(description="only agents in this state, as running or waiting_approval")] = ""
    agent_type: Annotated[str, Meta(description="only agents of this type")] = ""
    target: Annotated[str, Meta(description="only agents on this target")] = ""
    needs_user: Annotated[bool, Meta(description="only agents that wait for their user")] = False


class GetAgent(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: Annotated[
        str,
        Meta(
            description='a name, ref or runtime_id from list_agents, a pane id such as "%3", or "you"', max_length=512
        ),
    ]


class AgentDesk:
    """Who is there."""

    def __init__(self, world: World, registry: Registry, fleet: Fleet, directory: Directory) -> None:
        self._world = world
        self._registry = registry
        self._fleet = fleet
        self._directory = directory

    async def list_agents(self, caller: Caller, asked: ListAgents) -> AgentList:
        named = {"state": asked.state, "agent": asked.agent_type, "target": asked.target}
        query = {name: value for name, value in named.items() if value}
        if asked.needs_user:
            query["needs_action"] = "1"
        filters = read_filters(query, self._world.targets.keys(), self._registry.agent_types)
        items = views.pane_items(self._world, filters)
        return AgentList(
            agents=[self._agent(item, caller) for item in items],
            you=self._you(caller),
            you_unknown=caller.why_not or None,
            unreachable=sorted(error["target"] for error in self._fleet.errors()),
        )

    async def get_agent(self, caller: Caller, asked: GetAgent) -> AgentDetails:
        key = self._found(asked.agent, caller)
        item = views.pane_item(self._world, key)
        if item is None:
            raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "it has just ended; call list_agents again")
        attention = item.attention
        return AgentDetails(
            agent=self._agent(item, caller),
            session_name=item.identity.session_name,
            window_id=item.identity.window_id,
            pane_id=item.identity.pane_id,
            agent_version=item.agent_version,
            reason_code=item.reason_code,
            confidence=item.confidence,
            attention=None
            if attention is None
            else Attention(attention.kind, attention.summary, attention.detail, attention.options),
            evidence=[
                f"{each.role}: {each.state} by {each.source}" + (f" ({each.note})" if each.note else "")
                for each in views.evidence_items(self._world.records[key])
            ],
            you=self._you(caller),
            you_unknown=caller.why_not or None,
        )

    def _found(self, text: str, caller: Caller) -> PaneKey:
        if text.strip() == "you" and caller.key is None:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"who you are is not known: {caller.why_not}")
        return self._directory.find(text, caller.key)

    def _agent(self, item: views.PaneItem, caller: Caller) -> Agent:
        return Agent(
            name=self._name(item),
            ref=item.ref,
            runtime_id=item.runtime_id,
            agent_type=item.agent_type,
            state=item.state,
            updated_at=item.updated_at,
            asks=None if item.attention is None else item.attention.summary,
            title=item.title,
            cwd=item.cwd,
            branch=item.branch,
            target=item.identity.target,
            is_you=caller.key == (item.identity.target, item.identity.pane_id),
            worktree_path=item.worktree_path,
            session_id=item.session_id,
        )

    def _name(self, item: views.PaneItem) -> str:
        key = (TargetId(item.identity.target), PaneId(item.identity.pane_id))
        return self._directory.name(self._world.records[key].runtime)

    def _you(self, caller: Caller) -> You | None:
        item = None if caller.key is None else views.pane_item(self._world, caller.key)
        return None if item is None else You(self._name(item), item.ref, item.runtime_id, item.agent_type)


TOOLS: Final = (
    Tool(
        "list_agents",
        "List agents",
        "List the coding agents in this user's tmux panes, on all of their machines, most urgent first: what each"
        " does, where, on which git branch, and what it asks its user. `you` says which of them you are.",
        ListAgents,
        AgentList,
        AgentDesk.list_agents,
        AgentDesk,
        is_read_only=True,
    ),
    Tool(
        "get_agent",
        "Get one agent",
        "Look at one coding agent: its state and why, its place, and the whole question if it waits for its user.",
        GetAgent,
        AgentDetails,
        AgentDesk.get_agent,
        AgentDesk,
        is_read_only=True,
    ),
)
