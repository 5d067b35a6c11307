"""What a tool is: a name and a sentence for agents, what it takes and gives, and who does it.

Results are types, and their schemas are made from them. What goes wrong is an AgtmuxError whose sentence says what to
do next, as for people.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from agtmux.bridge.caller import Caller
from agtmux.domain.errors import AgtmuxError, ErrorCode


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    takes: type[msgspec.Struct]
    gives: type[msgspec.Struct]
    # A method of one of the desks, and which.
    does: Callable[[Any, Caller, Any], Awaitable[msgspec.Struct]]
    of: type[object]
    # Whether calling it twice is the same as calling it once, or never.
    is_read_only: bool = False
    # Whether it may end or undo something.
    is_destructive: bool = False

    async def call(self, desk: object, caller: Caller, arguments: object) -> msgspec.Struct:
        try:
            asked = msgspec.convert(arguments if arguments is not None else {}, self.takes)
        except msgspec.ValidationError as error:
            raise AgtmuxError(ErrorCode.USAGE, f"{self.name} was called wrongly: {error}") from None
        return await self.does(desk, caller, asked)


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of an object with all in its place: not every agent follows references."""
    _, found = msgspec.json.schema_components([kind], ref_template="#/{name}")
    # Their titles are our names for them.
    definitions = {name: {key: each for key, each in one.items() if key != "title"} for name, one in found.items()}
    return dict(_inlined(definitions[kind.__name__], definitions))


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        rest = {key: each for key, each in value.items() if key != "$ref"}
        return _inlined(definitions[value["$ref"].removeprefix("#/")] | rest, definitions)
    return {key: _inlined(each, definitions) for key, each in value.items()}
