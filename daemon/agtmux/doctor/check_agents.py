"""Each agent that is used, by version, and the panes of which nothing is known."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Final

from agtmux.doctor.facts import AgentVersion, Facts, NoDaemon
from agtmux.doctor.findings import Finding, Level, count
from agtmux.domain.panes import HOST
from agtmux.domain.states import Reason

_WHY: Final[dict[str, str]] = {
    Reason.NO_SIGNAL: ": nothing was told or seen of it yet",
    Reason.STALE_SIGNAL: ": what was told or seen of it is too old to count",
    Reason.UNSUPPORTED_SIGNAL: ": what it shows or tells is not understood",
}
# Of one agent for one reason; the others are counted.
_MOST_PANES: Final = 5


def check_agent_files(facts: Facts) -> Iterator[Finding]:
    for trouble in facts.here.agent_file_troubles:
        message = f"{trouble}; until then the daemon does not start again"
        yield Finding(Level.PROBLEM, "file_invalid", message, f"edit {trouble.partition(': ')[0]}")


def check_versions(facts: Facts) -> Iterator[Finding]:
    for found in facts.agents:
        yield _version(found)
    if isinstance(facts.daemon, NoDaemon) or any(target.error for target in facts.targets):
        # Who is there cannot be told.
        return
    if not facts.agent_panes:
        message = "no agent is running in a watched pane"
        yield Finding(Level.NOTE, "agents_none", message, "start one in tmux; `agtmux demo` shows how it would look")


def _version(found: AgentVersion) -> Finding:
    places = [f"in {count(len(found.refs), 'pane')}"] if found.refs else []
    where = " and ".join([*places, *(["installed"] if found.is_installed else [])])
    ref = shlex.quote(found.refs[0]) if found.refs else ""
    which = "a version that cannot be told" if found.version is None else found.version
    if not found.reads_screens:
        message = f"{which}, {where}: agtmux cannot read its screen, so only what hooks tell is known"
        mend = "describe its screen in a file of your own: docs/configuration.md, agents of your own"
        return Finding(Level.NOTE, "screens_unread", message, mend, agent=found.agent)
    if found.version is None:
        message = f"{which}, {where}: its screen is read as if it were a known one"
        return Finding(Level.NOTE, "version_unknown", message, f"agtmux explain {ref}", agent=found.agent)
    if not found.is_verified:
        message = f"{which}, {where}: its screens were not tried with this agtmux, so confidence is lowered"
        return Finding(Level.NOTE, "version_unverified", message, _try(found), agent=found.agent)
    return Finding(Level.OK, "version_verified", f"{which}, {where}: its screens are known", agent=found.agent)


def _try(found: AgentVersion) -> str:
    here = [ref for ref in found.refs if ref.startswith(f"pane:{HOST}/")]
    pane_id = here[0].rpartition("/")[2] if here else "%N"
    return (
        f"tmux -L default capture-pane -p -e -t {pane_id} | agtmux classify --agent {found.agent}; "
        "if that is wrong, report it with the capture"
    )


def check_unknown_panes(facts: Facts) -> Iterator[Finding]:
    told: Counter[tuple[str, str]] = Counter()
    for pane in facts.unknown_panes:
        if pane.reason_code == Reason.TARGET_UNREACHABLE:
            # The target's own line says so, and what to do.
            continue
        told[pane.agent, pane.reason_code] += 1
        if told[pane.agent, pane.reason_code] <= _MOST_PANES:
            yield Finding(
                Level.WARNING,
                "state_unknown",
                f"{pane.ref.removeprefix('pane:')} is unknown ({pane.reason_code}){_WHY.get(pane.reason_code, '')}",
                f"agtmux explain {shlex.quote(pane.ref)}",
                target=pane.target,
                agent=pane.agent,
            )
    for (agent, reason), panes in told.items():
        if panes > _MOST_PANES:
            message = f"and {count(panes - _MOST_PANES, 'pane')} more: {reason}"
            yield Finding(
                Level.WARNING,
                "state_unknown",
                message,
                f"agtmux list panes --state unknown --agent {agent}",
                agent=agent,
            )
