"""One shape for every error of every route, and a health page whose fields are a promise."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from starlette.routing import Route, WebSocketRoute

from agtmux.api.app import build_app
from agtmux.service import Service
from support.home import Home, event, shared_home, wait_until

ABOUT_SOMETHING = ("/v1/explain", "/v1/preview", "/v1/worktrees/diff")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
ROUTES = [route for route in build_app(cast(Service, None)).routes if isinstance(route, Route)]
PATHS = sorted({route.path for route in ROUTES})


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        made.start()
        yield made


def allowed(path: str) -> set[str]:
    return set().union(*(route.methods or set() for route in ROUTES if route.path == path))


def filled(path: str) -> str:
    return path.replace("{name}", "nobody").replace("{message_id}", "no-such-message")


def test_the_walk_knows_every_route():
    others = [each for each in build_app(cast(Service, None)).routes if not isinstance(each, Route)]
    assert [each.path for each in others if isinstance(each, WebSocketRoute)] == ["/v1/ws", "/v1/chat", "/v1/live"]
    assert len(others) == 3
    assert [
        *(
            "/v1/actions",
            "/v1/actions/approve",
            "/v1/actions/attach",
            "/v1/actions/deny",
            "/v1/actions/kill",
            "/v1/actions/launch",
            "/v1/actions/send",
            "/v1/actions/stop",
            "/v1/actions/view-output",
            "/v1/board",
            "/v1/conversations",
            "/v1/conversations/markdown",
            "/v1/conversations/messages",
            "/v1/decisions/wait",
            "/v1/doctor",
            "/v1/events",
            "/v1/explain",
            "/v1/health",
            "/v1/here",
            "/v1/hooks",
            "/v1/inbox",
            "/v1/mcp",
            "/v1/messages",
            "/v1/messages/{message_id}",
            "/v1/panes",
            "/v1/preview",
            "/v1/sessions",
            "/v1/targets",
            "/v1/targets/{name}",
        ),
        *("/v1/targets/{name}/connect", "/v1/teams", "/v1/teams/{name}", "/v1/teams/{name}/launch"),
        *("/v1/watch", "/v1/windows", "/v1/worktrees", "/v1/worktrees/diff"),
    ] == PATHS


def test_every_route_refuses_a_wrong_method_in_the_one_shape(home: Home):
    asked, before = 0, home.refused("E_NOT_FOUND")
    for route in PATHS:
        path = filled(route)
        for method in METHODS:
            if method in allowed(route) or method == "HEAD":
                continue
            answer = home.ask(method, path)
            assert (answer.status, answer.error["code"]) == (405, "E_NOT_FOUND"), (method, path)
            assert answer.error["message"] == f"there is no {method} {path}"
            asked += 1
    assert asked > 30
    assert home.refused("E_NOT_FOUND") == before + asked


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v2/health", "/v1/health/", "/v1/healthy", "/v1/panes/x", "//v1"]
)
def test_an_unknown_path_is_refused_in_the_one_shape(home: Home, path: str):
    before = home.refused("E_NOT_FOUND")
    for method in METHODS:
        answer = home.ask(method, path)
        assert answer.status == 404, (method, path)
        if method != "HEAD":
            assert answer.error["code"] == "E_NOT_FOUND"
    assert home.refused("E_NOT_FOUND") == before + len(METHODS)


BAD_BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"17",
    b"\xff\xfe",
    b"{}",
    b'{"unknown": 1}',
    b"[" * 50_000,
    b"x" * 5_000_000,
)


def test_every_route_that_takes_a_body_refuses_a_bad_one_in_the_one_shape(home: Home):
    for path in PATHS:
        for method in allowed(path) & {"POST", "PUT", "PATCH"}:
            for body in BAD_BODIES:
                # An empty batch is one, and to connect takes no body at all.
                if (path, body) == ("/v1/events", b"[]") or path.endswith("/connect"):
                    continue
                answer = home.ask(method, filled(path), body)
                assert answer.status in (400, 413), (path, body[:20], answer)
                assert answer.error["code"] in ("E_EVENT_INVALID", "E_USAGE", "E_TOO_LARGE"), (path, body[:20])
    assert [line for line in home.log_lines() if "traceback" in line] == []


def test_a_body_where_none_belongs_does_no_harm(home: Home):
    for path in PATHS:
        if "GET" in allowed(path) and path != "/v1/watch":
            # Some of them want to know which pane, or which work tree.
            wanted = 400 if path in ABOUT_SOMETHING else 200
            assert home.ask("GET", path, b"x" * 1_000).status == wanted
    assert home.ask("DELETE", "/v1/targets/nobody", b"[" * 1_000).error["code"] == "E_TARGET_NOT_FOUND"


def test_targets_are_refused_in_the_one_shape(home: Home):
    cases = [
        ("POST", "/v1/targets", {"name": "no/name"}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "x" * 65}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "vm", "kind": "ssh"}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "vm", "kind": "ssh", "ssh_target": "-oProxyCommand=x"}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "vm", "kind": "carrier pigeon"}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "vm", "ssh_target": "vm"}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "vm", "shoe_size": 1}, 400, "E_USAGE"),
        ("POST", "/v1/targets", {"name": "host", "tmux_socket": "other"}, 409, "E_TARGET_EXISTS"),
        ("DELETE", "/v1/targets/host", None, 400, "E_USAGE"),
        ("DELETE", "/v1/targets/nobody", None, 404, "E_TARGET_NOT_FOUND"),
        ("DELETE", "/v1/targets/%FF%00", None, 404, "E_TARGET_NOT_FOUND"),
    ]
    for method, path, content, status, code in cases:
        answer = home.ask(method, path, content)
        assert (answer.status, answer.error["code"]) == (status, code), answer
    assert [item["name"] for item in home.ask("GET", "/v1/targets").json["items"]] == ["host"]


def test_a_head_request_ends(home: Home):
    for path in PATHS:
        if "GET" in allowed(path):
            with home.connect() as connection:
                assert connection.ask("HEAD", path).status == (400 if path in ABOUT_SOMETHING else 200)
                # Whoever asks for the head alone is done with it; the connection is free for the next.
                assert connection.ask("GET", "/v1/health").status == 200, path


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in value.items()}
    return [shape_of(value[0])] if isinstance(value, list) else type(value).__name__


def test_health_has_its_documented_fields():
    with shared_home() as home:
        check_health(home)


def check_health(home: Home) -> None:
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    home.ask("POST", "/v1/events", event(pane))
    home.ask("POST", "/v1/events", b"{")
    assert shape_of(home.health()) == {
        "schema_version": "int",
        "generated_at": "str",
        "status": "str",
        "version": "str",
        "pid": "int",
        "uptime_seconds": "int",
        "state_directory": "str",
        "database": {"notice": "NoneType", "bytes": "int", "commits": "int", "failed_commits": "int"},
        "clock": {"jumps": "int", "ahead_seconds": "int"},
        "events": {"applied": "int"},
        "pending_bind": "int",
        "refused": {"E_EVENT_INVALID": "int"},
        "spool": {},
        "streams": "int",
        "waiting_hooks": "int",
        "failures": {},
        "targets": [{"name": "str", "health": "str", "error": "NoneType", "warning": "NoneType"}],
    }
    assert home.health()["status"] == "ok"


def test_every_list_has_its_envelope(home: Home):
    everywhere = {"schema_version", "generated_at", "filters", "summary", "items"}
    of_panes = {"partial", "requested_targets", "responded_targets", "target_errors"}
    for path in ("/v1/panes", "/v1/panes?all=1", "/v1/windows"):
        assert set(home.ask("GET", path).json) == everywhere | of_panes
    assert set(home.ask("GET", "/v1/sessions").json) == everywhere | of_panes | {"group_by"}
    assert set(home.ask("GET", "/v1/targets").json) == everywhere


def test_a_watch_refuses_what_it_cannot_do(home: Home):
    for query, code in (
        ("scope=floors", "E_USAGE"),
        ("scope=panes&group_by=session-name", "E_USAGE"),
        ("scope=sessions&group_by=colour", "E_USAGE"),
        ("stat=running", "E_USAGE"),
        ("once=perhaps", "E_USAGE"),
        ("target=nobody", "E_TARGET_NOT_FOUND"),
        ("cursor=nonsense", "E_CURSOR_INVALID"),
        ("cursor=", "E_CURSOR_INVALID"),
        (f"cursor={'a' * 32}:", "E_CURSOR_INVALID"),
        (f"cursor={'a' * 32}:-1", "E_CURSOR_INVALID"),
        (f"cursor={'a' * 32}:01", "E_CURSOR_INVALID"),
        (f"cursor={'A' * 32}:1", "E_CURSOR_INVALID"),
        (f"cursor={'a' * 32}:{'9' * 30}", "E_CURSOR_INVALID"),
    ):
        answer = home.ask("GET", f"/v1/watch?{query}")
        assert (answer.error["code"], answer.status) == (code, 404 if code == "E_TARGET_NOT_FOUND" else 400), query
