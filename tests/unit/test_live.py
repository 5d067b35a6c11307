"""The live table in a window that is too low for it: who needs you is seen, or told of."""

import pytest

from agtmux.cli.live import within

TABLE = ["8 agents, 4 need you", "   STATE", *(f"row {number}" for number in range(1, 9))]


@pytest.mark.parametrize(
    ("height", "shown"),
    [
        (1, ["8 agents, 4 need you"]),
        (2, ["8 agents, 4 need you", "… and 8 more, 4 of them need you"]),
        (3, ["8 agents, 4 need you", "row 1", "… and 7 more, 3 of them need you"]),
        (5, ["8 agents, 4 need you", "row 1", "row 2", "row 3", "… and 5 more, 1 of them needs you"]),
        (6, ["8 agents, 4 need you", "   STATE", "row 1", "… and 7 more, 3 of them need you"]),
        (10, [*TABLE[:7], "… and 3 more"]),
        (11, [*TABLE[:8], "… and 2 more"]),
        (12, TABLE),
        (50, TABLE),
    ],
)
def test_what_does_not_fit_is_told(height: int, shown: list[str]):
    assert within(TABLE, height, None, 4) == shown


def test_nothing_is_longer_than_the_window():
    assert within(TABLE, 3, 10, 4)[-1] == "… and 7 m…"
    for height in range(1, 20):
        assert len(within(TABLE, height, 80, 4)) + (2 if height >= 6 else 0) <= height


def test_a_table_without_rows_is_its_sentence():
    assert within(["No agent is running"], 1, 80, 0) == within(["No agent is running"], 9, 80, 0)
