"""How often a target is looked at: at once when something moves, seldom when it rests."""

from agtmux.observe.pace import LONGEST, SOONEST, Pace

QUIET = {"is_news": False, "is_busy": False, "has_agents": True, "is_metered": True}


def after(looks: int, **changes: bool) -> Pace:
    pace = Pace()
    for _ in range(looks):
        pace.looked(**(QUIET | changes))
    return pace


def test_an_agent_that_runs_or_waits_is_looked_at_every_half_second():
    assert after(50, is_busy=True).spacing == SOONEST


def test_a_target_that_rests_is_asked_whether_it_is_still_there_and_no_more():
    assert after(50).longest == LONGEST
    assert after(50, is_metered=False).longest == LONGEST


def test_one_look_is_not_the_whole_story():
    assert after(1, is_news=True).longest == SOONEST


def test_one_that_cannot_say_that_it_rests_is_looked_at_ever_more_seldom():
    pauses = [after(looks, is_metered=False).longest for looks in range(1, 10)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 1 and pauses[-1] == LONGEST


def test_news_bring_it_back_to_attention():
    pace = after(50, is_metered=False)
    pace.looked(**(QUIET | {"is_metered": False, "is_news": True}))
    assert pace.longest == SOONEST


def test_a_pane_that_scrolls_without_end_beside_idle_agents_costs_a_look_a_second():
    assert after(50).spacing == 1.0
    assert after(50, has_agents=False).spacing == LONGEST


def test_an_agent_that_is_started_again_a_while_after_its_end_is_found_within_a_second():
    pace = after(1)
    for _ in range(30):
        pace.looked(**(QUIET | {"has_agents": False}))
    assert pace.spacing == 1.0
    for _ in range(50):
        pace.looked(**(QUIET | {"has_agents": False}))
    assert pace.spacing == LONGEST
