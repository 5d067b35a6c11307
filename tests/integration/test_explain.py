"""`agtmux explain`: asked with what the table shows, and nothing that an agent says steers the terminal."""

import pytest

from support.home import Home, event, wait_until

STEERING = "ls \x1b]52;c;cm0gLXJmIH4K\x07\x1b[2K\x1b[1A\x9b2J\u202e harmless"


@pytest.fixture
def pane(home: Home) -> str:
    pane = home.pane()
    home.tmux("rename-session", "-t", "work", "a b/ü")
    home.start()
    wait_until(lambda: home.panes().get(pane, {}).get("identity", {}).get("session_name") == "a b/ü", "the pane")
    return pane


def test_what_an_agent_asks_never_steers_the_terminal(home: Home, pane: str) -> None:
    about = {"attention": {"kind": "approval", "summary": STEERING}, "note": STEERING}
    assert home.ask("POST", "/v1/events", event(pane, "state.waiting_approval", raw_payload=about)).status == 200
    done = home.run("explain", home.panes()[pane]["ref"])
    assert "harmless" in done.stdout
    assert all(char.isprintable() or char == "\n" for char in done.stdout), repr(done.stdout)
    # An error says it again, and is printed too.
    refused = home.run("explain", f"pane:{STEERING}")
    assert refused.returncode != 0
    assert all(char.isprintable() or char == "\n" for char in refused.stderr), repr(refused.stderr)


def test_a_pane_may_be_named_as_the_table_shows_it(home: Home, pane: str) -> None:
    ref = home.panes()[pane]["ref"]
    shown = next(line for line in home.run("list", "panes").stdout.splitlines() if pane in line)
    window = home.panes()[pane]["identity"]["window_id"]
    assert f"host/a b/ü/{window}/{pane}" in shown
    for name in (ref, ref.removeprefix("pane:"), f"host/a b/ü/{window}/{pane}", pane):
        done = home.run("explain", name)
        assert (done.returncode, done.stdout.splitlines()[:1]) == (0, [ref]), done.stderr
    for name, code in (
        ("%999999", "E_REF_NOT_FOUND"),
        ("host/no/@0/%999999", "E_REF_NOT_FOUND"),
        ("host/no/%1", "E_REF_INVALID"),
    ):
        assert code in home.run("explain", name).stderr


def test_a_number_that_two_servers_have_is_not_guessed(home: Home, pane: str) -> None:
    other = home.folder / "other"
    home.tmux("-S", str(other), "new-session", "-d", "-s", "there", "sleep 3600")
    try:
        assert home.run("target", "add", "other", "--tmux-socket", str(other)).returncode == 0

        def refs() -> list[str]:
            items = home.ask("GET", "/v1/panes?all=1").json["items"]
            return [item["ref"] for item in items if item["identity"]["pane_id"] == pane]

        wait_until(lambda: len(refs()) == 2, "a pane of the same number")
        done = home.run("explain", pane)
        assert "E_REF_AMBIGUOUS" in done.stderr
        assert f"host/{pane}" in done.stderr and f"other/{pane}" in done.stderr
        assert home.run("explain", f"other/{pane}").returncode == 0
    finally:
        home.tmux("-S", str(other), "kill-server")
