"""Changes of real files, as the system tells them and as looking finds them."""

import itertools
import os
import resource
import select
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agtmux.probe.watching import Scanner, Watcher, read_tail

Watch = Callable[..., Watcher]
both_depths = pytest.mark.parametrize("pattern", ["*.json", "*/*.json"])
by_inotify = pytest.mark.skipif(sys.platform != "linux", reason="only inotify names the file")


def a_rule(folder: Path, pattern: str) -> dict[str, object]:
    return {"name": folder.name, "folder": str(folder), "pattern": pattern, "depth": pattern.count("/")}


@pytest.fixture(params=["told", "looking"])
def watch(request, root: Path) -> Iterator[Watch]:
    watchers = []

    def begin(pattern: str, *folders: Path) -> Watcher:
        rules = [a_rule(folder, pattern) for folder in folders or (root,)]
        # A second later each time: what cannot be watched is looked at again.
        watchers.append(Watcher(rules, Scanner() if request.param == "looking" else None, itertools.count().__next__))
        return watchers[-1]

    yield begin
    for watcher in watchers:
        watcher.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def told(watcher: Watcher) -> dict[str, bool]:
    """What one call tells: the last two parts of each path, and whether it is gone."""
    changes = watcher.changes()
    assert len({(change["name"], change["path"]) for change in changes}) == len(changes)
    return {"/".join(Path(str(change["path"])).parts[-2:]): bool(change["gone"]) for change in changes}


def soon(watcher: Watcher) -> dict[str, bool]:
    """What is told after waking up."""
    if watcher.fileno() is not None:
        assert select.select([watcher.fileno()], [], [], 5.0)[0], "nobody woke us"
    return told(watcher)


@both_depths
def test_what_happens_to_a_file_is_told_once(watch: Watch, root: Path, pattern: str):
    folder = root / "sub" if "/" in pattern else root
    folder.mkdir(exist_ok=True)
    one, two, other = folder / "1.json", folder / "2.json", folder / "other"
    first, second = f"{folder.name}/1.json", f"{folder.name}/2.json"
    one.write_text("1")
    other.write_text("1")
    watcher = watch(pattern)
    assert (told(watcher), told(watcher)) == ({first: False}, {})
    with one.open("a") as appended:
        appended.write("2")
    assert (soon(watcher), told(watcher)) == ({first: False}, {})
    other.write_text("written aside")
    other.replace(one)
    assert (soon(watcher), told(watcher)) == ({first: False}, {})
    one.rename(two)
    assert (soon(watcher), told(watcher)) == ({first: True, second: False}, {})
    two.unlink()
    assert (soon(watcher), told(watcher)) == ({second: True}, {})
    other.write_text("nobody's business")
    assert soon(watcher) == {}


@by_inotify
def test_a_change_that_leaves_no_trace_is_told(root: Path):
    file = root / "1.json"
    file.write_text("1")
    watcher = Watcher([a_rule(root, "*.json")])
    assert told(watcher) and watcher.is_told_all()
    before = file.stat()
    file.write_text("2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert soon(watcher) == {"root/1.json": False}
    watcher.close()


@both_depths
def test_a_folder_that_comes_goes_and_comes_again_is_noticed(watch: Watch, root: Path, pattern: str):
    ready = root.with_name("ready")
    file = root / ("sub/1.json" if "/" in pattern else "1.json")
    name = f"{file.parent.name}/1.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("1")
    root.rename(ready)
    watcher = watch(pattern)
    assert told(watcher) == {} and not watcher.is_told_all()
    shutil.copytree(ready, root)
    assert told(watcher) == {name: False}
    shutil.rmtree(root)
    assert soon(watcher) == {name: True}
    ready.rename(root)
    assert told(watcher) == {name: False}
    root.rename(ready)
    assert soon(watcher) == {name: True}
    shutil.copytree(ready, root)
    assert told(watcher) == {name: False}
    shutil.rmtree(root)
    shutil.copytree(ready, root)
    # The new one may have the inodes of the old one.
    assert soon(watcher).get(name) in (False, None)
    file.write_text("more")
    assert soon(watcher) == {name: False}


def test_folders_that_come_and_go_below_are_noticed(watch: Watch, root: Path):
    watcher = watch("*/events.jsonl")
    assert told(watcher) == {}
    (root / "events.jsonl").write_text("not deep enough")
    assert soon(watcher) == {}
    for number in range(20):
        (root / str(number)).mkdir()
        (root / str(number) / "events.jsonl").write_text("1")
    assert soon(watcher) == {f"{number}/events.jsonl": False for number in range(20)}
    (root / "0").rename(root / "zero")
    shutil.rmtree(root / "1")
    assert soon(watcher) == {"0/events.jsonl": True, "zero/events.jsonl": False, "1/events.jsonl": True}
    (root / "zero" / "events.jsonl").write_text("more")
    assert soon(watcher) == {"zero/events.jsonl": False}


def test_links_lead_nowhere_but_the_folder_itself_may_be_one(watch: Watch, root: Path, tmp_path: Path):
    (root / "sub").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "1.json").write_text("secret")
    (root / "sub" / "1.json").symlink_to(tmp_path / "out" / "1.json")
    (root / "link").symlink_to(tmp_path / "out")
    os.mkfifo(root / "sub" / "pipe.json")
    (tmp_path / "linked").symlink_to(root)
    watcher = watch("*/*.json", tmp_path / "linked")
    assert told(watcher) == {}
    (root / "sub" / "2.json").symlink_to(tmp_path / "out" / "1.json")
    (root / "sub" / "3.json").write_text("1")
    assert soon(watcher) == {"sub/3.json": False}


@both_depths
def test_the_newest_are_told_and_the_others_are_not_called_gone(watch: Watch, root: Path, pattern: str):
    def write(name: str) -> Path:
        file = root / name / "1.json" if "/" in pattern else root / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
        return file

    files = [write(str(number)) for number in range(520)]
    for number, file in enumerate(files):
        os.utime(file.parent, (1, 1))
        os.utime(file, (number, number))
    watcher = watch(pattern)
    # One of 500 is the root.
    newest = {"/".join(file.parts[-2:]): False for file in files[21 if "/" in pattern else 20 :]}
    assert told(watcher) == newest
    write("new")
    assert set(soon(watcher).values()) == {False}
    assert told(watcher) == {}


@by_inotify
def test_what_was_lost_in_a_flood_is_looked_for(root: Path):
    watcher = Watcher([a_rule(root, "*.json")])
    assert told(watcher) == {}
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with (root / "one").open("wb", buffering=0) as one, (root / "two").open("wb", buffering=0) as two:
        for _ in range(limit // 2 + 10):
            one.write(b"1")
            two.write(b"2")
    shutil.rmtree(root)
    root.mkdir()
    (root / "late.json").write_text("1")
    assert soon(watcher) == {"root/late.json": False}
    (root / "late.json").unlink()
    assert soon(watcher) == {"root/late.json": True}
    watcher.close()


class Late(Scanner):
    """Tells nothing, and while it begins to watch something happens."""

    most = 1

    def dirty(self) -> set[str]:
        return set()

    def _begin(self, path: str) -> int:
        (Path(path) / "late.json").write_text("1")
        return 1


def test_what_happens_while_we_begin_to_watch_is_told(root: Path):
    assert told(Watcher([a_rule(root, "*.json")], Late())) == {"root/late.json": False}


def test_what_is_not_watched_is_looked_at_every_second(root: Path, tmp_path: Path):
    times = iter([5.0, 5.9, 6.1])
    watcher = Watcher([a_rule(root, "*.json"), a_rule(tmp_path, "*.json")], Late(), times.__next__)
    assert told(watcher) and not watcher.is_told_all()
    for folder in (root, tmp_path):
        (folder / "1.json").write_text("1")
    assert told(watcher) == {}
    assert set(told(watcher)) == {"root/1.json", f"{tmp_path.name}/1.json"}


def test_rules_may_share_a_folder_by_its_name_or_by_another(watch: Watch, root: Path, tmp_path: Path):
    (tmp_path / "alias").symlink_to(root)
    watcher = watch("*.json", root, root, tmp_path / "alias")
    assert told(watcher) == {}
    (root / "1.json").write_text("1")
    assert [change["name"] for change in watcher.changes()] == ["root", "root", "alias"]


def test_what_cannot_be_seen_is_not_called_gone(watch: Watch, root: Path):
    (root / "1.json").write_text("1")
    watcher = watch("*.json")
    assert told(watcher) == {"root/1.json": False}
    (root / "sub").mkdir()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        assert watcher.changes() == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    (root / "2.json").write_text("1")
    assert told(watcher) == {"root/2.json": False}


@pytest.mark.parametrize(("pattern", "depth"), [("*.json", 1), ("*/*.json", 0), ("*/*/*.json", 2)])
def test_a_rule_whose_pattern_and_depth_disagree_is_refused(pattern: str, depth: int):
    with pytest.raises(ValueError, match="rule x: a pattern"):
        Watcher([{"name": "x", "folder": "~", "pattern": pattern, "depth": depth}])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"one\ntwo", "one\ntwo"),
        (b"0123456789", "0123456789"),
        (b"0123456789a", ""),
        (b"ones\n678\na\n", "678\na\n"),
        (b"two\n56789abcd\n", "56789abcd\n"),
        (b"caf\xc3\xa9 au lait\n\xff\xc3\xa9\n", "\ufffd\u00e9\n"),
    ],
)
def test_a_tail_is_the_lines_that_fit(tmp_path: Path, content: bytes, text: str):
    (tmp_path / "file").write_bytes(content)
    assert read_tail(str(tmp_path / "file"), 10) == text


def test_a_tail_is_of_a_file_alone(tmp_path: Path):
    (tmp_path / "file").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert [read_tail(str(tmp_path / name)) for name in ("link", "pipe", "/dev/zero", ".", "none")] == [""] * 5
