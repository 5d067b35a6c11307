"""The entry in a JSON file: text in, text out."""

from __future__ import annotations

from typing import Any

from agtmux.agents.install.jsonc import JsoncError, Kind, Node, as_python, parse
from agtmux.agents.install.splice import append, document, starts_with_space, take_out
from agtmux.agents.mcp.sheet import NAME


def found(text: str, under: str) -> Any:
    """The entry of our name, whoever wrote it; None if there is none."""
    servers = _servers(text, parse(text), under)
    entry = None if servers is None else servers.get(NAME)
    return None if entry is None else as_python(entry)


def added(text: str | None, under: str, entry: dict[str, Any]) -> str:
    """The text with the entry, which it does not have yet."""
    if text is None:
        return document({under: {NAME: entry}})
    root = parse(text)
    servers = _servers(text, root, under)
    if servers is None:
        return append(text, root, root, [(under, {NAME: entry})])
    return append(text, root, servers, [(NAME, entry)])


def removed(text: str, under: str) -> str | None:
    """The text without the entry and without the object made for it; None if the file was made for it."""
    root = parse(text)
    # The last of that name is the one that counts, and what it hid must not come to light.
    while (servers := _servers(text, root, under)) is not None and servers.get(NAME) is not None:
        may_be_made = _looks_made(text, root, under)
        at_servers = max(at for at, each in enumerate(root.elements) if each.node is servers)
        at_entry = max(at for at, each in enumerate(servers.elements) if each.key == NAME)
        text = take_out(text, ((root, at_servers), (servers, at_entry)))
        if may_be_made and "".join(text.split()) == "{}":
            return None
        root = parse(text)
    return text


def _servers(text: str, root: Node, under: str) -> Node | None:
    if root.kind is not Kind.OBJECT:
        raise JsoncError(f"an object was expected, and here is {root.kind.value}", text, root.start)
    servers = root.get(under)
    if servers is not None and servers.kind is not Kind.OBJECT:
        raise JsoncError(f'"{under}" should be an object, and is {servers.kind.value}', text, servers.start)
    return servers


def _looks_made(text: str, root: Node, under: str) -> bool:
    """Whether the file may be one that `added` began: nothing around it, and ours in front."""
    around = text[: root.start] + text[root.end :].strip()
    return not around and root.elements[0].key == under and starts_with_space(text, root)
