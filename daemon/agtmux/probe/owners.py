"""Whose folder, file and socket this is: what OpenSSH's StrictModes asks of a path, and the kernel of a connection.

Hooks send whole payloads, so nothing may go to a socket that another user put there. A path is trusted if no other
user can replace any part of it: every folder from the root down, and what symbolic links lead to, belongs to this user
or to root and is writable by no one else. In a sticky folder such as /tmp only the owner of an entry can replace it.

Part of the hook's script, which is compiled at every run: no module but those written in C, Python 3.8.
"""

import _socket
import posix
import sys

# `typing` would cost as much as half of the hook's budget; type checkers take this name for what it looks like.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Tuple

    # What `lstat` tells of a path, as far as it counts here: mode, user, group.
    Found = Tuple[int, int, int]

_KIND, _FOLDER, _LINK = 0o170000, 0o040000, 0o120000
_STICKY, _GROUP_WRITES, _OTHERS_WRITE = 0o1000, 0o020, 0o002
_MOST_LINKS = 40
# <sys/un.h> of macOS. In its struct xucred as in Linux's struct ucred, bytes 4 to 8 are the user.
_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_SIZE = 0, 1, 76


class NotOurs(PermissionError):
    """Another user owns it, or could replace it. `strerror` says what and which."""

    def __init__(self, why: str) -> None:
        super().__init__(1, why)


def connected(path: bytes, seconds: "float | None") -> "_socket.socket":
    """A connection to a socket of this user. Raises NotOurs, or OSError as `connect` does."""
    check_socket(path)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
        # A folder can be replaced between a look and a connection; a listening process cannot.
        user = peer_user(connection)
        if user is not None and user != posix.geteuid():
            raise NotOurs("the process that listens on %s belongs to user %d" % (_text(path), user))
    except BaseException:
        connection.close()
        raise
    return connection


def peer_user(connection: "_socket.socket") -> "int | None":
    """The user of the process at the other end; None where the system does not tell."""
    try:
        if sys.platform == "darwin":
            told = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_SIZE)
        else:
            told = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    except (OSError, AttributeError):
        return None
    return int.from_bytes(told[4:8], sys.byteorder) if len(told) >= 8 else None


def check_socket(path: bytes) -> None:
    """Raise NotOurs unless the socket and every folder above it are safe; FileNotFoundError if there is none."""
    user = check_path(path)[1]
    if user != posix.geteuid():
        raise NotOurs("%s belongs to user %d" % (_text(path), user))


def check_path(path: bytes) -> "Found":
    """What is at the end of the path. Raises NotOurs if another user could replace it or anything above it."""
    return walk(path if path[:1] == b"/" else posix.getcwdb() + b"/" + path, _found, _link, posix.geteuid())


def walk(
    path: bytes,
    find: "Callable[[bytes], Found]",
    read_link: "Callable[[bytes], bytes]",
    user: int,
    is_private: "Callable[[int, int], bool] | None" = None,
) -> "Found":
    """The check of an absolute path, with the file system passed in. What is missing raises as `find` does."""
    is_private = is_private or private_group
    # In a container whose users are renumbered, the owner of / is what root is elsewhere.
    found = find(b"/")
    trusted = (user, 0, found[1])
    _check(b"/", found, trusted, is_private)
    at, links = b"", 0
    rest = path.split(b"/")[::-1]
    while rest:
        name = rest.pop()
        if name in (b"", b"."):
            continue
        if name == b"..":
            at = at[: max(at.rfind(b"/"), 0)]
            found = find(at or b"/")
            continue
        here = at + b"/" + name
        found = find(here)
        if found[0] & _KIND == _LINK:
            # Its own mode means nothing. In a sticky folder its owner could point it elsewhere.
            if found[1] not in trusted:
                raise NotOurs("%s belongs to user %d" % (_text(here), found[1]))
            links += 1
            if links > _MOST_LINKS:
                raise NotOurs("too many symbolic links on the way to %s" % _text(path))
            target = read_link(here)
            if target[:1] == b"/":
                at = b""
            rest += target.split(b"/")[::-1]
            continue
        at = here
        _check(at, found, trusted, is_private)
    return found


def _check(path: bytes, found: "Found", trusted: "tuple[int, ...]", is_private: "Callable[[int, int], bool]") -> None:
    mode, user, group = found
    if user not in trusted:
        raise NotOurs("%s belongs to user %d" % (_text(path), user))
    if mode & _STICKY and mode & _KIND == _FOLDER:
        return
    if mode & _OTHERS_WRITE or (mode & _GROUP_WRITES and group != 0 and not is_private(group, trusted[0])):
        raise NotOurs("other users may write to %s" % _text(path))


_private_groups: "Dict[Tuple[int, int], bool]" = {}


def private_group(group: int, user: int) -> bool:
    """Whether the group is the user's own, as many systems make one for each user: then folders are often writable
    by it. Only asked about such folders, as it reads the user database."""
    known = _private_groups.get((group, user))
    if known is None:
        import grp
        import pwd

        try:
            person, members = pwd.getpwuid(user), grp.getgrgid(group)
            known = (
                person.pw_gid == group
                and members.gr_name == person.pw_name
                and all(name == person.pw_name for name in members.gr_mem)
            )
        except KeyError:
            known = False
        _private_groups[group, user] = known
    return known


def make_private_folders(path: bytes) -> None:
    """The folder and those above it that are missing, each of mode 0700 whatever the umask.

    Raises NotOurs, and makes nothing, where another user could replace them.
    """
    missing = []
    while path and path != b"/":
        try:
            posix.stat(path)
            break
        except FileNotFoundError:
            missing.append(path)
            path = path.rstrip(b"/")
            path = path[: max(path.rfind(b"/"), 0)]
    if missing:
        check_path(path or (b"/" if missing[-1][:1] == b"/" else b"."))
    for folder in reversed(missing):
        try:
            posix.mkdir(folder, 0o700)
        except FileExistsError:
            # Another process made it. Whether it is safe is for `check_path` to say.
            continue
        if posix.stat(folder).st_mode & 0o777 != 0o700:
            posix.chmod(folder, 0o700)


def _found(path: bytes) -> "Found":
    status = posix.lstat(path)
    return status.st_mode, status.st_uid, status.st_gid


def _link(path: bytes) -> bytes:
    return posix.readlink(path)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
