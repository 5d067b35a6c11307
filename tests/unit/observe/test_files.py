"""What session files say, by process."""

import json

from agtmux.agents.registry import Registry
from agtmux.observe.files import Files
from agtmux.targets.messages import SessionFile
from unit.builders import FakeTime

REGISTRY = Registry.load()


def a_file(pid: int, status: str, *, gone: bool = False, agent: str = "claude") -> SessionFile:
    return SessionFile(agent, f"/home/x/{pid}.json", gone, json.dumps({"status": status}))


def some_files() -> Files:
    return Files(REGISTRY, FakeTime().clock())


def test_what_is_said_of_any_of_a_panes_processes_counts() -> None:
    files = some_files()
    assert files.hear(a_file(7, "busy"))
    told = files.of("claude", [1, 7])
    assert told is not None and told.status.state == "running"
    assert files.of("claude", [8]) is None


def test_only_what_says_something_else_is_news_and_it_counts_from_then_on() -> None:
    files = some_files()
    assert files.hear(a_file(7, "busy"))
    first = files.of("claude", [7])
    assert not files.hear(a_file(7, "busy"))
    assert files.of("claude", [7]) == first
    assert files.hear(a_file(7, "idle"))
    last = files.of("claude", [7])
    assert first is not None and last is not None and last.heard_at > first.heard_at


def test_a_file_that_is_gone_or_says_nothing_any_more_is_forgotten() -> None:
    files = some_files()
    files.hear(a_file(7, "busy"))
    assert files.hear(a_file(7, "", gone=True))
    assert files.of("claude", [7]) is None
    assert not files.hear(a_file(7, "", gone=True))
    files.hear(a_file(7, "busy"))
    assert files.hear(a_file(7, "nonsense"))
    assert files.of("claude", [7]) is None


def test_the_latest_of_two_counts_and_nobody_fills_our_memory() -> None:
    files = some_files()
    for pid in range(1, 700):
        files.hear(a_file(pid, "busy"))
    assert files.of("claude", [1]) is None and files.of("claude", [699]) is not None
    files.hear(a_file(698, "idle"))
    told = files.of("claude", [699, 698])
    assert told is not None and told.status.state == "idle"


def test_an_agent_nobody_knows_is_not_heard() -> None:
    assert not some_files().hear(a_file(7, "busy", agent="eliza"))


def test_an_old_file_of_another_agent_says_nothing_of_who_has_its_process_number_now() -> None:
    files = some_files()
    files.hear(a_file(7, "busy"))
    assert files.of("codex", [7]) is None
