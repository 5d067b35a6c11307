"""Finds out what only the daemon knows: the targets it watches, and the agents in their panes."""

from __future__ import annotations

from collections import Counter

from agtmux.doctor.facts import UnknownPane, WatchedTarget
from agtmux.domain.panes import TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.domain.states import State
from agtmux.observe import views
from agtmux.observe.filters import Filters
from agtmux.observe.fleet import Fleet
from agtmux.observe.views import PaneItem
from agtmux.observe.world import World


def watched_targets(world: World, fleet: Fleet, only: TargetId | None) -> tuple[WatchedTarget, ...]:
    panes = Counter(key[0] for key in world.panes)
    found = []
    for target_id, target in world.targets.items():
        if only not in (None, target_id) or target.kind is TargetKind.CHAT:
            continue
        error, known = fleet.error_of(target_id), fleet.known_of(target_id)
        found.append(
            WatchedTarget(
                name=target_id,
                kind=target.kind.value,
                health=target.health,
                panes=panes[target_id],
                error=None if error is None else error["message"],
                mend=fleet.mend_of(target_id),
                warning=fleet.warning_of(target_id),
                excess=fleet.excess_of(target_id),
                has_server=None if known is None else known.has_server,
                tmux_said="" if known is None else known.tmux_said,
                clock_ahead=0.0 if known is None else known.ahead,
            )
        )
    return tuple(found)


def agent_panes(world: World, only: TargetId | None) -> list[PaneItem]:
    """Panes with an agent in them."""
    return views.pane_items(world, Filters(target=only))


def running_versions(items: list[PaneItem]) -> dict[tuple[str, str | None], list[str]]:
    """Agent and version, to the refs of the panes it runs in."""
    refs: dict[tuple[str, str | None], list[str]] = {}
    for item in items:
        refs.setdefault((item.agent_type, item.agent_version), []).append(item.ref)
    return refs


def unknown_panes(items: list[PaneItem]) -> tuple[UnknownPane, ...]:
    return tuple(
        UnknownPane(item.ref, item.identity.target, item.agent_type, item.reason_code)
        for item in items
        if item.state == State.UNKNOWN
    )
