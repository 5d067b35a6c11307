"""A reader of a watch stream: its lines, its cursor, and the view that they add up to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from support.http import Connection, request

Line = dict[str, Any]
ENVELOPE = {
    *("schema_version", "generated_at", "emitted_at", "stream_id", "cursor", "scope", "type", "sequence"),
    *("filters", "summary", "partial", "requested_targets", "responded_targets", "target_errors"),
}
# Which targets were looked at: told also where no item changes.
REACH = ("partial", "requested_targets", "responded_targets", "target_errors")
CONTENT = {"snapshot": {"items"}, "delta": {"changes"}, "reset": set()}


def identity_key(identity: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(identity.items()))


class Replayed:
    """What a client knows that has taken these lines; checks that they follow each other as they must."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.items: dict[object, dict[str, Any]] | None = None

    def take(self, line: Line) -> None:
        assert line.keys() == ENVELOPE | CONTENT[line["type"]], line
        assert line["cursor"] == f"{line['stream_id']}:{line['sequence']}"
        before = self.lines[-1] if self.lines else None
        if before is not None and before["stream_id"] == line["stream_id"]:
            assert line["sequence"] == before["sequence"] + 1, (before, line)
        self.lines.append(line)
        if line["type"] == "snapshot":
            self.items = {identity_key(item["identity"]): item for item in line["items"]}
        elif line["type"] == "reset":
            self.items = None
        else:
            assert self.items is not None, "a delta with nothing to apply it to"
            assert before is not None
            reach = [[each[name] for name in REACH] for each in (before, line)]
            assert line["changes"] or reach[0] != reach[1], f"a delta that says nothing, at {reach[0]}"
            for change in line["changes"]:
                self._apply(change)
        if self.items is not None and line["scope"] == "panes":
            assert line["summary"]["total"] == len(self.items)

    def _apply(self, change: dict[str, Any]) -> None:
        assert self.items is not None
        key = identity_key(change["identity"])
        if change["op"] == "delete":
            assert change.keys() == {"op", "identity"}
            del self.items[key]
        else:
            assert change.keys() == {"op", "identity", "item"}
            assert change["item"]["identity"] == change["identity"]
            assert self.items.get(key) != change["item"], "a change that changes nothing"
            self.items[key] = change["item"]

    @property
    def cursor(self) -> str:
        return str(self.lines[-1]["cursor"])

    @property
    def changes(self) -> list[object]:
        """What was told, without what is the stream's own."""
        return [(line["generated_at"], line["changes"]) for line in self.lines if line["type"] == "delta"]


class Watcher(Replayed):
    """`with Watcher(socket, "scope=panes") as watcher: watcher.until(lambda: …)`"""

    def __init__(self, socket: Path, query: str = "") -> None:
        super().__init__()
        self._socket = socket
        self._query = query
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def connect(self, cursor: str | None = None) -> None:
        query = self._query if cursor is None else f"{self._query}&cursor={cursor}"
        self._connection = Connection(self._socket)
        self._connection.send(request("GET", f"/v1/watch?{query}"))
        status, headers = self._connection.head()
        assert (status, headers["content-type"]) == (200, "application/x-ndjson"), status

    def cut(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def next(self) -> Line | None:
        assert self._connection is not None
        line = self._connection.json_line()
        if line is not None:
            self.take(line)
        return line

    def until_items(self, wanted: list[dict[str, Any]]) -> None:
        """Reads until it knows what a fresh snapshot shows."""
        expected = {identity_key(item["identity"]): item for item in wanted}
        while self.items != expected:
            assert self.next() is not None, f"the stream ended with {self.items}, not {expected}"


def decoded(body: bytes) -> list[Line]:
    return [json.loads(line) for line in body.splitlines()]
