"""Putting an element into a JSON text and taking it out again, where every other byte stays.

Taking out finds in the text alone what putting in had added, so that one undoes the other exactly. For that, three
things are fixed: an element comes last in its container; a container that is made for it starts with space; and an
empty container that was there gets its first element right after the bracket, with what it held (space, comments)
behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agtmux.agents.install.jsonc import Comment, Element, Node, comments

_SPACE: Final = " \t\r\n"

# An element to put in: its name, or None in a list, and its value.
Item = tuple[str | None, Any]
# Down to an element: containers, each with the index of the element that leads on.
Trail = tuple[tuple[Node, int], ...]


def append(text: str, root: Node, container: Node, items: Sequence[Item]) -> str:
    """Put the items behind the last element, in the style of what is there."""
    layout = _Layout(text, root, container)
    rendered = [layout.render(item) for item in items]
    if not container.elements:
        at = container.start + 1
        return text[:at] + ("," + layout.separator).join(rendered) + text[at:]
    last = container.elements[-1]
    remarks = list(comments(text, last.end, container.end - 1))
    if not remarks:
        chunk = "".join(f",{layout.separator}{one}" for one in rendered)
        return text[: last.end] + chunk + text[last.end :]
    # A comment behind the last element is about that element and stays with it.
    at = _after(last.end, remarks, last)
    after_line_comment = remarks[-1].to_line_end and at == remarks[-1].end
    first = layout.line_separator if after_line_comment else layout.separator
    chunk = first + ("," + layout.separator).join(rendered)
    if last.comma is not None:
        return text[:at] + chunk + "," + text[at:]
    return text[: last.end] + "," + text[last.end : at] + chunk + text[at:]


def remove(text: str, container: Node, index: int) -> str:
    """Take out one element with the comma and the space that came with it."""
    element = container.elements[index]
    before = container.elements[index - 1] if index else None
    bound = before.end if before else container.start + 1
    remarks = list(comments(text, bound, element.start))
    if before and not remarks:
        # The comma in front goes; the one behind, if any, is now that of the element before.
        return _cut(text, (bound, element.end))
    if bound == element.start and len(container.elements) > 1:
        following = container.elements[1]
        if not any(comments(text, element.end, following.start)):
            # The next one takes its place right after the bracket, and with it what that says of the container.
            return _cut(text, (bound, following.start))
    start = _after(bound, remarks, before)
    if _runs_on(text, start, remarks, element):
        start = element.start
    comma = before.comma if before and element.comma is None else element.comma
    return _cut(text, (start, element.end), *([] if comma is None else [(comma, comma + 1)]))


def take_out(text: str, trail: Trail) -> str:
    """Take out what the trail leads to, and the containers above that were made for it and would be left empty."""
    *above, (container, index) = trail
    while above and len(container.elements) == 1 and made_for(text, container):
        parent, at = above.pop()
        key = parent.elements[at].key
        if key is not None and len(parent.all(key)) > 1:
            # Gone, it would bring to light what it hides.
            break
        container, index = parent, at
    return remove(text, container, index)


def made_for(text: str, container: Node) -> bool:
    """Whether a container was made by `append` for the one element it holds, and nothing was added to it since."""
    (only,) = container.elements
    around = [*comments(text, container.start + 1, only.start), *comments(text, only.end, container.end - 1)]
    return starts_with_space(text, container) and not around


def starts_with_space(text: str, container: Node) -> bool:
    return text[container.start + 1] in _SPACE


def document(members: Mapping[str, Any]) -> str:
    """A new file."""
    return _pretty(members, "\n", "  ") + "\n"


class _Layout:
    """How the elements of a container are set, for those that are to join them."""

    def __init__(self, text: str, root: Node, container: Node) -> None:
        break_at = text.find("\n")
        newline = "\r\n" if break_at > 0 and text[break_at - 1] == "\r" else "\n"
        self._unit = _indentation(text, root.elements[0].start) if root.elements else None
        if container.elements:
            indentation = _indentation(text, container.elements[-1].start)
        elif break_at >= 0:
            indentation = _line_indentation(text, container.start) + (self._unit or "  ")
        else:
            indentation = None
        self._break = None if indentation is None else newline + indentation
        self.line_separator = newline + _line_indentation(text, container.start) if self._break is None else self._break
        self.separator = " " if self._break is None else self._break

    def render(self, item: Item) -> str:
        key, value = item
        name = "" if key is None else _string(key) + ": "
        if self._break is None:
            return name + _on_one_line(value)
        return name + _pretty(value, self._break, "  " if self._unit is None else self._unit)


def _pretty(value: Any, line_break: str, unit: str) -> str:
    """Everything on a line of its own; `line_break` holds the indentation of the line it starts on."""
    if not isinstance(value, Mapping | list) or not value:
        return _string(value)
    inner = line_break + unit
    if isinstance(value, Mapping):
        parts = [f"{_string(key)}: {_pretty(each, inner, unit)}" for key, each in value.items()]
        return "{" + inner + ("," + inner).join(parts) + line_break + "}"
    return "[" + inner + ("," + inner).join(_pretty(each, inner, unit) for each in value) + line_break + "]"


def _on_one_line(value: Any) -> str:
    if isinstance(value, Mapping) and value:
        return "{ " + ", ".join(f"{_string(key)}: {_on_one_line(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list) and value:
        return "[ " + ", ".join(_on_one_line(each) for each in value) + " ]"
    return _string(value)


def _string(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indentation(text: str, at: int) -> str | None:
    """The space in front of an element that is the first on its line."""
    line = text[_line_start(text, at) : at]
    return None if line.strip(_SPACE) or _line_start(text, at) == 0 else line


def _line_indentation(text: str, at: int) -> str:
    line = text[_line_start(text, at) : at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(_SPACE))]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _after(bound: int, remarks: Sequence[Comment], before: Element | None) -> int:
    """Where, between two elements, the space begins that is the second one's."""
    comma = before.comma + 1 if before and before.comma is not None else bound
    return max(bound, comma, *(remark.end for remark in remarks))


def _runs_on(text: str, start: int, remarks: Sequence[Comment], element: Element) -> bool:
    """Whether, with the element gone, what follows would become part of a comment that runs to the end of its line."""
    if not remarks or not remarks[-1].to_line_end or remarks[-1].end != start:
        return False
    rest = (
        text[element.end :] if element.comma is None else text[element.end : element.comma] + text[element.comma + 1 :]
    )
    return not rest.lstrip(" \t").startswith(("\r", "\n"))


def _cut(text: str, *spans: tuple[int, int]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text
