"""Finds out what anybody can find out on this machine, with a daemon or without: files, programs, settings.

Takes some 100 ms, most of it for trying agtmux-hook, and no longer than a few seconds whatever hangs; call it from a
thread. It changes nothing and starts no tmux server.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from agtmux import paths
from agtmux.agents.registry import AGENTS_FOLDER, Registry
from agtmux.agents.sheet import read_sheet
from agtmux.config import load_config
from agtmux.doctor.facts import (
    AgentBridge,
    AgentHooks,
    AgentVersion,
    Here,
    HookProgram,
    OtherServer,
    Place,
    TmuxProgram,
)
from agtmux.domain.errors import AgtmuxError
from agtmux.logs import LOG_FILE
from agtmux.probe import tmux
from agtmux.probe.owners import check_path
from agtmux.probe.processes import program_version

# Each of these takes a few milliseconds where all is well.
_TMUX_LIMIT: Final = 2.0
_HOOK_LIMIT: Final = 2.0
_SERVER_LIMIT: Final = 0.5
_MOST_SERVERS: Final = 4


def look_here(state_directory: Path) -> Here:
    config_file = Path(paths.config_file())
    agent_files = _agent_files(config_file.parent / AGENTS_FOLDER)
    socket_path, socket_trouble = _socket_path()
    spool_bytes, spool_seconds = _spool(state_directory)
    return Here(
        state=_place(state_directory),
        free_bytes=_free(state_directory),
        socket=_place(socket_path) if socket_path else None,
        socket_folder=_place(socket_path.parent) if socket_path else None,
        socket_trouble=socket_trouble,
        log_path=str(state_directory / "logs" / LOG_FILE),
        config_path=str(config_file),
        config_exists=_place(config_file).mode is not None,
        config_trouble=_trouble(partial(load_config, config_file)),
        settings_changed_at=max(filter(None, map(_changed_at, [config_file, *agent_files])), default=None),
        agent_file_troubles=tuple(filter(None, (_trouble(partial(_read, file)) for file in agent_files))),
        tmux=_tmux(),
        hook=try_hook(paths.hook_command()),
        spool_bytes=spool_bytes,
        spool_seconds=spool_seconds,
    )


def installed_versions(registry: Registry) -> dict[str, str]:
    """The version of each agent that is installed for this user, where that can be told without running it."""
    commands = {name: registry.sheet(name).process.commands for name in registry.agent_types}
    found = {name: program_version(words[0]) for name, words in commands.items() if words}
    return {name: version for name, version in found.items() if version}


def agent_versions(
    running: Mapping[tuple[str, str | None], Sequence[str]], installed: Mapping[str, str], registry: Registry
) -> tuple[AgentVersion, ...]:
    """Every version that runs, with the refs of its panes, or is installed; agent by agent."""
    versions = {*running, *installed.items()}
    return tuple(
        AgentVersion(
            agent,
            version,
            tuple(running.get((agent, version), ())),
            is_installed=version is not None and installed.get(agent) == version,
            is_verified=registry.has_verified(agent, version),
            reads_screens=registry.reads_screens(agent),
        )
        for agent, version in sorted(versions, key=lambda each: (each[0], each[1] or ""))
        # What an earlier daemon knew may have been taken away since.
        if registry.knows(agent)
    )


def read_hooks(items: Iterable[dict[str, Any]]) -> tuple[AgentHooks, ...]:
    """What a status of hooks tells, see `agents.install.desk`."""
    return tuple(
        AgentHooks(item["agent"], error=item["error"]["message"])
        if item["error"]
        else AgentHooks(
            item["agent"],
            item["path"],
            there=item["already_there"],
            missing=item["missing"],
            stale=(*item["stale"], *item["surplus"]),
            off=item["off"],
            lacking=item["lacking"],
            left_out=item["left_out"],
        )
        for item in items
    )


def read_bridges(items: Iterable[dict[str, Any]]) -> tuple[AgentBridge, ...]:
    """What a status of the bridge tells, see `agents.mcp.desk`."""
    return tuple(
        AgentBridge(item["agent"], error=item["error"]["message"])
        if item["error"]
        else AgentBridge(item["agent"], item["path"], str(item["entry"]), item["socket"])
        for item in items
    )


def other_servers(is_watched: Callable[[str], bool], callers: str) -> tuple[OtherServer, ...]:
    """tmux servers of this user that live and are not watched: where tmux keeps its sockets, and where `callers` is."""
    folder = Path(tmux.socket_path("")).parent
    try:
        found = [str(entry) for entry in sorted(folder.iterdir()) if stat.S_ISSOCK(entry.lstat().st_mode)]
    except OSError:
        found = []
    callers = os.path.realpath(callers) if callers and "\0" not in callers else ""
    unwatched = [path for path in dict.fromkeys([callers, *found]) if path and not is_watched(path)]
    servers = []
    for path in unwatched[:_MOST_SERVERS]:
        try:
            panes = tmux.snapshot(tmux.find_tmux(), path, {}, _SERVER_LIMIT)[0]
        except tmux.TmuxError:
            # Not one to be watched, then.
            continue
        if panes:
            servers.append(OtherServer(path, len({row["pane_id"] for row in panes}), path == callers))
    return tuple(servers)


def try_hook(path: str | None) -> HookProgram:
    """Hand agtmux-hook an event and see whether it comes out. It is silent whatever happens, so nothing less tells."""
    if path is None:
        return HookProgram()
    if not os.access(path, os.X_OK):
        return HookProgram(path)
    try:
        works = _hands_on(path)
    except OSError:
        works = None
    return HookProgram(path, is_executable=True, works=works)


def _hands_on(path: str) -> bool:
    """Raises OSError if that cannot be found out."""
    with _folder_for_socket() as folder, socket.socket(socket.AF_UNIX) as listener:
        # The hook sends nothing to a socket that other users could replace or write to, whatever the umask here.
        check_path(os.fsencode(folder))
        door = str(Path(folder) / "s")
        listener.bind(door)
        Path(door).chmod(0o600)
        listener.listen()
        environment = {"PATH": os.environ.get("PATH", os.defpath), "AGTMUX_SOCKET": door, "AGTMUX_STATE_DIR": folder}
        try:
            hook = subprocess.Popen(
                [path, "doctor", "Check"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError:
            # Not a program, or its interpreter is not there.
            return False
        with hook:
            try:
                return _is_called(listener, hook)
            finally:
                hook.kill()


def _folder_for_socket() -> tempfile.TemporaryDirectory[str]:
    """In TMPDIR, unless no socket's path fits in there: macOS takes 103 bytes, Linux 107."""
    folder = tempfile.TemporaryDirectory(prefix="agtmux-")
    if len(os.fsencode(folder.name)) + len("/s") <= 103:
        return folder
    folder.cleanup()
    return tempfile.TemporaryDirectory(prefix="agtmux-", dir="/tmp")


def _is_called(listener: socket.socket, hook: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _HOOK_LIMIT
    while True:
        # In this order: it may call and end in between.
        has_ended = hook.poll() is not None
        if select.select([listener], [], [], 0.02)[0]:
            return True
        if has_ended or time.monotonic() > deadline:
            return False


def _place(path: Path) -> Place:
    try:
        found = path.stat()
    except OSError:
        return Place(str(path))
    return Place(str(path), stat.S_IMODE(found.st_mode), found.st_uid == os.geteuid())


def _free(folder: Path) -> int | None:
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _socket_path() -> tuple[Path | None, str]:
    try:
        return Path(paths.socket_path()), ""
    except AgtmuxError as error:
        return None, error.message


def _spool(state_directory: Path) -> tuple[int, float]:
    """How much hooks had to keep, and since when at least."""
    now, size, seconds = time.time(), 0, 0.0
    for name in ("hook.jsonl", "hook.jsonl.draining"):
        try:
            found = (state_directory / "spool" / name).stat()
        except OSError:
            continue
        if found.st_size:
            size += found.st_size
            seconds = max(seconds, now - found.st_mtime)
    return size, seconds


def _agent_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.toml"))
    except OSError:
        return []


def _read(file: Path) -> None:
    read_sheet(str(file), file.read_bytes())


def _trouble(act: Callable[[], object]) -> str:
    try:
        act()
    except AgtmuxError as error:
        return error.message
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _changed_at(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def _tmux() -> TmuxProgram:
    path = None
    try:
        path = tmux.find_tmux()
        said = tmux.version(path, _TMUX_LIMIT)
    except tmux.TmuxError as error:
        return TmuxProgram(path, trouble=str(error))
    if not said:
        return TmuxProgram(path, trouble="it does not tell its version (tmux -V), so it may not be tmux")
    return TmuxProgram(path, said, tmux.is_too_old(said))
