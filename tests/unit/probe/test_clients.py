"""Which terminal is moved, and the one condition under which it is."""

import pytest

from agtmux.probe.clients import Caller, Client, Inhabited, NoClientError, _Seen, attach_words, choose
from agtmux.probe.panes import there

HERE = _Seen("%1", "@1", "$1", "", "work")
LINKED = _Seen("%1", "@1", "$2", "", "other")


def client(name: str, session: str = "$1", window: str = "@1", at: int = 0, control: str = "0") -> Client:
    return Client(f"/dev/{name}", session, window, str(at), control)


def chosen(clients: list[Client], caller: Caller, *seen: _Seen) -> str:
    return choose(clients, list(seen), caller).name.removeprefix("/dev/")


IN_PANE = Caller("$9", "%1", "")
IN_POPUP = Caller("$1", "", "")


@pytest.mark.parametrize(
    ("clients", "caller", "expected"),
    [
        ([client("a"), client("b", at=5)], IN_PANE, "b"),
        # Who shows the pane comes before who has its session and was used since.
        ([client("a"), client("b", window="@2", at=5)], IN_PANE, "a"),
        ([client("a", session="$3", window="@3", at=9), client("b", window="@2", at=5)], IN_PANE, "b"),
        # The environment's session is where the shell began, and the pane may be elsewhere by now.
        ([client("a", session="$9", window="@9", at=9), client("b")], IN_PANE, "b"),
        ([client("a", session="$2", at=3), client("b")], IN_PANE, "a"),
        ([client("a", at=9, control="1"), client("b")], IN_PANE, "b"),
        ([client("a", window="@7"), client("b", session="$2", at=9)], IN_POPUP, "a"),
        ([client("a"), client("b", at=5)], Caller("", "", "/dev/a"), "a"),
        ([client("a", control="1")], Caller("", "", "/dev/a"), "a"),
    ],
)
def test_the_terminal_that_shows_the_caller_is_moved(clients: list[Client], caller: Caller, expected: str):
    seen = [HERE, LINKED] if caller.pane_id else []
    assert chosen(clients, caller, *seen) == expected


@pytest.mark.parametrize(
    ("clients", "caller"),
    [
        ([], IN_PANE),
        ([client("a", session="$3", window="@3")], IN_PANE),
        ([client("a", control="1")], IN_PANE),
        ([client("a", session="$3")], IN_POPUP),
        ([client("a")], Caller("", "", "")),
        ([client("a")], Caller("$1", "%1", "/dev/b")),
        ([client("a'; kill-server '")], Caller("$1", "%1", "/dev/a'; kill-server '")),
    ],
)
def test_where_none_shows_the_caller_none_is_moved(clients: list[Client], caller: Caller):
    with pytest.raises(NoClientError):
        choose(clients, [HERE], caller)


def test_what_shows_a_pane_names_server_process_and_life():
    who = Inhabited("42-1700000000", "%7", 4711)
    words = attach_words(who, "$3", "@5")
    assert words[:4] == ["if-shell", "-F", "-t", "%7"] and words[4] == there(who)
    for part in ("42-1700000000", "4711", "pane_dead"):
        assert part in there(who)
