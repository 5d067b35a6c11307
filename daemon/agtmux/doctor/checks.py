"""The table of checks: what is looked at, in which order it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from agtmux.doctor.check_agents import check_agent_files, check_unknown_panes, check_versions
from agtmux.doctor.check_agtmux import (
    check_clock,
    check_config,
    check_daemon,
    check_database,
    check_parts,
    check_socket,
    check_state,
    check_version,
)
from agtmux.doctor.check_bridge import check_bridge
from agtmux.doctor.check_hooks import check_agents_hooks, check_events, check_hook_program, check_spool
from agtmux.doctor.check_tmux import check_other_servers, check_targets, check_tmux
from agtmux.doctor.facts import Facts
from agtmux.doctor.findings import Finding, report

Check = Callable[[Facts], Iterator[Finding]]

# A group that comes to be is one more row.
CHECKS: Final[dict[str, tuple[Check, ...]]] = {
    "agtmux": (
        check_daemon,
        check_version,
        check_socket,
        check_state,
        check_config,
        check_database,
        check_clock,
        check_parts,
    ),
    "tmux": (check_tmux, check_targets, check_other_servers),
    "hooks": (check_hook_program, check_agents_hooks, check_events, check_spool),
    "bridge": (check_bridge,),
    "agents": (check_agent_files, check_versions, check_unknown_panes),
}


def examine(facts: Facts, generated_at: str) -> dict[str, Any]:
    """All findings, in the shape in which they are told."""
    groups = [(group, [found for check in checks for found in check(facts)]) for group, checks in CHECKS.items()]
    return report(groups, generated_at)
