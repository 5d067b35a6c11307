"""Agents' hooks on this machine: the command they run, what is in each agent's settings, what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from agtmux.doctor.check_agtmux import read_log
from agtmux.doctor.facts import AgentHooks, Facts, NoDaemon
from agtmux.doctor.findings import Finding, Level, count
from agtmux.domain.errors import ErrorCode
from agtmux.domain.panes import HOST

# The daemon takes in what hooks had to keep every five seconds.
_SPOOL_PATIENCE: Final = 30.0
_REINSTALL: Final = "install agtmux again, in the way you installed it"
# What outsiders may send wrongly; other refusals are answers to somebody's own mistake.
_OF_EVENTS: Final = (ErrorCode.EVENT_INVALID, ErrorCode.TOO_LARGE, ErrorCode.FORBIDDEN)


def check_hook_program(facts: Facts) -> Iterator[Finding]:
    if not _is_about_here(facts):
        return
    hook = facts.here.hook
    if hook.path is None:
        message = "agtmux-hook, which agents' hooks run, is not installed"
        yield Finding(Level.PROBLEM, "command_missing", message, _REINSTALL)
    elif not hook.is_executable:
        message = f"{hook.path}, which agents' hooks run, is not executable"
        yield Finding(Level.PROBLEM, "command_not_executable", message, f"chmod +x {shlex.quote(hook.path)}")
    elif hook.works is None:
        message = (
            f"{hook.path} could not be tried: there is no room for a socket of yours alone in the temporary folder"
        )
        yield Finding(Level.NOTE, "command_untried", message, "make room in /tmp, or set TMPDIR to a folder of yours")
    elif not hook.works:
        message = f"{hook.path}, which agents' hooks run, does nothing when it is run: it finds no python3 that works"
        yield Finding(Level.PROBLEM, "command_broken", message, _REINSTALL)
    else:
        yield Finding(Level.OK, "command_works", f"{hook.path} hands on what it is given")


def check_agents_hooks(facts: Facts) -> Iterator[Finding]:
    for hooks in facts.hooks if _is_about_here(facts) else ():
        yield _installed(hooks)
        if hooks.off:
            message = f"{hooks.path} switches all hooks off ({', '.join(hooks.off)}), so none is run"
            yield Finding(
                Level.WARNING,
                "hooks_off",
                message,
                f"take {' and '.join(hooks.off)} out of {hooks.path}",
                agent=hooks.agent,
            )
        if hooks.lacking:
            names = ", ".join(f'"{name}"' for name in hooks.lacking)
            message = f"{hooks.path} lacks {names}, without which the agent may ignore it"
            yield Finding(Level.WARNING, "hooks_ignored", message, f"add {names} to {hooks.path}", agent=hooks.agent)
        if hooks.left_out:
            message = f"the version in use does not know these hooks, or is not known: {', '.join(hooks.left_out)}"
            mend = f"start the newest version in a watched pane, then: {_install(hooks)}"
            yield Finding(Level.NOTE, "hooks_left_out", message, mend, agent=hooks.agent)


def _installed(hooks: AgentHooks) -> Finding:
    agent = hooks.agent
    if hooks.error is not None:
        mend = f"see to that, then: {_install(hooks)}"
        return Finding(Level.PROBLEM, "hooks_unreadable", hooks.error, mend, agent=agent)
    if hooks.stale:
        message = f"out of date in {hooks.path}: {', '.join(hooks.stale)}"
        return Finding(Level.WARNING, "hooks_stale", message, _install(hooks), agent=agent)
    if hooks.missing and hooks.there:
        message = f"missing in {hooks.path}: {', '.join(hooks.missing)}"
        return Finding(Level.WARNING, "hooks_incomplete", message, _install(hooks), agent=agent)
    if hooks.missing:
        message = f"no hooks in {hooks.path}: its screen is read, which tells later and less"
        return Finding(Level.NOTE, "hooks_missing", message, _install(hooks), agent=agent)
    return Finding(Level.OK, "hooks_installed", f"all {len(hooks.there)} hooks are in {hooks.path}", agent=agent)


def _install(hooks: AgentHooks) -> str:
    return "agtmux hooks install" + (f" --agent {hooks.agent}" if hooks.agent else "")


def check_events(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if isinstance(daemon, NoDaemon):
        return
    if daemon.homeless and _is_about_here(facts):
        message = f"{count(daemon.homeless, 'event')} came from agents in no watched tmux server and had to be let go"
        mend = "run those agents in tmux, or watch their server: agtmux target add NAME --tmux-socket SOCKET"
        yield Finding(Level.NOTE, "events_homeless", message, mend)
    refused = {code: daemon.refused[code] for code in _OF_EVENTS if daemon.refused.get(code)}
    if refused:
        told = ", ".join(f"{number} {code}" for code, number in refused.items())
        mend = "see that agents and targets run what this agtmux gave them: agtmux hooks status"
        yield Finding(Level.NOTE, "events_refused", f"events were refused as wrong: {told}", mend)
    lost = daemon.spool.get("dropped", 0) + daemon.spool.get("damaged", 0)
    if lost:
        message = f"{count(lost, 'event')} of hooks got lost while no daemon was there to take them"
        yield Finding(Level.NOTE, "events_lost", message, "keep the daemon running: agtmux up --headless")


def check_spool(facts: Facts) -> Iterator[Finding]:
    here = facts.here
    if not here.spool_bytes:
        return
    message = f"hooks keep {count(here.spool_bytes, 'byte')} of events for the daemon"
    if isinstance(facts.daemon, NoDaemon):
        yield Finding(Level.NOTE, "spool_waiting", message, "agtmux up")
    elif here.spool_seconds > _SPOOL_PATIENCE:
        yield Finding(Level.WARNING, "spool_stuck", f"{message}, which does not take them in", read_log(facts))


def _is_about_here(facts: Facts) -> bool:
    return facts.target in (None, HOST)
