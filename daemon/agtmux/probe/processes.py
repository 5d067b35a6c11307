"""Which processes have the foreground of a pane, and what they say of themselves.

A pane's own process is a shell most of the time; the agent is whatever was typed into it, wrapped by npm, npx, sudo or
another shell as often as not. So the table of processes is read when a pane's foreground changes, and the facts about
each foreground process are told as they are: who it is, is decided elsewhere.
"""

from __future__ import annotations

import calendar
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections import namedtuple
from typing import Iterable

PROC = "/proc"
_TIME_LIMIT = 5.0
_MOST_WORDS = 8
_LONGEST_WORD = 512
_MOST_PROCESSES = 16
_MOST_BELOW = 1_000
# An interpreter is nobody by itself: its script is.
_INTERPRETER = re.compile(r"(?:node|nodejs|bun|deno|python|pypy|ruby|perl|bash|dash|zsh|sh)[0-9.]*")
_SHELL = re.compile(rb"-?(?:ba|z|da|k|mk|a|fi)?sh\n?$")
_NO_TERMINAL = (0, -1, 0xFFFFFFFF)
# Seconds in which what runs a hook was started with it.
_WITH_IT = 2.0
_VERSION = re.compile(r"\d+\.\d+\.\d+[0-9A-Za-z.+-]*")

Process = namedtuple("Process", "pid ppid pgid tty tpgid started argv")


def read_table() -> dict[int, Process]:
    """All processes. `argv` is None where it takes another question, see `describe`."""
    return _read_proc() if os.path.isdir(PROC + "/self") else _read_ps()


def foreground_group(pane_pid: int) -> int | None:
    """The process group that the pane's terminal listens to; None where only the whole table tells."""
    process = read_one(pane_pid)
    return process.tpgid if process is not None else None


def started_by_shell(pid: int, depth: int = 3) -> tuple[int, ...]:
    """What a shell has started, also through shells: its scripts start one program after the other in one group, which
    neither the pane's command nor its foreground group tells. Empty for anything but a shell, and where the system does
    not say."""
    try:
        with open("%s/%d/comm" % (PROC, pid), "rb") as file:
            if not depth or _SHELL.match(file.read()) is None:
                return ()
        with open("%s/%d/task/%d/children" % (PROC, pid, pid), "rb") as file:
            children = [int(word) for word in file.read().split()[:_MOST_PROCESSES]]
    except (OSError, ValueError):
        return ()
    return tuple(children) + tuple(below for child in children for below in started_by_shell(child, depth - 1))


class Family:
    """A table of processes with who started whom."""

    def __init__(self, table: dict[int, Process]) -> None:
        self._table = table
        self._children: dict[int, list[Process]] = {}
        for pid in sorted(table):
            self._children.setdefault(table[pid].ppid, []).append(table[pid])

    def foreground(self, pane_pid: int) -> list[Process]:
        """What runs in front in that pane and what it was started by, outermost first.

        Jobs in the background, stopped ones included, have groups of their own on the same terminal and started
        nothing that is in front. What runs on a terminal of its own below a foreground process, as under sudo, belongs
        to it. An agent that lends the terminal to an editor is still there, above it.
        """
        shell = self._table.get(pane_pid)
        if shell is None:
            return []
        order: list[Process] = []
        front: set[int] = set()
        waiting = [(shell, False)]
        while waiting and len(order) < _MOST_BELOW:
            process, below = waiting.pop(0)
            order.append(process)
            in_front = process.tty == shell.tty and process.pgid == shell.tpgid
            elsewhere = process.tty != shell.tty
            if in_front or (below and process.tty not in (shell.tty, 0, "?", "??", "-")):
                front.add(process.pid)
            for child in self._children.get(process.pid, ()):
                waiting.append((child, in_front or (below and elsewhere)))
        for pid in list(front):
            while pid != pane_pid and pid in self._table:
                pid = self._table[pid].ppid
                front.add(pid)
        return [process for process in order if process.pid in front][:_MOST_PROCESSES]


class WayUp(namedtuple("WayUp", "lineage on_terminal service")):
    """From a process up to those that it was started by: as far as they surely belong to one terminal; as far as each
    has one; and the process without a terminal at which they end, None if they end at none."""

    __slots__ = ()

    @property
    def service_name(self) -> str:
        """It only explains: what anybody calls itself proves nothing."""
        if self.service is None:
            return ""
        started_as = _program(self.service) if sys.platform == "darwin" else "".join(read_argv(self.service)[:1])
        return os.path.basename(started_as)[:_LONGEST_WORD]


def way_up(pid: int) -> WayUp | None:
    """None if the process is not known.

    What has no terminal and was there before is a service: whose terminal it was started from says nothing.
    """
    process = read_one(pid)
    if process is None:
        return None
    way = WayUp([], [], None)
    began = process.started
    is_on_terminal = True
    while process is not None and len(way.lineage) < _MOST_PROCESSES:
        has_terminal = process.tty not in _NO_TERMINAL
        if not has_terminal and process.started < began - _WITH_IT:
            return way._replace(service=process.pid)
        is_on_terminal = is_on_terminal and has_terminal
        way.lineage.append(process.pid)
        if is_on_terminal:
            way.on_terminal.append(process.pid)
        process = read_one(process.ppid)
    return way


def lineage(pid: int) -> list[int] | None:
    way = way_up(pid)
    return None if way is None else way.lineage


def describe(process: Process, with_files: bool = True) -> dict[str, object]:
    """The facts of one process that are worth asking for: they do not change while it lives.

    What files say of it, namely its package, may hang where those files are on another machine.
    """
    argv = list(process.argv if process.argv is not None else read_argv(process.pid))
    words = [word[:_LONGEST_WORD] for word in argv[:_MOST_WORDS]]
    executable = _read_link("%s/%d/exe" % (PROC, process.pid))
    script = _script(words, process.pid) if with_files else ""
    name, version = _package(script) if script else ("", "")
    if not name and with_files and "/node_modules/" in executable:
        # A native build that npm brought, which began as the command itself.
        version = _package(executable)[1]
    if not version:
        # Native builds are named after their version: …/versions/2.1.197
        base = os.path.basename(executable or (words[0] if words else ""))
        version = base if _VERSION.fullmatch(base) else ""
    return {
        "pid": process.pid,
        "started": process.started,
        "argv": words,
        "executable": executable,
        "script": script,
        "package": name,
        "version": version,
    }


def program_version(command: str, search_path: str = "") -> str | None:
    """The version of an installed program, from its package or its name; empty if neither tells, None if there is none.

    `search_path` is somebody's PATH, which goes before the own one. After both come the places where installers put
    programs that a daemon's PATH does not have. Of several installations between which nothing decides, the oldest
    counts: what it knows, the others know too.
    """
    home = os.path.expanduser("~")
    # What is relative was so to another folder than ours.
    theirs = ":".join(folder for folder in search_path.split(":") if os.path.isabs(folder))
    for folders in (theirs or None, None, *_usual_places(command, home)):
        path = shutil.which(command, path=folders)
        if path is not None:
            return _version_of(path, command) or _oldest(_behind_shims(path, command, home))
    installed = [path for path in _by_node_version(command, home) if os.access(path, os.X_OK)]
    return _oldest(_version_of(path, command) for path in installed) if installed else None


def _usual_places(command: str, home: str) -> list[str]:
    """Folders, in the order in which they are looked at."""
    return [
        home + "/.local/bin",
        # Where an agent installs itself, in its own folder.
        "%s/.%s/local/node_modules/.bin" % (home, command),
        "%s/.%s/local" % (home, command),
        "%s/.%s/bin" % (home, command),
        *_npm_prefix(home),
        home + "/.npm-global/bin",
        home + "/.volta/bin",
        home + "/.bun/bin",
        home + "/bin",
        "/opt/homebrew/bin",
        "/home/linuxbrew/.linuxbrew/bin",
        "/usr/local/bin",
        home + "/.local/share/mise/shims",
        home + "/.asdf/shims",
    ]


def _npm_prefix(home: str) -> list[str]:
    """Where npm is told to install programs for this user."""
    try:
        with open(home + "/.npmrc", "rb") as file:
            lines = file.read(1 << 16).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    settings = [line.partition("=") for line in lines]
    found = [value.strip().strip("\"'") for name, _, value in settings if name.strip() == "prefix"]
    places = [place.replace("${HOME}", home).replace("~", home, 1) for place in found]
    return [place + "/bin" for place in places if os.path.isabs(place)]


def _by_node_version(command: str, home: str) -> list[str]:
    """nvm and fnm have a folder of programs for each version of node, and no PATH without a shell."""
    folders = (home + "/.nvm/versions/node/*/bin/", home + "/.local/share/fnm/node-versions/*/installation/bin/")
    return sorted(path for folder in folders for path in glob.glob(glob.escape(home) + folder[len(home) :] + command))


def _behind_shims(path: str, command: str, home: str) -> list[str]:
    """The versions of what a shim of mise or asdf may run; it says nothing of that itself."""
    if os.path.basename(os.path.dirname(path)) != "shims":
        return []
    roots = (home + "/.local/share/mise/installs", home + "/.asdf/installs")
    found = [each for root in roots for each in glob.glob("%s/*/*/bin/%s" % (glob.escape(root), command))]
    return [_version_of(each, command) for each in found]


def _version_of(path: str, command: str) -> str:
    """Empty if neither its name nor its package tells."""
    # A script beside a package that it only starts.
    behind = os.path.join(os.path.dirname(path), "node_modules", ".bin", command)
    real = os.path.realpath(behind if os.access(behind, os.X_OK) else path)
    base = os.path.basename(real)
    return base if _VERSION.fullmatch(base) else _package(real)[1]


def _oldest(versions: Iterable[str]) -> str:
    """Empty if there is none, or one of them cannot be told."""
    found = list(versions)
    if not found or not all(found):
        return ""
    return min(found, key=lambda version: [int(part) for part in re.findall("[0-9]+", version)])


def _script(words: list[str], pid: int) -> str:
    """The file an interpreter was given, with links followed: npm's commands are links into their packages."""
    if len(words) < 2 or not _INTERPRETER.fullmatch(os.path.basename(words[0]).lstrip("-")):
        return ""
    for word in words[1:]:
        if word.startswith("-"):
            continue
        if not os.path.isabs(word):
            word = os.path.join(_read_link("%s/%d/cwd" % (PROC, pid)) or "/", word)
        return os.path.realpath(word) if os.path.exists(word) else ""
    return ""


def _package(script: str) -> tuple[str, str]:
    """Name and version of the package a script belongs to: the nearest package.json above it that has a name."""
    folder = os.path.dirname(script)
    for _ in range(6):
        try:
            with open(os.path.join(folder, "package.json"), "rb") as file:
                about = json.loads(file.read(1 << 20).decode("utf-8", "replace"))
            if isinstance(about, dict) and isinstance(about.get("name"), str):
                version = about.get("version")
                return about["name"][:200], version[:64] if isinstance(version, str) else ""
        except (OSError, ValueError, RecursionError):
            pass
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return "", ""


def _read_proc() -> dict[int, Process]:
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())
    table = {}
    for pid in pids:
        process = read_one(pid)
        if process is not None:
            table[pid] = process
    return table


def read_one(pid: int) -> Process | None:
    if sys.platform == "darwin":
        return _bsd_stat(pid)
    try:
        with open("%s/%d/stat" % (PROC, pid), "rb") as stat:
            # The command, in parentheses, may hold anything; the fields after it may not.
            fields = stat.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            # Ended, and nobody has asked how yet.
            return None
        started = _boot_time() + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return Process(pid, int(fields[1]), int(fields[2]), int(fields[4]), int(fields[5]), started, None)
    except (OSError, IndexError, ValueError):
        return None


# proc_bsdinfo of <sys/proc_info.h>: pid, ppid at 12; pgid at 100; terminal, its foreground group; start.
_BSD_INFO = struct.Struct("=12xII80xI4xIIiQQ")
_PROC_PIDTBSDINFO = 3


def _bsd_stat(pid: int) -> Process | None:
    """The same on macOS, where there is no /proc and `ps` is too slow for one process."""
    import ctypes

    try:
        buffer = ctypes.create_string_buffer(_BSD_INFO.size)
        libproc = ctypes.CDLL("/usr/lib/libproc.dylib")
        if libproc.proc_pidinfo(pid, _PROC_PIDTBSDINFO, ctypes.c_uint64(0), buffer, len(buffer)) != len(buffer):
            return None
    except (OSError, AttributeError):
        return None
    of, parent, group, terminal, foreground, _nice, seconds, micros = _BSD_INFO.unpack(buffer.raw)
    return Process(of, parent, group, terminal, foreground, seconds + micros / 1e6, None)


def _program(pid: int) -> str:
    """The file that runs, on macOS."""
    import ctypes

    try:
        buffer = ctypes.create_string_buffer(4_096)
        length = ctypes.CDLL("/usr/lib/libproc.dylib").proc_pidpath(pid, buffer, len(buffer))
    except (OSError, AttributeError):
        return ""
    return buffer.raw[: max(length, 0)].decode("utf-8", "replace")


_booted: list[float] = []


def _boot_time() -> float:
    # Once: the kernel works it out from the wall clock, and a process would seem to begin anew when that is set.
    if not _booted:
        with open(PROC + "/stat", "rb") as stat:
            _booted.extend(float(line.split()[1]) for line in stat if line.startswith(b"btime "))
    return _booted[0]


def read_argv(pid: int) -> list[str]:
    try:
        with open("%s/%d/cmdline" % (PROC, pid), "rb") as file:
            raw = file.read(65_536)
    except OSError:
        return []
    return [word.decode("utf-8", "replace") for word in raw.rstrip(b"\0").split(b"\0")] if raw else []


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)[:_LONGEST_WORD]
    except OSError:
        return ""


def _read_ps(limit: float = _TIME_LIMIT) -> dict[int, Process]:
    """Where there is no /proc: one question for all processes. Words cannot be told apart exactly there."""
    command = ["ps", "-axo", "pid=,ppid=,pgid=,tpgid=,tty=,lstart=,args="]
    environment = {"PATH": "/bin:/usr/bin:/sbin:/usr/sbin", "LC_ALL": "C", "TZ": "UTC0"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=limit,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    table = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        words = line.split(None, 10)
        try:
            pid, ppid, pgid, tpgid = (int(word) for word in words[:4])
            started = calendar.timegm(time.strptime(" ".join(words[5:10]), "%a %b %d %H:%M:%S %Y"))
        except ValueError:
            continue
        argv = words[10].split() if len(words) > 10 else []
        table[pid] = Process(pid, ppid, pgid, words[4], tpgid, started, argv)
    return table
