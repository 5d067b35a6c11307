"""agtmux itself: the daemon, its socket and its folders, its settings, its database, its clock."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from agtmux.doctor.facts import Facts, NoDaemon, Place
from agtmux.doctor.findings import Finding, Level, count
from agtmux.domain.durations import SECOND, format_age

RESTART: Final = "agtmux down && agtmux up"
_MEGABYTE: Final = 1_000_000
# The database holds two weeks and its log may grow to as much again before it is folded in.
_SCARCE: Final = 200 * _MEGABYTE
_NOTHING_LEFT: Final = 20 * _MEGABYTE


def check_daemon(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if not isinstance(daemon, NoDaemon):
        up = format_age(daemon.uptime_seconds * SECOND)
        yield Finding(Level.OK, "daemon_running", f"agtmuxd {daemon.version}, process {daemon.pid}, up for {up}")
        yield Finding(Level.OK, "log_file", facts.here.log_path)
    elif daemon.version is not None:
        message = f"agtmuxd {daemon.version} is running and cannot tell how it is, as doctor is newer than it"
        yield Finding(Level.PROBLEM, "daemon_outdated", message, RESTART)
    elif daemon.is_unsafe:
        message = "agtmuxd was not asked, because other users could replace its socket"
        yield Finding(
            Level.NOTE, "daemon_not_asked", message, "mend the socket as named below, then agtmux doctor again"
        )
    elif daemon.pid is not None:
        message = f"agtmuxd is running as process {daemon.pid} and does not answer{_on(facts)}"
        yield Finding(Level.PROBLEM, "daemon_silent", message, RESTART)
    elif daemon.is_heard:
        message = f"something answers{_on(facts)} that is not agtmuxd"
        yield Finding(Level.PROBLEM, "daemon_other", message, "stop it, or set AGTMUX_SOCKET to another path")
    else:
        yield Finding(
            Level.PROBLEM, "daemon_not_running", "the daemon is not running, so nothing is watched", "agtmux up"
        )


def _on(facts: Facts) -> str:
    socket = facts.here.socket
    if socket is None:
        return ""
    return f" on {socket.path}" if socket.mode is not None else f": its socket {socket.path} is gone"


def check_version(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if isinstance(daemon, NoDaemon):
        yield Finding(Level.OK, "version_own", f"agtmux {facts.client_version}")
    elif daemon.version != facts.client_version:
        message = f"agtmux is {facts.client_version}, and the daemon that runs is {daemon.version}"
        yield Finding(Level.WARNING, "version_differs", message, RESTART)


def check_socket(facts: Facts) -> Iterator[Finding]:
    here = facts.here
    if here.socket is None:
        yield Finding(
            Level.PROBLEM,
            "socket_path",
            here.socket_trouble,
            "export AGTMUX_SOCKET=$HOME/.agtmux/agtmuxd.sock, where the daemon and agents are started",
        )
        return
    if here.socket.mode is None:
        if not isinstance(facts.daemon, NoDaemon):
            yield Finding(Level.PROBLEM, "socket_gone", f"{here.socket.path} was removed; nobody finds it", RESTART)
        return
    troubles = list(_troubles(here.socket, 0o600, "socket_mode"))
    yield from troubles
    if not troubles:
        yield Finding(Level.OK, "socket_mode", f"{here.socket.path}, for you alone (mode 0600)")


def check_state(facts: Facts) -> Iterator[Finding]:
    here = facts.here
    folders = [(here.state, "state_mode")]
    if here.socket_folder is not None and here.socket_folder.path != here.state.path:
        folders.append((here.socket_folder, "socket_folder"))
    for place, code in folders:
        if place.mode is None:
            # Made when the daemon is started.
            continue
        troubles = list(_troubles(place, 0o700, code))
        yield from troubles
        if not troubles:
            yield Finding(Level.OK, code, f"{place.path}, for you alone (mode 0700)")
    if here.free_bytes is None:
        return
    if here.free_bytes >= _SCARCE:
        yield Finding(Level.OK, "disk_space", f"{here.free_bytes // _MEGABYTE:,} MB are left for the database")
    else:
        level = Level.PROBLEM if here.free_bytes < _NOTHING_LEFT else Level.WARNING
        message = f"only {here.free_bytes // _MEGABYTE} MB are left for the database in {here.state.path}"
        yield Finding(level, "disk_space", message, f"make room there: df -h {shlex.quote(here.state.path)}")


def _troubles(place: Place, wanted: int, code: str) -> Iterator[Finding]:
    assert place.mode is not None
    mend = f"chmod {wanted:o} {shlex.quote(place.path)}"
    if not place.is_own:
        message = f"{place.path} belongs to another user"
        yield Finding(Level.PROBLEM, code, message, "set AGTMUX_STATE_DIR and AGTMUX_SOCKET to a folder of your own")
    elif place.mode & 0o077:
        message = f"others may use {place.path} (mode {place.mode:04o})"
        yield Finding(Level.PROBLEM, code, message, mend)
    elif place.mode & wanted != wanted:
        message = f"you may not use {place.path} (mode {place.mode:04o})"
        yield Finding(Level.PROBLEM, code, message, mend)


def check_config(facts: Facts) -> Iterator[Finding]:
    here, daemon = facts.here, facts.daemon
    if here.config_trouble:
        message = f"{here.config_trouble}; until then the daemon does not start again"
        yield Finding(Level.PROBLEM, "config_invalid", message, f"edit {here.config_path}")
        return
    changed = here.settings_changed_at
    if not isinstance(daemon, NoDaemon) and changed is not None and changed > daemon.started_at:
        folder = PurePosixPath(here.config_path).parent
        message = f"settings in {folder} were changed after the daemon was started, and do not count yet"
        yield Finding(Level.NOTE, "config_changed", message, RESTART)
    elif here.config_exists:
        yield Finding(Level.OK, "config_valid", f"{here.config_path} is in order")
    else:
        yield Finding(Level.OK, "config_default", f"there is no {here.config_path}, so the defaults count")


def check_database(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if isinstance(daemon, NoDaemon):
        return
    if daemon.database_notice:
        mend = "nothing, unless you miss what it held; the daemon says so until its next start"
        yield Finding(Level.WARNING, "database_replaced", daemon.database_notice, mend)
    if daemon.is_failing:
        message = f"the database cannot be written ({count(daemon.failed_commits, 'failure')}), so nothing new is shown"
        yield Finding(Level.PROBLEM, "database_failing", message, read_log(facts))
    elif daemon.failed_commits:
        message = f"the database can be written again, after {count(daemon.failed_commits, 'failure')}"
        yield Finding(Level.NOTE, "database_failed", message, read_log(facts))


def check_clock(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if not isinstance(daemon, NoDaemon) and daemon.clock_ahead_seconds > 0:
        message = (
            f"this machine's clock was set back, so agtmux's own is {daemon.clock_ahead_seconds} s ahead of it; "
            "ages are right, times are not"
        )
        yield Finding(Level.NOTE, "clock_ahead", message, "see that `date` is right; agtmux waits until it catches up")


def check_parts(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if not isinstance(daemon, NoDaemon) and daemon.failures:
        told = ", ".join(f"{name} ({count(number, 'time')})" for name, number in sorted(daemon.failures.items()))
        message = f"parts of the daemon failed and were begun again: {told}"
        yield Finding(Level.WARNING, "daemon_failures", message, f"{read_log(facts)}, and report what it says")


def read_log(facts: Facts) -> str:
    return f"tail {shlex.quote(facts.here.log_path)}"
