"""Who may write to whom, and how often."""

import pytest

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.limits import MailLimits
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.directory import Role
from agtmux.messages.policy import Policy


def at(seconds: float) -> Timestamp:
    return Timestamp(int(seconds * SECOND))


def refusal(policy: Policy, sender: str, receivers: list[str], seconds: float) -> AgtmuxError:
    with pytest.raises(AgtmuxError) as caught:
        policy.count(sender, receivers, at(seconds))
    return caught.value


def test_a_pair_has_so_many_a_minute_and_then_the_next():
    """orchestrator: rate limit."""
    policy = Policy(MailLimits(per_pair=2, per_sender=100))
    for seconds in (0, 10):
        policy.count("a", ["b"], at(seconds))
    error = refusal(policy, "a", ["b"], 20)
    assert (error.code, error.details["retry_after_seconds"]) == ("E_LIMIT_RATE", 40)
    # The other way, and to others, is another matter.
    policy.count("b", ["a"], at(20))
    policy.count("a", ["c"], at(20))
    policy.count("a", ["b"], at(60))
    refusal(policy, "a", ["b"], 61)


def test_a_sender_has_so_many_and_a_broadcast_counts_once():
    policy = Policy(MailLimits(per_pair=100, per_sender=2))
    policy.count("a", ["b", "c", "d"], at(0))
    policy.count("a", ["b"], at(1))
    assert "a has sent 2 messages" in refusal(policy, "a", ["e"], 2).message


def test_what_is_refused_does_not_count():
    policy = Policy(MailLimits(per_pair=1, per_sender=2))
    policy.count("a", ["b"], at(0))
    for seconds in range(1, 20):
        refusal(policy, "a", ["c", "b"], seconds)
    policy.count("a", ["c"], at(20))


def test_what_was_sent_before_a_restart_counts():
    policy = Policy(MailLimits(per_pair=1))
    policy.recall("a", "b", at(0))
    refusal(policy, "a", ["b"], 59)
    policy.count("a", ["b"], at(60))


def test_a_broadcast_before_a_restart_counts_once():
    policy = Policy(MailLimits(per_sender=2, per_pair=5))
    for receiver in ("b", "c", "d"):
        policy.recall("a", receiver, at(0))
    policy.count("a", ["b"], at(1))
    refusal(policy, "a", ["b"], 2)


@pytest.mark.parametrize(
    ("rules", "role", "pair", "is_allowed"),
    [
        ([], None, ("claude-1", "codex-2"), True),
        (["claude-* -> codex-*"], None, ("claude-1", "codex-2"), False),
        (["claude-* -> codex-*"], None, ("codex-2", "claude-1"), True),
        (["* -> user"], None, ("claude-1", "user"), False),
        (["outside -> *"], None, ("outside", "claude-1"), False),
        ([], Role("writer", "t", ("reviewer",)), ("writer", "reviewer"), True),
        ([], Role("writer", "t", ("reviewer",)), ("writer", "user"), False),
        ([], Role("writer", "t", ()), ("writer", "reviewer"), False),
        ([], Role("writer"), ("writer", "anybody"), True),
        (["writer -> reviewer"], Role("writer", "t", ("reviewer",)), ("writer", "reviewer"), False),
    ],
)
def test_who_may_write_to_whom(rules: list[str], role: Role | None, pair: tuple[str, str], is_allowed: bool) -> None:
    """orchestrator: permissions."""
    policy = Policy(MailLimits(), rules)
    if is_allowed:
        policy.check_may(pair[0], role, pair[1])
        return
    with pytest.raises(AgtmuxError) as caught:
        policy.check_may(pair[0], role, pair[1])
    assert caught.value.code == "E_FORBIDDEN" and pair[0] in caught.value.message


def test_the_silent_are_forgotten():
    policy = Policy(MailLimits())
    for number in range(10_000):
        policy.count(f"a{number}", ["b"], at(number / 1_000))
    policy.count("late", ["b"], at(200))
    assert len(policy._by_pair) == len(policy._by_sender) == 1
