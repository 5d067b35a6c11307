"""The shipped schemas are those of the types, and what was promised once is still there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agtmux.api.schemas import DOCUMENTS, document

SHIPPED = Path(__file__).resolve().parents[3] / "resources" / "schemas"
# Every field of version 1 with its type; `?` marks those that may be absent. Lines are added and never changed: a
# field that goes, or that means something else, needs another `schema_version`.
PROMISED = Path(__file__).with_name("schema-v1.txt")


def fields(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in node:
        for option in node["anyOf"]:
            yield from fields(schema, option, path)
    elif "properties" in node:
        for name, value in node["properties"].items():
            where = f"{path}.{name}" + ("" if name in node["required"] else "?")
            yield where, kind_of(schema, value)
            yield from fields(schema, value, where)
    elif "items" in node:
        yield from fields(schema, node["items"], f"{path}[]")
    elif isinstance(node.get("additionalProperties"), dict):
        yield from fields(schema, node["additionalProperties"], f"{path}{{}}")


def kind_of(schema: dict[str, Any], node: dict[str, Any]) -> str:
    if "$ref" in node:
        return kind_of(schema, schema["$defs"][node["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in node:
        return "|".join(sorted(kind_of(schema, option) for option in node["anyOf"]))
    if "enum" in node:
        return " ".join(json.dumps(value) for value in node["enum"])
    if "items" in node:
        return f"array of {kind_of(schema, node['items'])}"
    if isinstance(node.get("additionalProperties"), dict):
        return f"object of {kind_of(schema, node['additionalProperties'])}"
    return str(node["type"])


def described(schema: dict[str, Any], name: str) -> set[str]:
    return {f"{path}: {kind}" for path, kind in fields(schema, schema, name)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_shipped_is_what_the_types_say(name: str):
    text = (SHIPPED / f"{name}.json").read_text("utf-8")
    assert text == document(name), "run `make schemas`"
    Draft202012Validator.check_schema(json.loads(text))


def test_nothing_else_is_shipped():
    assert {path.stem for path in SHIPPED.iterdir()} == set(DOCUMENTS)


def test_no_field_of_version_1_has_gone_or_changed_its_type():
    promised = set(PROMISED.read_text("utf-8").splitlines())
    now = set().union(*(described(json.loads(document(name)), name) for name in DOCUMENTS))
    assert promised - now == set(), "these were promised"
    assert now - promised == set(), f"these are new: add them to {PROMISED.name}"


@pytest.mark.parametrize(
    "broken",
    [
        lambda properties: properties.pop("branch"),
        lambda properties: properties.update(title={"type": "integer"}),
        lambda properties: properties.update(attention={"type": "null"}),
    ],
    ids=["a field that goes", "another type", "less than before"],
)
def test_the_measure_sees_what_it_should(broken):
    schema = json.loads(document("watch-panes"))
    before = described(schema, "watch-panes")
    broken(schema["$defs"]["PaneItem"]["properties"])
    assert before - described(schema, "watch-panes")
