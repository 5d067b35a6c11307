"""The bridge through which agents see each other: what stands under its name in each agent's settings."""

from __future__ import annotations

from collections.abc import Iterator

from agtmux.agents.mcp.plan import Entry
from agtmux.doctor.facts import AgentBridge, Facts, NoDaemon
from agtmux.doctor.findings import Finding, Level
from agtmux.domain.panes import HOST


def check_bridge(facts: Facts) -> Iterator[Finding]:
    for each in facts.bridges if facts.target in (None, HOST) else ():
        found = _without_daemon(each) if isinstance(facts.daemon, NoDaemon) else _entry(each, facts)
        if found is not None:
            yield found


def _entry(found: AgentBridge, facts: Facts) -> Finding | None:
    agent, path, register = found.agent, found.path, _register(found)
    if found.error is not None:
        return Finding(Level.PROBLEM, "bridge_unreadable", found.error, f"see to that, then: {register}", agent=agent)
    match found.entry:
        case Entry.REGISTERED:
            return Finding(Level.OK, "bridge_registered", f"the bridge is in {path}", agent=agent)
        case Entry.ABSENT if not facts.wants_bridge:
            return Finding(Level.OK, "bridge_unwanted", f"the bridge is not in {path}, as you have set it", agent=agent)
        case Entry.ABSENT:
            message = f"the bridge is not in {path}, so it sees no other agents"
            return Finding(Level.NOTE, "bridge_absent", message, register, agent=agent)
        case Entry.OUTDATED:
            message = f"{path} names another bridge than this agtmux has"
            return Finding(Level.WARNING, "bridge_outdated", message, register, agent=agent)
        case Entry.ABANDONED:
            message = f"{path} names the bridge to an agtmux that is gone ({found.socket})"
            return Finding(Level.WARNING, "bridge_abandoned", message, register, agent=agent)
        case Entry.OTHER_INSTANCE:
            message = f"{path} names the bridge to another agtmux, which answers on {found.socket}"
            mend = f"stop that one (AGTMUX_SOCKET={found.socket} agtmux status tells more), then: {register}"
            return Finding(Level.NOTE, "bridge_elsewhere", message, mend, agent=agent)
    message = f"{path} has a server of somebody else's that is called agtmux"
    return Finding(Level.WARNING, "bridge_foreign", message, f"rename or remove it, then: {register}", agent=agent)


def _without_daemon(found: AgentBridge) -> Finding | None:
    if found.entry not in (Entry.REGISTERED, Entry.OUTDATED):
        return None
    message = f"the bridge is in {found.path}, and there is no daemon for it: its tools answer that they cannot"
    return Finding(Level.WARNING, "bridge_left", message, "agtmux up", agent=found.agent)


def _register(found: AgentBridge) -> str:
    return "agtmux mcp register" + (f" --agent {found.agent}" if found.agent else "")
