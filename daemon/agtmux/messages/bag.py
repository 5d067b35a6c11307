"""What waits for one receiver, in the order in which it is to be delivered."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

from agtmux.domain.mail import Message, Reason


class Bag:
    def __init__(self) -> None:
        # A heap: what comes next is the first.
        self._heap: list[tuple[tuple[bool, int, int], Message]] = []
        # Bytes of all that is in it.
        self.size = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Message]:
        """In no order."""
        return (message for _, message in self._heap)

    @property
    def first(self) -> Message | None:
        return self._heap[0][1] if self._heap else None

    def push(self, message: Message) -> None:
        heapq.heappush(self._heap, (message.order, message))
        self.size += message.size

    def pop(self) -> Message:
        message = heapq.heappop(self._heap)[1]
        self.size -= message.size
        return message

    def drop(self, is_gone: Callable[[Message], bool]) -> None:
        self._heap = [each for each in self._heap if not is_gone(each[1])]
        heapq.heapify(self._heap)
        self.size = sum(message.size for message in self)

    def note(self, reason: Reason) -> None:
        """Why they wait, all of them."""
        self._heap = [(order, replace(message, reason=reason)) for order, message in self._heap]
