"""When to look at a target again. Pure: what a look brought goes in, seconds come out."""

from __future__ import annotations

from typing import Final

# Soon after something moved, then ever more seldom.
SOONEST: Final = 0.4
_SLOWER: Final = 1.5
# A person who has just started an agent, or answered one, is not left wondering.
_LONGEST_WITH_AGENTS: Final = 1.0
# Also how long a target may be silent before it is asked whether it is still there.
LONGEST: Final = 5.0
# For so many looks after its last agent has gone, a target is looked at as if it had one: agents are restarted.
_LOOKS_AFTER_AGENTS: Final = 60


class Pace:
    """`spacing` is how long to leave the target alone, `longest` how long it may rest when it says that it rests."""

    def __init__(self) -> None:
        self.spacing = SOONEST
        self.longest = SOONEST
        self._looks_without_agents = _LOOKS_AFTER_AGENTS

    def looked(self, *, is_news: bool, is_busy: bool, has_agents: bool, is_metered: bool) -> None:
        """`is_busy`: an agent runs or waits. `is_metered`: the probe says by itself when something may have changed."""
        self.spacing = SOONEST if is_news or is_busy else min(self.spacing * _SLOWER, LONGEST)
        self._looks_without_agents = 0 if has_agents else self._looks_without_agents + 1
        # One look is not the whole story: what came with it, or right after it, is found soon, or by the next.
        self.longest = SOONEST if is_news else min(self.longest * 2, LONGEST)
        if not is_metered:
            self.longest = self.spacing
        elif self._looks_without_agents < _LOOKS_AFTER_AGENTS:
            # It is left alone this long only when it does stir.
            self.spacing = min(self.spacing, _LONGEST_WITH_AGENTS)
