"""The tools that agents are offered: what each takes, gives and does. A new one is a row in `TOOLS`.

Results are types, and their schemas are made from them. What goes wrong is an AgtmuxError whose sentence says what to
do next, as for people.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from agtmux.agents.registry import Registry
from agtmux.bridge.caller import Caller
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import is_pane_id, parse_ref
from agtmux.domain.runtimes import NO_AGENT
from agtmux.observe import views
from agtmux.observe.filters import read_filters
from agtmux.observe.lookup import find_pane
from agtmux.observe.world import PaneKey, World

if TYPE_CHECKING:
    from agtmux.observe.fleet import Fleet

INSTRUCTIONS: Final = (
    "agtmux watches the coding agents in this user's tmux panes. Use list_agents to see who else works here, on which"
    " branch and whether they are busy, before you change files that others may work on, or when you are asked about"
    " another agent. Refs are only good for as long as that agent lives: list again rather than remember them."
)


class You(msgspec.Struct, frozen=True):
    """Who asks."""

    ref: str
    runtime_id: str
    agent_type: str


class Agent(msgspec.Struct, frozen=True):
    ref: Annotated[str, Meta(description="its name in other tools")]
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
        str, Meta(description='a ref or runtime_id from list_agents, a pane id such as "%3", or "you"', max_length=512)
    ]


class Desk:
    """What tools may ask of the daemon."""

    def __init__(self, world: World, registry: Registry, fleet: Fleet) -> None:
        self._world = world
        self._registry = registry
        self._fleet = fleet

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
        key = self._find(asked.agent.strip(), caller)
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

    def _find(self, text: str, caller: Caller) -> PaneKey:
        if text == "you":
            if caller.key is None:
                raise AgtmuxError(ErrorCode.NOT_FOUND, f"who you are is not known: {caller.why_not}")
            return caller.key
        if is_pane_id(text):
            agents = [key for key, record in self._world.records.items() if record.runtime.has_agent]
            meant = [key for key in agents if key[1] == text and key in self._world.panes]
            if len(meant) > 1:
                places = ", ".join(sorted(target for target, _ in meant))
                raise AgtmuxError(
                    ErrorCode.REF_AMBIGUOUS, f"{text} is on several targets ({places}); use a ref from list_agents"
                )
            if not meant:
                raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"no agent is in {text}; call list_agents to see who is")
            return meant[0]
        known = text.startswith(("pane:", "runtime:"))
        try:
            key = find_pane(self._world, parse_ref(text if known else f"{'pane' if '/' in text else 'runtime'}:{text}"))
        except AgtmuxError as error:
            raise AgtmuxError(
                error.code, f"no agent is called {text[:128]!r}; call list_agents to see who is"
            ) from None
        if self._world.records[key].runtime.agent_type == NO_AGENT:
            raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"no agent is in {text[:128]}; call list_agents to see who is")
        return key

    def _agent(self, item: views.PaneItem, caller: Caller) -> Agent:
        return Agent(
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
        )

    def _you(self, caller: Caller) -> You | None:
        item = None if caller.key is None else views.pane_item(self._world, caller.key)
        return None if item is None else You(item.ref, item.runtime_id, item.agent_type)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    takes: type[msgspec.Struct]
    gives: type[msgspec.Struct]
    # A method of the desk.
    does: Callable[[Desk, Caller, Any], Awaitable[msgspec.Struct]]
    # Whether calling it twice is the same as calling it once, or never.
    is_read_only: bool

    async def call(self, desk: Desk, caller: Caller, arguments: object) -> msgspec.Struct:
        try:
            asked = msgspec.convert(arguments if arguments is not None else {}, self.takes)
        except msgspec.ValidationError as error:
            raise AgtmuxError(ErrorCode.USAGE, f"{self.name} was called wrongly: {error}") from None
        return await self.does(desk, caller, asked)


TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "list_agents",
            "List agents",
            "List the coding agents in this user's tmux panes, on all of their machines, most urgent first: what each"
            " does, where, on which git branch, and what it asks its user. `you` says which of them you are.",
            ListAgents,
            AgentList,
            Desk.list_agents,
            is_read_only=True,
        ),
        Tool(
            "get_agent",
            "Get one agent",
            "Look at one coding agent: its state and why, its place, and the whole question if it waits for its user.",
            GetAgent,
            AgentDetails,
            Desk.get_agent,
            is_read_only=True,
        ),
    )
}


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of an object with all in its place: not every agent follows references."""
    _, found = msgspec.json.schema_components([kind], ref_template="#/{name}")
    # Their titles are our names for them.
    definitions = {name: {key: each for key, each in one.items() if key != "title"} for name, one in found.items()}
    return dict(_inlined(definitions[kind.__name__], definitions))


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        rest = {key: each for key, each in value.items() if key != "$ref"}
        return _inlined(definitions[value["$ref"].removeprefix("#/")] | rest, definitions)
    return {key: _inlined(each, definitions) for key, each in value.items()}
