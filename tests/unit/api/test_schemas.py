"""The shipped schemas are those of the types, and what was promised once is still there."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from starlette.routing import Route

from agtmux.agents.install.plan import Report
from agtmux.agents.mcp.plan import Entry
from agtmux.agents.mcp.plan import Report as McpReport
from agtmux.api.app import build_app
from agtmux.api.schemas import DOCUMENTS, ROUTES, document
from agtmux.api.shapes import FindingItem, HookItem, McpItem
from agtmux.doctor.findings import Finding
from agtmux.service import Service
from support.schemas import check, check_answer, check_output, fits

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


# Every answer has a document


def test_every_route_has_its_documents():
    routes = [route for route in build_app(cast(Service, None)).routes if isinstance(route, Route)]
    asked = [(method, route.path) for route in routes for method in (route.methods or set()) - {"HEAD"}]
    for method, path in asked:
        assert [known for known in ROUTES if known[0] == method and fits(path, known[1])], (method, path)
    for known in ROUTES:
        assert [each for each in asked if each[0] == known[0] and fits(each[1], known[1])], f"{known} is no more"
    assert {name for names in ROUTES.values() for name in names} <= set(DOCUMENTS)


def test_items_have_the_fields_of_what_they_tell_of():
    reported = {field.name for field in dataclasses.fields(Report)} | {"changed", "error"}
    assert set(HookItem.__struct_fields__) == reported
    assert set(McpItem.__struct_fields__) == {field.name for field in dataclasses.fields(McpReport)} | {"error"}
    entry = json.loads(document("mcp"))["$defs"]["McpItem"]["properties"]["entry"]
    assert set(entry["enum"]) == {each.value for each in Entry}
    assert set(FindingItem.__struct_fields__) == {field.name for field in dataclasses.fields(Finding)} | {"group"}


RECEIPT = {
    "schema_version": 1,
    "generated_at": "2026-01-31T12:00:00Z",
    "event_id": "e",
    "status": "applied",
    "runtime_id": None,
    "reason_code": None,
}


def test_an_answer_is_held_to_its_document():
    def told(content: object, status: int = 200) -> None:
        check_answer("POST", "/v1/events", status, "application/json", json.dumps(content).encode())

    told(RECEIPT)
    told({name: RECEIPT[name] for name in ("schema_version", "generated_at")} | {"results": []})
    told({"error": {"code": "E_USAGE", "message": "no", "details": {}}}, 400)
    for broken in (
        {name: value for name, value in RECEIPT.items() if name != "status"},
        RECEIPT | {"status": 1},
        RECEIPT | {"schema_version": 2},
        RECEIPT | {"shoe_size": 43},
    ):
        with pytest.raises(AssertionError, match="not as"):
            told(broken)
    with pytest.raises(AssertionError, match="not as error"):
        told({"error": {"code": "nonsense", "message": "no", "details": {}}}, 400)
    with pytest.raises(AssertionError, match="Add it"):
        check_answer("GET", "/v1/weather", 200, "application/json", b"{}")


def test_what_a_command_prints_is_held_to_its_document():
    check_output(("down", "--json"), '{"schema_version": 1, "stopped": null, "stopped_app": null}')
    check_output(("down",), "agtmuxd was not running")
    with pytest.raises(AssertionError, match="not as down"):
        check_output(("down", "--json"), '{"schema_version": 1}')
    with pytest.raises(AssertionError, match="Add it"):
        check_output(("dance", "--json"), "{}")


def test_an_action_may_tell_more_and_not_less():
    action = json.loads(document("action"))["$defs"]["ActionAnswer"]
    kinds = {"object": {}, "boolean": False, "string": "x"}
    answer = {name: kinds.get(value.get("type", "")) for name, value in action["properties"].items()}
    answer["schema_version"] = 1
    check(answer, ("action",))
    check(answer | {"output": "any text"}, ("action",))
    del answer["action_id"]
    with pytest.raises(AssertionError):
        check(answer, ("action",))
