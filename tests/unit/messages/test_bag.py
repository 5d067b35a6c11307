"""A receiver's bag: whatever goes in and out, the next is the most urgent, and its size is that of what is in it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.durations import SECOND
from agtmux.domain.mail import Party, Priority, Reason, Stage
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.bag import Bag
from agtmux.messages.letters import Letter, message_of

STEPS = st.lists(
    st.tuples(st.just("push"), st.sampled_from(Priority), st.text(max_size=9), st.sampled_from(Stage))
    | st.tuples(st.just("pop"))
    | st.tuples(st.just("drop"), st.integers(0, 3))
    | st.tuples(st.just("note"), st.sampled_from(Reason)),
    max_size=40,
)


@given(STEPS)
def test_its_size_and_its_order_are_those_of_what_is_in_it(steps):
    bag, inside = Bag(), []
    for number, step in enumerate(steps):
        match step:
            case "push", priority, text, stage:
                letter = Letter(f"{text}.", priority=priority)
                message = message_of(Party("a"), Party("b"), letter, Timestamp(number), SECOND)
                message = replace(message, seq=number, stage=stage)
                bag.push(message)
                inside.append(message)
            case ("pop",) if inside:
                inside.sort(key=lambda each: each.order)
                assert bag.pop() == inside.pop(0)
            case "drop", remainder:
                bag.drop(lambda each: each.seq % 4 == remainder)
                inside = [each for each in inside if each.seq % 4 != remainder]
            case "note", reason:
                bag.note(reason)
                inside = [replace(each, reason=reason) for each in inside]
        assert len(bag) == len(inside)
        assert bag.size == sum(each.size for each in inside)
        assert bag.first == min(inside, key=lambda each: each.order, default=None)
