"""Who gets in through the board's door, and to what. Each way in that is none is tried, and refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import Response

from agtmux.api.board.auth import MOST_FAILURES
from agtmux.api.board.door import Door as BoardDoor
from agtmux.api.board.door import Place
from support.door import Door
from support.home import Home, home_in, shared_home, wait_until


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        yield made


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with shared_home() as made:
        pane = made.pane()
        made.start()
        wait_until(lambda: pane in made.panes(), "the pane")
        yield Door(made, "--port", "0")


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2):
        return True
    return False


def listening_ports(pid: int) -> set[int]:
    """TCP ports that a process listens on, as the kernel tells."""
    links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


# When it is there


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel tells it in /proc")
def test_without_being_asked_for_nothing_listens(home: Home) -> None:
    daemon = home.start()
    assert listening_ports(daemon.pid) == set()
    assert home.ask("GET", "/v1/board").json["is_open"] is False
    port = Door(home, "--port", "0").port
    assert listening_ports(daemon.pid) == {port}
    assert home.run("board", "--stop").stdout == "The board is closed.\n"
    assert listening_ports(daemon.pid) == set()
    assert not listens(port)
    assert home.run("down").returncode == 0
    # None is started to hear that.
    assert home.run("board", "--stop").stdout == "The board is closed, as no daemon is running.\n"
    assert home.answering_pid() is None


def test_a_daemon_that_is_not_asked_for_it_has_none_of_its_code() -> None:
    parts = ("agtmux.api.board", "agtmux.api.live", "agtmux.api.screens", "agtmux.board", "keyring", "playwright")
    program = (
        f"import sys, agtmux.daemon, agtmux.api.app, agtmux.service; print([n for n in sys.modules if n in {parts}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done


def test_a_daemon_that_is_started_again_does_not_open_it_by_itself(home: Home) -> None:
    daemon = home.start()
    port = Door(home, "--port", "0").port
    home.end(daemon)
    home.start()
    assert not listens(port)
    assert home.ask("GET", "/v1/board").json["is_open"] is False


def test_settings_may_open_it_with_the_daemon(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home.configure(f'[board]\nopen = true\nport = {port}\ntoken_file = "{home.folder}/token"\n')
    daemon = home.start()
    wait_until(lambda: listens(port), "the board")
    assert stat.S_IMODE((home.folder / "token").stat().st_mode) == 0o600
    session = Door(home, is_configured=True).signed_in()
    home.end(daemon)
    # One that cannot be opened keeps nothing else from working.
    with socket.create_server(("127.0.0.1", port), reuse_port=False):
        home.configure(f'[board]\nopen = true\nport = {port}\nbind = "192.0.2.1"\ntoken_file = "{home.folder}/token"\n')
        daemon = home.start()
        assert home.health()["status"] == "ok"
        assert any("board is not open" in line["message"] for line in home.log_lines())
        home.end(daemon)
    home.configure(f'[board]\nopen = true\nport = {port}\ntoken_file = "{home.folder}/token"\n')
    home.start()
    again = Door(home, is_configured=True)
    assert again.port == port
    assert again.ask("GET", "/v1/panes", headers=session).status == 200, "the session is over"


def test_a_port_that_is_taken_is_said_or_gone_around(home: Home) -> None:
    home.start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = home.run("board", "--no-open", "--token-file", "--port", str(port))
        assert done.returncode == 2 and "E_CONFIG" in done.stderr and str(port) in done.stderr
    for bad in ("-1", "65536"):
        assert home.run("board", "--no-open", "--port", bad).returncode == 2
    assert home.run("board", "--no-open", "--bind", "evil.example").returncode == 2
    assert Door(home, "--port", "0").open()["is_open"]


def test_other_machines_reach_it_only_if_somebody_says_so_and_is_warned(home: Home) -> None:
    home.start()
    door = Door(home, "--port", "0", "--bind", "0.0.0.0")
    assert "not encrypted" in " ".join(door.opened["warnings"])
    done = home.run("board", "--no-open", "--token-file", "--bind", "0.0.0.0")
    assert "not encrypted" in done.stderr
    assert door.ask("GET", "/v1/panes", headers=door.bearer).status == 200
    # By any address, as no name server has a say in that; and by no name that is not in the settings.
    for host, status in ((f"192.0.2.7:{door.port}", 200), (f"laptop.local:{door.port}", 403)):
        assert door.ask("GET", "/v1/panes", headers=door.bearer | {"Host": host}).status == status
    assert door.ask("GET", "/v1/panes").status == 401


# The token


def test_without_a_keyring_the_token_is_one_of_this_run(home: Home) -> None:
    daemon = home.start()
    opened = home.run("board", "--no-open", "--port", "0", "--json")
    assert opened.returncode == 0, opened.stderr
    told = json.loads(opened.stdout)
    assert "no keyring takes the board's token" in " ".join(told["warnings"])
    token = home.run("board", "--print-token").stdout.strip()
    assert len(token) >= 43
    # Closed and opened again it is the same, on disk it is nowhere, and nothing else opens the door.
    assert home.run("board", "--stop").returncode == 0
    assert home.run("board", "--no-open", "--port", "0").returncode == 0
    assert home.run("board", "--print-token").stdout.strip() == token
    kept = [path for path in home.folder.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert kept == []
    new = json.loads(home.run("board", "--no-open", "--new-token", "--json").stdout)
    assert new["is_open"] and home.run("board", "--print-token").stdout.strip() != token
    home.end(daemon)
    home.start()
    assert home.run("board", "--print-token").stdout.strip() not in ("", token), "the next daemon has its own"


def test_the_token_is_where_the_user_says_and_nowhere_else(home: Home) -> None:
    home.start()
    file = home.state / "board-token"
    done = home.run("board", "--no-open", "--port", "0")
    assert done.returncode == 0 and "until the daemon ends" in done.stderr and "--token-file" in done.stderr
    assert not file.exists(), "without a keyring nothing is written down unless the user says so"
    door = Door(home, "--port", "0")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == door.token
    # From now on it is known.
    assert home.run("board", "--no-open").returncode == 0
    kept = [path for path in home.folder.rglob("*") if path.is_file() and door.token.encode() in path.read_bytes()]
    assert kept == [file]
    assert home.run("board", "--stop").returncode == 0
    file.chmod(0o644)
    assert "chmod 600" in home.run("board", "--print-token").stderr
    file.unlink()
    file.symlink_to(home.folder / "elsewhere")
    assert home.run("board", "--print-token").returncode != 0


def test_neither_token_nor_session_is_in_a_log_or_a_list_of_processes(home: Home) -> None:
    home.start()
    door = Door(home, "--port", "0")
    session = door.signed_in()
    door.ask("GET", "/v1/panes", headers=session)
    door.ask("GET", "/v1/panes", headers={"Authorization": f"Bearer {door.token}x"})
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    logs = home.log.read_text() + commands
    for secret in (door.token, session["Cookie"].partition("=")[2], session["Agtmux-Key"]):
        assert secret not in logs


def test_a_new_token_ends_every_session(home: Home) -> None:
    home.start()
    door = Door(home, "--port", "0")
    session, before = door.signed_in(), door.bearer
    assert door.ask("GET", "/v1/panes", headers=session).status == 200
    door.open("--new-token")
    assert door.ask("GET", "/v1/panes", headers=session).error["code"] == "E_UNAUTHORIZED"
    assert door.ask("GET", "/v1/panes", headers=before).error["code"] == "E_UNAUTHORIZED"
    fresh = home.run("board", "--print-token").stdout.strip()
    assert door.ask("GET", "/v1/panes", headers={"Authorization": f"Bearer {fresh}"}).status == 200


# Ways in that are none


def test_without_a_token_there_is_nothing(door: Door) -> None:
    for path in ("/v1/panes", "/v1/board", "/v1/actions", "/v1/nothing"):
        assert door.ask("GET", path).error["code"] == "E_UNAUTHORIZED"
    for headers in (
        {"Authorization": "Basic Og=="},
        {"Authorization": "Bearer"},
        {"Cookie": f"agtmux_board_{door.port}=a.9999999999.b"},
    ):
        assert door.ask("GET", "/v1/panes", headers=headers).status == 401


def test_a_wrong_token_is_refused(door: Door) -> None:
    for wrong in (door.token[:-1], door.token + "x", door.token.swapcase(), "é" * 40):
        headers = {"Authorization": f"Bearer {wrong}"}
        assert door.ask("GET", "/v1/panes", headers=headers).error["code"] == "E_UNAUTHORIZED"
    assert door.ask("GET", "/v1/panes", headers=door.bearer).status == 200


def test_guessing_is_slowed_down_until_it_is_hopeless(home: Home) -> None:
    home.start()
    door = Door(home, "--port", "0")
    session = door.signed_in()
    for number in range(MOST_FAILURES):
        asked = {"token": f"guess-{number}"}
        assert door.ask("POST", "/v1/board/login", asked, {"Origin": door.origin}).status == 401
    answers = [
        door.ask("GET", "/v1/panes", headers=door.bearer),
        door.ask("POST", "/v1/board/login", {"token": door.token}, {"Origin": door.origin}),
        door.ask("POST", "/v1/board/login", {"code": door.code()}, {"Origin": door.origin}),
    ]
    # Also the right one: it is not told which it was.
    assert [(each.status, each.error["code"]) for each in answers] == [(429, "E_LIMIT_RATE")] * 3
    assert all(0 < int(each.headers["retry-after"]) <= 60 for each in answers)
    # Whoever is in already is not thrown out by somebody who guesses.
    assert door.ask("GET", "/v1/panes", headers=session).status == 200


def test_a_code_opens_once(door: Door) -> None:
    code = door.code()
    first = door.ask("POST", "/v1/board/login", {"code": code}, {"Origin": door.origin})
    assert first.status == 200
    about = [part.strip() for part in first.headers["set-cookie"].split(";")[1:]]
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(about)
    assert door.token not in str(first)
    second = door.ask("POST", "/v1/board/login", {"code": code}, {"Origin": door.origin})
    assert second.error["code"] == "E_UNAUTHORIZED" and "used" in second.error["message"]


def test_half_a_session_opens_nothing(door: Door) -> None:
    """A cookie goes to every server of this host, and its operator must not come in with it."""
    whole, other = door.signed_in(), door.signed_in()
    assert door.ask("GET", "/v1/panes", headers=whole).status == 200
    for half in (
        {"Cookie": whole["Cookie"]},
        {"Agtmux-Key": whole["Agtmux-Key"]},
        {"Cookie": whole["Cookie"], "Agtmux-Key": other["Agtmux-Key"]},
        {"Cookie": whole["Cookie"] + "0", "Agtmux-Key": whole["Agtmux-Key"]},
    ):
        assert door.ask("GET", "/v1/panes", headers=half).status == 401, half


def test_a_name_that_leads_here_by_a_trick_is_refused(door: Door) -> None:
    """DNS rebinding: the page of another site asks by a name of its own that now has our address."""
    session = door.signed_in()
    hosts = (
        *("evil.example", f"evil.example:{door.port}", "", f":{door.port}", f"127.0.0.1:{door.port}.evil.example"),
        *("127.0.0.1", f"127.0.0.1:{door.port + 1}", f"localhost.evil.example:{door.port}", f"192.0.2.1:{door.port}"),
    )
    for host in hosts:
        for path, headers in (("/", {}), ("/v1/panes", session), ("/v1/panes", door.bearer)):
            answer = door.ask("GET", path, headers={**headers, "Origin": f"http://{host}", "Host": host})
            assert answer.error["code"] == "E_FORBIDDEN", (host, answer)
    for host in (f"localhost:{door.port}", f"127.0.0.1:{door.port}"):
        assert door.ask("GET", "/", headers={"Host": host}).status == 200


def test_another_page_is_refused_whatever_it_carries(door: Door) -> None:
    session = door.signed_in()
    for origin in ("http://evil.example", "null", f"https://{door.host}:{door.port}", f"http://{door.host}", ""):
        for method, path in (("GET", "/v1/panes"), ("POST", "/v1/actions/send"), ("OPTIONS", "/v1/actions/send")):
            answer = door.ask(method, path, {} if method == "POST" else None, session | {"Origin": origin})
            assert answer.error["code"] == "E_FORBIDDEN", (origin, answer)
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    headers = {name: value for name, value in session.items() if name != "Origin"}
    for site in ("cross-site", "same-site"):
        answer = door.ask("GET", "/v1/panes", headers=headers | {"Sec-Fetch-Site": site})
        assert answer.error["code"] == "E_FORBIDDEN"


def test_a_form_of_another_page_can_send_nothing(door: Door) -> None:
    """CSRF: a browser sends forms anywhere, with cookies perhaps, but not with this type or this key."""
    session = door.signed_in()
    pane = next(iter(door.home.panes().values()))
    asked = json.dumps({"request_ref": "csrf", "ref": pane["ref"], "text": "rm -rf ~", "enter": True}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        for path in ("/v1/actions/send", "/v1/actions/approve", "/v1/board/login"):
            answer = door.ask("POST", path, asked, session | {"Content-Type": kind})
            assert answer.status == 400 and "application/json" in answer.error["message"]
    without_key = {"Cookie": session["Cookie"], "Origin": door.origin, "Content-Type": "application/json"}
    assert door.ask("POST", "/v1/actions/send", asked, without_key).status == 401
    without_origin = {name: value for name, value in session.items() if name != "Origin"}
    answer = door.ask("POST", "/v1/actions/send", asked, without_origin | {"Content-Type": "application/json"})
    assert answer.error["code"] == "E_FORBIDDEN"
    assert door.home.ask("GET", "/v1/actions").json["items"] == []


# What can be asked for


CLOSED = (
    *(
        ("POST", path)
        for path in ("/v1/events", "/v1/decisions/wait", "/v1/hooks", "/v1/mcp", "/v1/board", "/v1/inbox")
    ),
    *(("POST", path) for path in ("/v1/targets", "/v1/targets/host/connect", "/v1/messages", "/v1/teams")),
    *(("POST", f"/v1/actions/{name}") for name in ("launch", "stop", "kill", "attach", "view-output")),
    *(("GET", path) for path in ("/v1/health", "/v1/doctor", "/v1/here", "/v1/messages", "/v1/teams", "/v1/ws")),
    *(("DELETE", path) for path in ("/v1/targets/host", "/v1/messages/x", "/v1/teams/x")),
    *(("PUT", "/v1/panes"), ("GET", "/v1/panes/"), ("GET", "//v1/panes"), ("GET", "/v1/../v1/health")),
)


def test_only_what_the_board_needs_can_be_asked_for(door: Door) -> None:
    session = door.signed_in()
    for method, path in CLOSED:
        for headers in (door.bearer, session):
            answer = door.ask(method, path, {} if method == "POST" else None, headers)
            assert answer.error["code"] == "E_FORBIDDEN", (method, path, answer)
    for path in (
        "/v1/board",
        "/v1/panes",
        "/v1/sessions",
        "/v1/windows",
        "/v1/targets",
        "/v1/actions",
        "/v1/worktrees",
    ):
        assert door.ask("GET", path, headers=session).status == 200


def test_no_file_beside_the_page_is_served(door: Door) -> None:
    for path in ("/__init__.py", "/../service.py", "/js/../../config.py", "/js", "/icons/", "/resources/demo.toml"):
        assert door.ask("GET", path).status in (401, 403, 404), path


def test_every_answer_says_what_a_browser_may_do_with_it(door: Door) -> None:
    answers = [
        door.ask("GET", "/"),
        door.ask("GET", "/js/app.js"),
        door.ask("GET", "/v1/panes"),
        door.ask("GET", "/v1/panes", headers=door.bearer),
        door.ask("GET", "/", headers={"Host": "evil.example"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers
    assert answers[3].headers["cache-control"] == "no-store"
    page = answers[0].body.decode()
    assert "style=" not in page and "<style" not in page and "onclick" not in page
    tag = answers[1].headers["etag"]
    assert door.ask("GET", "/js/app.js", headers={"If-None-Match": tag}).status == 304


def test_whoever_acts_is_written_down_as_the_board(door: Door) -> None:
    pane = next(iter(door.home.panes().values()))
    asked = {"request_ref": f"who-{time.monotonic()}", "ref": pane["ref"], "actor": "cli"}
    answer = door.ask("POST", "/v1/actions/approve", asked, door.signed_in())
    assert answer.status == 412
    log = door.home.ask("GET", "/v1/actions").json["items"]
    assert [each["about"]["actor"] for each in log] == ["board"]


def test_a_place_that_cannot_be_had_leaves_the_board_where_it_is(home: Home) -> None:
    home.start()
    door = Door(home, "--port", "0")
    session = door.signed_in()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words in (("--port", port), ("--port", "0", "--bind", "192.0.2.1")):
            assert home.run("board", "--no-open", "--token-file", *words).returncode == 2
            assert home.ask("GET", "/v1/board").json["url"] == door.opened["url"]
            assert door.ask("GET", "/v1/panes", headers=session).status == 200


async def test_many_who_open_it_at_once_all_get_in(tmp_path: Path) -> None:
    """A terminal and the menu, at the first time: one token is made, and one listener."""

    async def app(*_: object) -> None:
        raise AssertionError("nothing is asked")

    def no_answer(error: Exception, _: object) -> Response:
        raise error

    door = BoardDoor(app, no_answer, lambda _: None, tmp_path)

    async def opened() -> tuple[str | None, str]:
        await door.open(Place("127.0.0.1", 0, 0), tmp_path / "token")
        return door.url, door.code()

    told = await asyncio.gather(*(opened() for _ in range(8)))
    assert len({url for url, _ in told}) == 1
    assert await door.token(tmp_path / "token") == (tmp_path / "token").read_text().strip()
    # No code was made worthless by who came after.
    assert all(door._codes.take(code, "", time.monotonic()) for _, code in told)
    await door.close()


def test_cookies_of_other_servers_on_this_host_end_no_session(door: Door) -> None:
    session = door.signed_in()
    name = session["Cookie"].partition("=")[0]
    for others in ('prefs={"a": [1, 2]}', "a=b c; =; x", f"{name}=tossed", 'q="1'):
        for cookies in (f"{others}; {session['Cookie']}", f"{session['Cookie']}; {others}"):
            assert door.ask("GET", "/v1/panes", headers=session | {"Cookie": cookies}).status == 200, cookies
    assert door.ask("GET", "/v1/panes", headers=session | {"Cookie": f"{name}=tossed"}).status == 401


def test_who_is_not_signed_in_is_not_listened_to_for_long(door: Door) -> None:
    """What a login needs is short; all else would be kept in memory for anybody."""
    answer = door.ask("POST", "/v1/board/login", {"token": "x" * 100_000})
    assert answer.error["code"] == "E_TOO_LARGE"


def test_connections_of_anybody_do_not_keep_the_daemon_from_seeing_agents(home: Home) -> None:
    """Each is a file of the daemon's, and a process that has all it may have can start none."""
    pane = home.pane()
    home.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)))
    wait_until(lambda: pane in home.panes(), "the pane")
    door = Door(home, "--port", "0")
    session = door.signed_in()
    with contextlib.ExitStack() as many:
        for _ in range(600):
            crowd = many.enter_context(socket.socket())
            crowd.setblocking(False)
            crowd.connect_ex(("127.0.0.1", door.port))
        other = home.pane()
        wait_until(lambda: other in home.panes(), "the other pane", 4)

    def answers() -> bool:
        # Whoever comes before the last of them are gone is sent away.
        with contextlib.suppress(OSError, IndexError):
            return door.ask("GET", "/v1/panes", headers=session).status == 200
        return False

    wait_until(answers, "the board")


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/proc/net/tcp").exists(), reason="takes a socket of somebody else's")
@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "::"])
def test_a_code_that_another_user_has_seen_is_of_no_use_to_them(home: Home, bind: str) -> None:
    """It stands in the list of processes while a browser is started, and whoever is faster would be signed in."""
    home.start()
    door = Door(home, "--port", "0", "--bind", bind)
    body = json.dumps({"code": door.opened["login_url"].partition("#code=")[2]}).encode()
    address = "127.0.0.1" if bind == "::" else bind
    name = f"[{address}]" if ":" in address else address
    head = f"POST /v1/board/login HTTP/1.1\r\nHost: {name}:{door.port}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"

    def answer_to(uid: int) -> bytes:
        with socket.create_connection((address, door.port), 20) as connection:
            os.fchown(connection.fileno(), uid, -1)
            connection.sendall(head.encode() + body)
            with connection.makefile("rb") as answer:
                return answer.readline()

    assert b" 403 " in answer_to(65_534)
    # And it is as good as before.
    assert b" 200 " in answer_to(os.geteuid())
