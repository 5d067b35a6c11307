"""That a file grows is told once, also where it is not there yet or is another by now."""

import time
from pathlib import Path

from agtmux.probe.following import Following


def grown(following: Following, limit: float = 5.0) -> list[str]:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if found := following.grown():
            return found
        time.sleep(0.01)
    return []


def test_a_file_that_grows_comes_or_is_replaced_is_told(tmp_path: Path):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("x")
    following = Following()
    try:
        following.follow([str(path), str(other)])
        assert following.grown() == []
        path.write_text("xy")
        assert grown(following) == [str(path)]
        assert following.grown() == []
        other.write_text("new")
        assert grown(following) == [str(other)]
        path.unlink()
        assert grown(following) == [str(path)]
        following.follow([])
        other.write_text("newer")
        assert following.grown() == []
    finally:
        following.close()


def test_nothing_is_watched_for_nobody():
    following = Following()
    following.follow([])
    assert following.fileno() is None
    assert following.grown() == []
    following.close()
