"""The lines around a table of panes: what is counted is what is said."""

import pytest

from agtmux.cli.panes import confidence_note, summary_line


@pytest.mark.parametrize(
    ("by_state", "needs", "line"),
    [
        (
            {"error": 1, "waiting_approval": 2, "waiting_input": 1, "running": 3, "idle": 1},
            4,
            "8 agents, 4 need you (1 error, 2 waiting_approval, 1 waiting_input); 3 running, 1 idle",
        ),
        ({"waiting_input": 1}, 1, "1 agent, 1 needs you (1 waiting_input)"),
        ({"running": 1, "unknown": 1}, 0, "2 agents, nobody needs you; 1 running, 1 unknown"),
    ],
)
def test_those_that_need_you_are_counted_apart(by_state: dict[str, int], needs: int, line: str) -> None:
    total = sum(by_state.values())
    assert summary_line({"total": total, "by_state": by_state, "needs_action": needs}) == line


def test_a_word_behind_a_state_is_explained_where_it_stands() -> None:
    sure, unsure = {"state": "idle", "confidence": "high"}, {"state": "idle", "confidence": "medium"}
    assert confidence_note([sure, {"state": "unknown", "confidence": "low"}]) is None
    assert (confidence_note([sure, unsure]) or "").startswith("(medium) says how sure")
