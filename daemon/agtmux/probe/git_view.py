"""git on a repository, by settings that we write, so that nothing in the repository can name a program to run.

git takes the names of programs from four places: its settings, the hooks folder of the git directory, its environment
and its arguments. A coding agent may write the first two at any moment. So git reads a repository through a **view**: a
git directory of our own in a temporary folder. Its config file is ours and holds only settings from `_PLAIN`, whose
values are plain data; it has no hooks. Objects and refs are links to the repository's, HEAD and index are copies.
What is in the repository may change meanwhile: that changes what git reads, and never what git runs.

Attributes stay in force. They name drivers, and the settings that say what a driver runs are not in a view.

Two commands read the repository's own settings (`OwnSettings`): `rev-parse` for its folders and `config --list`.
Neither opens an object, the index or a connection.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from typing import IO

# What a command said, whether that was cut off, and what it complained of.
Output = namedtuple("Output", "status output is_cut complaint")

_ELSEWHERE = "/opt/homebrew/bin:/usr/local/bin:/opt/local/bin:/usr/bin:/bin"
_APPLES = "/usr/bin/git"
_APPLES_TOOLS = ("/Library/Developer/CommandLineTools/usr/bin/git", "/Applications/Xcode.app")
ALWAYS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "--no-pager", "--literal-pathspecs")
# A view has no remotes to fetch from. This is for the two commands that see the repository's own.
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
MOST_OUTPUT = 8_000_000
_CHUNK = 65_536
_LARGEST_HEAD = 4_096
# Ten times that of the largest repositories. A file may claim any size, and its copy would fill the disk.
_LARGEST_COPY = 512 * 1024 * 1024

# Bytes that git may take for itself while it reads. The largest repositories need a tenth; a link to /dev/zero in the
# place of a ref or of attributes would have all there is.
_MOST_MEMORY = 2 * 1024 * 1024 * 1024

# Settings that change what git tells of files and that cannot name a program. Everything else is left out.
_PLAIN = frozenset(
    "core." + name
    for name in (
        *("filemode", "symlinks", "ignorecase", "precomposeunicode", "trustctime", "checkstat"),
        *("autocrlf", "eol", "bigfilethreshold", "quotepath", "abbrev", "protecthfs", "protectntfs"),
        *("sparsecheckout", "sparsecheckoutcone", "untrackedcache", "usereplacerefs", "sharedrepository"),
    )
) | {
    *("diff.renamelimit", "diff.algorithm", "diff.context", "diff.interhunkcontext", "diff.indentheuristic"),
    *("diff.suppressblankempty", "sparse.expectfilesoutsideofpatterns"),
}
_PLAIN_VALUE = re.compile(rb"[A-Za-z0-9 ,._+-]{0,64}")
# Paths of files that hold patterns, and what git takes if they are not set. A view has a home of its own.
_FILES = {"core.excludesfile": "git/ignore", "core.attributesfile": "git/attributes"}
_TRUE = (b"true", b"yes", b"on", b"1", None)

# What a view shares with the repository. A link leads to data: no setting is in any of them. Logs of refs are not
# shared: git follows a symbolic link in their place, and would add a line of the repository's choice to any file.
_SHARED = ("objects", "refs", "packed-refs", "reftable", "shallow", "worktrees")
_SHARED_INFO = ("exclude", "attributes", "grafts")
_OWN_INFO = "info/sparse-checkout"
_SHARED_INDEX = re.compile("sharedindex\\.(?:[0-9a-f]{40}|[0-9a-f]{64})")
_LINK = b"link"
_LENGTH_SIZE = 4
_DIGEST_SIZES = (20, 32)


class GitError(Exception):
    """It cannot be done, and nothing was; the message says why."""


class Slow(GitError):
    """git did not come to an end."""


# Where a repository is. `own` is the git directory of this work tree, `common` what all of them share; `top` is empty
# in a bare repository. `settings` has the last value of each key, None where a key stands without one.
Repository = namedtuple("Repository", "path top own common is_bare settings")


class OwnSettings:
    """git with the repository's own settings, in one folder, until a deadline. Only for commands that run nothing that
    the settings name, and for those that the user asked for."""

    def __init__(self, folder: str, until: float, more: tuple[str, ...] = (), *, may_fetch: bool = False) -> None:
        check_folder(folder)
        self._folder = folder
        self._until = until
        self._environment = {} if may_fetch else dict(_OFFLINE)
        self._words = [find_git(), *more, *ALWAYS, "-C", folder]

    def run(self, *words: str) -> Output:
        return run([*self._words, *words], self._until, MOST_OUTPUT, self._environment)

    def read(self, *words: str) -> bytes:
        """All that it says; raises GitError if it refuses."""
        return _whole(self.run(*words))

    def path(self, *words: str) -> str:
        return self.resolved(self.read(*words)[:-1])

    def resolved(self, found: bytes) -> str:
        """A path with all links followed. It is told to others, so it has to be text."""
        try:
            return os.path.realpath(os.path.join(self._folder, found.decode()))
        except UnicodeDecodeError:
            raise GitError("its path is not UTF-8: %s" % text(found)) from None

    def settings(self) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for each in self.read("config", "--null", "--list").split(b"\0"):
            key, separator, value = each.partition(b"\n")
            if key:
                found[os.fsdecode(key)] = value if separator else None
        return found


def find_repository(folder: str, until: float) -> Repository:
    """The repository around a folder. Raises GitError where there is none."""
    git = OwnSettings(folder, until)
    answer = git.run("rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir")
    if answer.status:
        if "not a git repository" in answer.complaint:
            raise GitError("%s is in no git repository" % shown(folder))
        raise GitError("git refuses %s: %s" % (shown(folder), answer.complaint))
    bare, inside, own = answer.output[:-1].split(b"\n", 2)
    is_bare = bare == b"true"
    if inside != b"true" and not is_bare:
        raise GitError("%s is inside the folder that git itself keeps" % shown(folder))
    own_folder = git.resolved(own)
    top = "" if is_bare else git.path("rev-parse", "--show-toplevel")
    if top:
        _check_top(top, own_folder)
    return Repository(folder, top, own_folder, _common(git, own_folder), is_bare, git.settings())


def _check_top(top: str, own: str) -> None:
    """Raise GitError unless `.git` in the work tree is that git directory or leads to it, as in every work tree and
    submodule. By `core.worktree` alone, an agent could have any folder of the user's read as its own."""
    found = os.path.join(top, ".git")
    try:
        if not os.path.isdir(found):
            word, _, path = _small_file(found).partition(b" ")
            if word != b"gitdir:":
                raise GitError("%s leads to no git folder" % shown(found))
            found = os.path.join(top, os.fsdecode(path.rstrip(b"\r\n")))
        if os.path.samefile(found, own):
            return
    except OSError:
        pass
    raise GitError("its settings say that its files are in %s, which is another repository or none" % shown(top))


def is_true(settings: dict[str, bytes | None], key: str) -> bool:
    value = settings.get(key, b"")
    return (value if value is None else value.lower()) in _TRUE


class View:
    """git with settings of our own on a repository. It runs no program, whatever is in the repository."""

    def __init__(self, repository: Repository, until: float, *, is_empty: bool = False) -> None:
        """With `is_empty` its index begins without files, in place of a copy of the repository's."""
        self._repository = repository
        self._until = until
        self._is_empty = is_empty
        # The file that git uses as its index.
        self.index = ""
        self._environment: dict[str, str] = {}
        self._words: list[str] = []
        self._holder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> View:
        self._holder = tempfile.TemporaryDirectory(prefix="agtmux-")
        try:
            self._make(self._holder.name)
        except OSError as error:
            self._holder.cleanup()
            raise GitError("its git folder cannot be read: %s" % error.strerror) from None
        except BaseException:
            self._holder.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._holder is not None:
            self._holder.cleanup()

    def run(self, *words: str, most: int = MOST_OUTPUT, content: IO[bytes] | None = None) -> Output:
        return run([*self._words, *words], self._until, most, self._environment, content, _MOST_MEMORY)

    def read(self, *words: str, most: int = MOST_OUTPUT) -> bytes:
        """All that it says; raises GitError if it refuses, or says too much."""
        return _whole(self.run(*words, most=most))

    def line(self, *words: str) -> str:
        """Empty if it refuses."""
        answer = self.run(*words)
        return "" if answer.status else answer.output.decode("utf-8", "replace").rstrip("\n")

    def has_file(self, ref: str) -> bool:
        """Whether something is in the place of a ref, whether git can read it or not."""
        return os.path.lexists(os.path.join(self._repository.common, ref))

    def _make(self, folder: str) -> None:
        repository = self._repository
        common, own, home = (os.path.join(folder, name) for name in ("common", "own", "home"))
        is_main = repository.own == repository.common
        for each in (common, common + "/info", own, own + "/info", home):
            os.mkdir(each, 0o700)
        for name in _SHARED:
            os.symlink(os.path.join(repository.common, name), os.path.join(common, name))
        for name in _SHARED_INFO:
            os.symlink(os.path.join(repository.common, "info", name), os.path.join(common, "info", name))
        used = common if is_main else own
        os.symlink(os.path.join(repository.own, _OWN_INFO), os.path.join(used, _OWN_INFO))
        _write(common + "/HEAD", _head(repository.common))
        if not is_main:
            os.symlink(os.path.join(repository.own, "reftable"), own + "/reftable")
            _write(own + "/HEAD", _head(repository.own))
            _write(own + "/commondir", b"../common\n")
        _write(common + "/config", _config(repository.settings))
        self.index = os.path.join(used, "index")
        if not self._is_empty:
            _copy_index(repository.own, used, self._until)
        self._environment = {
            "GIT_DIR": used,
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **_OFFLINE,
            **_committer(repository.settings),
        }
        if repository.top:
            self._environment["GIT_WORK_TREE"] = repository.top
        # At its top, or names would be those below the folder.
        self._words = [find_git(), *ALWAYS, "-C", repository.top or folder]


def _common(git: OwnSettings, own: str) -> str:
    try:
        found = _small_file(os.path.join(own, "commondir"))
    except FileNotFoundError:
        return own
    except OSError as error:
        raise GitError("its git folder cannot be read: %s" % error.strerror) from None
    return git.resolved(os.path.join(os.fsencode(own), found.rstrip(b"\r\n")))


def _config(settings: dict[str, bytes | None]) -> bytes:
    """The config file of a view. Its values are the repository's, its keys are none that name a program."""
    entries = {"core.repositoryformatversion": b"0"}
    version = settings.get("core.repositoryformatversion")
    if version is not None and version.isdigit() and int(version) >= 1:
        for key, known in (("extensions.objectformat", (b"sha1", b"sha256")), ("extensions.refstorage", _BACKENDS)):
            value = settings.get(key)
            if value is None:
                continue
            if value.lower() not in known:
                raise GitError("it is kept in a format that is not known here: %s" % text(value))
            entries.update({"core.repositoryformatversion": b"1", key: value.lower()})
    for key in sorted(_PLAIN & settings.keys()):
        value = settings[key]
        if value is None or _PLAIN_VALUE.fullmatch(value):
            entries[key] = b"true" if value is None else value
    for key, default in _FILES.items():
        path = settings.get(key)
        if path is None:
            folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
            path = os.fsencode(os.path.join(folder, default))
        entries[key] = os.path.expanduser(path)
    lines = []
    for key, value in entries.items():
        section, _, name = key.partition(".")
        quoted = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        lines.append(b'[%s]\n\t%s = "%s"\n' % (section.encode(), name.encode(), quoted))
    return b"".join(lines)


_BACKENDS = (b"files", b"reftable")


def _committer(settings: dict[str, bytes | None]) -> dict[str, str]:
    """For the log of a ref that is made."""
    names = {"GIT_COMMITTER_NAME": "user.name", "GIT_COMMITTER_EMAIL": "user.email"}
    found = {variable: settings.get(key) for variable, key in names.items()}
    return {variable: os.fsdecode(value) for variable, value in found.items() if value}


def _head(folder: str) -> bytes:
    path = os.path.join(folder, "HEAD")
    with contextlib.suppress(OSError):
        # As git made it long ago.
        target = os.readlink(path)
        if target.startswith("refs/"):
            return b"ref: %s\n" % os.fsencode(target)
    return _small_file(path)


def _small_file(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise GitError("its git folder cannot be read: %s is no file" % shown(path))
        return file.read(_LARGEST_HEAD)


def _copy_index(source: str, folder: str, until: float) -> None:
    """git writes what it has found out into the index, also if it is told to leave that. It gets a copy, with its time:
    git looks into a file that has been written in the same second as the index."""
    index = os.path.join(folder, "index")
    try:
        copy_file(os.path.join(source, "index"), index, until)
    except FileNotFoundError:
        # There is none before the first file was added.
        return
    shared = {name for name in os.listdir(source) if _SHARED_INDEX.fullmatch(name)}
    name = _linked(index, shared) if shared else ""
    if name:
        copy_file(os.path.join(source, name), os.path.join(folder, name), until)


def _linked(index: str, shared: set[str]) -> str:
    """Which of these files a split index goes with: its part called `link` names one by its digest. Never more than
    one, as each may be large."""
    with open(index, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            at = content.find(_LINK)
            while at >= 0:
                begin = at + len(_LINK) + _LENGTH_SIZE
                for size in _DIGEST_SIZES:
                    name = "sharedindex." + content[begin : begin + size].hex()
                    if name in shared:
                        return name
                # A path may have that word in it.
                at = content.find(_LINK, at + 1)
    return ""


def copy_file(source: str, target: str, until: float) -> None:
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    # Not through a link that was put in the target's place.
    with open(descriptor, "rb") as file, open(target, "xb") as copy:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise GitError("its git folder cannot be read: %s is no file" % shown(source))
        size = 0
        for chunk in iter(lambda: file.read(1 << 20), b""):
            size += len(chunk)
            if max(size, status.st_size) > _LARGEST_COPY:
                raise GitError("its git folder cannot be read: %s is too large" % shown(source))
            if time.monotonic() > until:
                raise Slow("%s was not copied in time" % shown(source))
            copy.write(chunk)
        copy.flush()
        os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _whole(answer: Output) -> bytes:
    if answer.status or answer.is_cut:
        raise GitError("git refused: %s" % (answer.complaint if answer.status else "there is too much of it"))
    output: bytes = answer.output
    return output


def check_folder(folder: str) -> None:
    if not os.path.isabs(folder) or "\0" in folder:
        raise GitError("%s is no path from the root" % shown(folder))
    if not os.path.isdir(folder):
        raise GitError("there is no folder %s" % shown(folder))


def find_git() -> str:
    path = shutil.which("git") or shutil.which("git", path=_ELSEWHERE)
    # Apple's own is a placeholder, which asks the user to install the real one when it is run.
    is_placeholder = sys.platform == "darwin" and path == _APPLES and not any(map(os.path.exists, _APPLES_TOOLS))
    if path is None or is_placeholder:
        raise GitError("git is not installed there")
    return path


def run(
    words: list[str],
    until: float,
    most: int,
    more: dict[str, str],
    content: IO[bytes] | None = None,
    memory: int | None = None,
) -> Output:
    """`most` are bytes of its output. `memory` are bytes that it may have, where a process can be kept to that: macOS
    knows no such limit."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LC_", "LANGUAGE"))
    }
    environment.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C", **more)
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL if content is None else content,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment,
                # What it starts ends with it.
                start_new_session=True,
            )
        except OSError as error:
            raise GitError("git cannot be run: %s" % error.strerror) from None
        try:
            if memory is not None and sys.platform == "linux":
                # OSError: it has ended. ValueError: its limit is lower, and cannot be raised.
                with contextlib.suppress(OSError, ValueError):
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (memory, memory))
            output, is_cut = _gathered(process, until, most)
            if not is_cut:
                process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            raise Slow("git did not come to an end in time") from None
        finally:
            if process.returncode is None:
                _kill(process)
            if process.stdout is not None:
                process.stdout.close()
        complaints.seek(0)
        return Output(
            process.returncode, output, is_cut, shown(text(complaints.read(1_000)).strip()) or "no reason given"
        )


def _gathered(process: subprocess.Popen[bytes], until: float, most: int) -> tuple[bytes, bool]:
    """What it says, and whether that is not all."""
    said: list[bytes] = []
    size = 0
    assert process.stdout is not None
    reading = process.stdout.fileno()
    # Not `select`, which fails where a process has more than a thousand files open.
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while size <= most:
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1_000):
            raise subprocess.TimeoutExpired("git", 0)
        chunk = os.read(reading, _CHUNK)
        if not chunk:
            return b"".join(said), False
        said.append(chunk)
        size += len(chunk)
    return b"".join(said)[:most], True


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()


def text(name: bytes) -> str:
    """A name of a file as text; what is none of it is told by its bytes."""
    return name.decode("utf-8", "backslashreplace")


def shown(words: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in words)[:300]
