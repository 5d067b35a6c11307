"""tmux and the servers that are watched. What was known when it was asked is told; nobody waits for a target."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from agtmux.doctor.facts import Facts, NoDaemon, WatchedTarget
from agtmux.doctor.findings import Finding, Level, count
from agtmux.domain.panes import HOST
from agtmux.domain.refs import is_target_name
from agtmux.domain.states import Health

_INSTALL: Final = "install tmux 3.3 or newer: apt install tmux, dnf install tmux or brew install tmux"
# Less is the ordinary difference of two clocks, see observe/observer.py.
_CLOCKS_AGREE: Final = 2.0


def check_tmux(facts: Facts) -> Iterator[Finding]:
    tmux = facts.here.tmux
    if tmux.path is None:
        yield Finding(Level.PROBLEM, "tmux_missing", tmux.trouble, _INSTALL)
    elif tmux.trouble:
        yield Finding(Level.PROBLEM, "tmux_broken", f"{tmux.path}: {tmux.trouble}", _INSTALL)
    elif tmux.is_too_old:
        message = f"{tmux.said} ({tmux.path}) is too old: agtmux needs 3.3 or newer"
        yield Finding(Level.PROBLEM, "tmux_too_old", message, _INSTALL)
    else:
        yield Finding(Level.OK, "tmux_version", f"{tmux.said} ({tmux.path})")


def check_targets(facts: Facts) -> Iterator[Finding]:
    for target in facts.targets:
        yield _health(target, None if isinstance(facts.daemon, NoDaemon) else facts.agent_panes.get(target.name, 0))
        if target.warning:
            yield Finding(
                Level.WARNING,
                "hooks_unheard",
                target.warning,
                f"see to that (`agtmux down` there, if agtmux runs there), then: agtmux target connect {target.name}",
                target=target.name,
            )
        if abs(target.clock_ahead) > _CLOCKS_AGREE:
            seconds = abs(round(target.clock_ahead))
            message = (
                f"its clock is {seconds} s {'behind' if target.clock_ahead > 0 else 'ahead'}; agtmux allows for it"
            )
            mend = f"set the clock of {target.name}, e.g. timedatectl set-ntp true"
            yield Finding(Level.NOTE, "clock_differs", message, mend, target=target.name)


def _health(target: WatchedTarget, agents: int | None) -> Finding:
    name, kind = target.name, target.kind
    look = f"agtmux target connect {name}"
    if target.health is not Health.OK or target.error:
        is_down = target.health is Health.DOWN
        why = (target.error or target.excess or "it has answered again, once so far").removeprefix(f"{name}: ")
        level, code = (Level.PROBLEM, "target_down") if is_down else (Level.WARNING, "target_degraded")
        return Finding(level, code, f"{kind}, {target.health.value}: {why}", target.mend or look, target=name)
    if target.has_server is None:
        return Finding(Level.NOTE, "target_unseen", f"{kind}, not looked at yet", look, target=name)
    said = target.tmux_said or "tmux"
    if not target.has_server:
        there = "here" if name == HOST else "there"
        message = f"{kind}, {said}: no tmux server is running {there}"
        return Finding(Level.NOTE, "target_empty", message, f"start your agents in tmux {there}: tmux new", target=name)
    counts = [count(target.panes, "pane"), *([] if agents is None else [count(agents, "agent")])]
    return Finding(Level.OK, "target_ok", ", ".join([kind, said, *counts]), target=name)


def check_other_servers(facts: Facts) -> Iterator[Finding]:
    for server in facts.other_servers:
        name = PurePosixPath(server.socket).name
        name = name if is_target_name(name) else "NAME"
        mend = f"agtmux target add {name} --tmux-socket {shlex.quote(server.socket)}"
        panes = count(server.panes, "pane")
        if server.is_callers:
            message = f"the tmux server of this terminal ({server.socket}, {panes}) is not watched"
            yield Finding(Level.WARNING, "server_unwatched", message, mend)
        else:
            message = f"the tmux server at {server.socket} ({panes}) is not watched"
            yield Finding(Level.NOTE, "server_unwatched", message, mend)
