"""A path is trusted exactly if no other user could replace any part of it."""

import os
import posixpath
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.probe import owners
from agtmux.probe.owners import NotOurs

US, OTHER = 1000, 2000
ROOT_GROUP, OUR_GROUP, SHARED_GROUP = 0, 1000, 100
FOLDER, LINK, SOCKET, FILE = 0o040000, 0o120000, 0o140000, 0o100000
MODES = st.sampled_from([0o700, 0o755, 0o711, 0o770, 0o775, 0o777, 0o707, 0o1777, 0o1775, 0o2775, 0o1755])
USERS = st.sampled_from([0, US, US, US, OTHER])
GROUPS = st.sampled_from([ROOT_GROUP, OUR_GROUP, SHARED_GROUP])
ENTRY = st.tuples(MODES, USERS, GROUPS)


class Tree:
    """A file system in memory: path → (mode with its kind, user, group), and where links lead."""

    def __init__(self) -> None:
        self.entries: dict[bytes, tuple[int, int, int]] = {}
        self.links: dict[bytes, bytes] = {}

    def find(self, path: bytes) -> tuple[int, int, int]:
        if path not in self.entries:
            raise FileNotFoundError(2, "No such file or directory")
        return self.entries[path]

    def walk(self, path: bytes) -> tuple[int, int, int]:
        is_private = lambda group, user: (group, user) == (OUR_GROUP, US)  # noqa: E731
        return owners.walk(path, self.find, self.links.__getitem__, US, is_private)


def may_write(entry: tuple[int, int, int]) -> bool:
    """Whether another user may write there, now or after a chmod of its own."""
    mode, user, group = entry
    return user == OTHER or bool(mode & 0o002) or (bool(mode & 0o020) and group == SHARED_GROUP)


def is_replaceable(tree: Tree, path: bytes) -> bool:
    """The definition, from the attacker's side: an entry of the path can be renamed away or written to."""
    if may_write(tree.entries[b"/"]) and not tree.entries[b"/"][0] & 0o1000:
        return True
    above = b"/"
    names = [name for name in path.split(b"/") if name]
    for number, name in enumerate(names):
        here = posixpath.join(above, name)
        folder, entry = tree.entries[above], tree.entries[here]
        if may_write(folder) and (not folder[0] & 0o1000 or OTHER in (folder[1], entry[1])):
            return True
        if entry[1] == OTHER or (number == len(names) - 1 and may_write(entry) and entry[0] & 0o170000 != FOLDER):
            return True
        # What is put into the last folder is not replaced, but it is no longer ours alone.
        if number == len(names) - 1 and may_write(entry) and not entry[0] & 0o1000:
            return True
        above = here
    return False


@given(st.lists(ENTRY, min_size=1, max_size=6), ENTRY, st.sampled_from([SOCKET, FILE, FOLDER]))
def test_a_path_is_trusted_exactly_if_no_one_else_can_replace_it(folders, last, kind):
    tree, path = Tree(), b"/"
    for number, (mode, user, group) in enumerate(folders):
        path = b"/" if number == 0 else posixpath.join(path, b"d%d" % number)
        # The owner of / counts as root does, so it is not the attacker.
        tree.entries[path] = (FOLDER | mode, 0 if number == 0 else user, group)
    path = posixpath.join(path, b"s")
    tree.entries[path] = (kind | (last[0] & 0o777 if kind != FOLDER else last[0]), *last[1:])
    try:
        tree.walk(path)
        is_trusted = True
    except NotOurs:
        is_trusted = False
    assert is_trusted is not is_replaceable(tree, path)


@given(ENTRY, ENTRY, USERS, st.booleans())
def test_a_link_is_followed_and_both_ways_are_checked(holding, target, link_user, is_absolute):
    tree = Tree()
    tree.entries = {
        b"/": (FOLDER | 0o755, 0, 0),
        b"/a": (FOLDER | holding[0], *holding[1:]),
        b"/a/l": (LINK | 0o777, link_user, 0),
        b"/b": (FOLDER | target[0], *target[1:]),
        b"/b/s": (SOCKET | 0o600, US, OUR_GROUP),
    }
    tree.links = {b"/a/l": b"/b" if is_absolute else b".././b"}
    first, second = b"/a", b"/b/s"
    is_safe = not is_replaceable(tree, first) and not is_replaceable(tree, second) and link_user != OTHER
    try:
        found = tree.walk(b"/a/l/s")
    except NotOurs:
        assert not is_safe
    else:
        assert is_safe
        assert found == tree.entries[b"/b/s"]


def test_links_that_lead_in_a_circle_end():
    tree = Tree()
    tree.entries = {b"/": (FOLDER | 0o755, 0, 0), b"/l": (LINK | 0o777, US, 0)}
    tree.links = {b"/l": b"l"}
    with pytest.raises(NotOurs, match="too many symbolic links"):
        tree.walk(b"/l")


def test_the_owner_of_the_root_folder_counts_as_root_in_a_container_that_renumbers_users():
    tree = Tree()
    tree.entries = {
        b"/": (FOLDER | 0o755, 65534, 65534),
        b"/home": (FOLDER | 0o755, 65534, 65534),
        b"/home/s": (SOCKET | 0o600, US, OUR_GROUP),
    }
    assert tree.walk(b"/home/s")[1] == US


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077, 0o277, 0o777])
def test_folders_that_are_made_are_0700_whatever_the_umask(tmp_path: Path, mask: int):
    before = os.umask(mask)
    try:
        owners.make_private_folders(os.fsencode(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


def test_the_kernel_tells_whose_process_listens(short_tmp: Path):
    path = short_tmp / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        with socket.socket(fileno=owners.connected(os.fsencode(path), 1.0).detach()) as connection:
            assert owners.peer_user(connection) == os.geteuid()


def test_a_socket_that_others_may_write_to_is_not_connected_to(short_tmp: Path):
    path = short_tmp / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        path.chmod(0o666)
        with pytest.raises(NotOurs, match="other users may write to"):
            owners.connected(os.fsencode(path), 1.0)
