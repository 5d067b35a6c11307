"""A file that grows is told whole line by whole line, each once, whatever becomes of it."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.probe import slices

TAIL = 1_000_000


class Reader:
    def __init__(self, path: Path, most: int = 64, tail: int = TAIL) -> None:
        self.path, self.most, self.tail = path, most, tail
        self.place: tuple[int, str, bool] = (0, "", False)
        self.told: list[bytes] = []
        self.starts = 0

    def read(self) -> None:
        while True:
            part = slices.read(str(self.path), *self.place, self.most, self.tail)
            if not part["is_there"]:
                return
            self.starts += part["is_anew"] and self.place[0] > 0
            self.told += [line + b"\n" for line in part["lines"].split(b"\n")[:-1]]
            self.place = part["offset"], part["mark"], part["is_within"]
            if not part["has_more"]:
                return


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=100).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    cuts=st.lists(st.integers(1, 80), min_size=1, max_size=40),
    most=st.integers(16, 90),
)
def test_lines_that_fit_are_told_once_and_in_order_however_they_are_written(tmp_path_factory, lines, cuts, most):
    path = tmp_path_factory.mktemp("slices") / "log"
    data = b"".join(line + b"\n" for line in lines)
    reader = Reader(path, most)
    at = 0
    for number in range(len(data) + len(cuts)):
        step = cuts[number % len(cuts)]
        with path.open("ab") as file:
            file.write(data[at : at + step])
        at += step
        reader.read()
        if at >= len(data):
            break
    reader.read()
    # One that is exactly as long as what is read at once has its end beyond it.
    assert reader.told == [line + b"\n" for line in lines if len(line) < most]


def test_half_a_line_waits_for_its_other_half(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    reader = Reader(path)
    reader.read()
    assert reader.told == [b"one\n"]
    path.write_bytes(b"one\ntwo\n")
    reader.read()
    assert reader.told == [b"one\n", b"two\n"]


def test_a_file_that_was_cut_replaced_or_put_back_is_read_anew(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    reader = Reader(path)
    reader.read()
    path.write_bytes(b"new\n")
    reader.read()
    # As long as before, with something else in it.
    path.write_bytes(b"nev\n")
    reader.read()
    path.unlink()
    reader.read()
    path.write_bytes(b"nev\nmore\n")
    reader.read()
    assert reader.told == [b"one\n", b"two\n", b"new\n", b"nev\n", b"more\n"]
    assert reader.starts == 2


def test_of_a_huge_file_the_end_is_told(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(100_000)))
    reader = Reader(path, most=4096, tail=1_000)
    reader.read()
    assert reader.told[-1] == b"line 99999\n"
    assert 80 < len(reader.told) < 100
    assert all(line.startswith(b"line ") for line in reader.told)


def test_a_line_of_50_megabytes_is_passed_over_and_the_next_is_told(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"before\n" + b"x" * 50_000_000 + b"\nafter\n")
    reader = Reader(path, most=1_000_000, tail=100_000_000)
    reader.read()
    assert reader.told == [b"before\n", b"after\n"]


def test_what_follows_several_lines_that_are_too_long_does_not_wait_for_more(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"x" * 200 + b"\n" for _ in range(7)) + b"after\n")
    reader = Reader(path)
    reader.read()
    assert reader.told == [b"after\n"]
    path.write_bytes(b"y" * 200 + b"\n" + b"z" * 200 + b"\nlast\n")
    cut = Reader(path, tail=300)
    cut.read()
    assert cut.told == [b"last\n"]


def test_what_is_no_file_is_not_read(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "log")
    (tmp_path / "log").write_bytes(b"x\n")
    for path in (tmp_path, tmp_path / "link", tmp_path / "none"):
        assert slices.read(str(path), 0, "", False, 64, 64) == {"is_there": False}
