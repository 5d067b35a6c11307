"""Facts in, findings out: what cannot be brought about in a test of the whole, and where the lines are drawn."""

import ast
import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.doctor.checks import CHECKS, examine
from agtmux.doctor.facts import (
    AgentBridge,
    AgentHooks,
    AgentVersion,
    Daemon,
    Facts,
    Here,
    HookProgram,
    NoDaemon,
    OtherServer,
    Place,
    TmuxProgram,
    UnknownPane,
    WatchedTarget,
)
from agtmux.doctor.findings import Finding, Level
from agtmux.domain.states import Health

DOCS = Path(__file__).resolve().parents[3] / "docs" / "doctor.md"
MB = 1_000_000
HERE = Here(
    state=Place("/s", 0o700),
    free_bytes=500 * MB,
    socket=Place("/s/agtmuxd.sock", 0o600),
    socket_folder=Place("/s", 0o700),
    socket_trouble="",
    log_path="/s/logs/agtmuxd.log",
    config_path="/c/config.toml",
    config_exists=True,
    config_trouble="",
    settings_changed_at=50.0,
    agent_file_troubles=(),
    tmux=TmuxProgram("/usr/bin/tmux", "tmux 3.4"),
    hook=HookProgram("/b/agtmux-hook", is_executable=True, works=True),
    spool_bytes=0,
    spool_seconds=0.0,
)
DAEMON = Daemon(
    version="1.0",
    pid=7,
    started_at=100.0,
    uptime_seconds=60,
    database_notice=None,
    failed_commits=0,
    is_failing=False,
    clock_ahead_seconds=0,
    failures={},
    refused={},
    spool={},
    homeless=0,
)
HOST = WatchedTarget("host", "local", Health.OK, panes=1, has_server=True, tmux_said="tmux 3.4")
VM = WatchedTarget("vm1", "ssh", Health.OK, panes=1, has_server=True, tmux_said="tmux 3.4")
WELL = Facts(HERE, DAEMON, "1.0", targets=(HOST,), agent_panes={"host": 1})


def found(facts: Facts) -> dict[str, str]:
    """Code → level of what is not ok."""
    items = examine(facts, "now")["items"]
    return {item["code"]: item["level"] for item in items if item["level"] != "ok"}


def here(**changes: object) -> Facts:
    return replace(WELL, here=replace(HERE, **changes))  # type: ignore[arg-type]


def daemon(**changes: object) -> Facts:
    return replace(WELL, daemon=replace(DAEMON, **changes))  # type: ignore[arg-type]


def target(**changes: object) -> Facts:
    return replace(WELL, targets=(replace(VM, **changes),))  # type: ignore[arg-type]


def bridge(entry: str) -> Facts:
    return replace(WELL, bridges=(AgentBridge("a", "/a.json", entry, "/s/x"),))


CASES: list[tuple[str, Facts, dict[str, str]]] = [
    ("all is well", WELL, {}),
    ("no room", here(free_bytes=19 * MB), {"disk_space": "problem"}),
    ("little room", here(free_bytes=199 * MB), {"disk_space": "warning"}),
    ("room", here(free_bytes=200 * MB), {}),
    ("no state directory yet", here(state=Place("/s"), free_bytes=None), {}),
    ("somebody else's state", here(state=Place("/s", 0o700, is_own=False)), {"state_mode": "problem"}),
    ("somebody else's socket", here(socket=Place("/s/x", 0o600, is_own=False)), {"socket_mode": "problem"}),
    ("a socket that was removed", here(socket=Place("/s/x")), {"socket_gone": "problem"}),
    ("settings from before", here(settings_changed_at=99.0), {}),
    ("settings from after", here(settings_changed_at=101.0), {"config_changed": "note"}),
    ("a database that fails", daemon(is_failing=True, failed_commits=3), {"database_failing": "problem"}),
    ("a database that failed", daemon(failed_commits=3), {"database_failed": "note"}),
    ("a clock that was set back", daemon(clock_ahead_seconds=90), {"clock_ahead": "note"}),
    ("parts that failed", daemon(failures={"reconciler": 2}), {"daemon_failures": "warning"}),
    ("events that were lost", daemon(spool={"ingested": 9, "dropped": 1}), {"events_lost": "note"}),
    ("events that were damaged", daemon(spool={"damaged": 1}), {"events_lost": "note"}),
    ("events that were kept", daemon(spool={"ingested": 9, "dropped": 0, "damaged": 0}), {}),
    ("targets that say too much", daemon(refused={"E_FORBIDDEN": 2}), {"events_refused": "note"}),
    ("somebody's typing error", daemon(refused={"E_USAGE": 2, "E_TARGET_NOT_FOUND": 1}), {}),
    ("no hook command", here(hook=HookProgram()), {"command_missing": "problem"}),
    ("a hook command that may not run", here(hook=HookProgram("/x")), {"command_not_executable": "problem"}),
    ("a hook command that is mute", here(hook=HookProgram("/x", True, False)), {"command_broken": "problem"}),
    ("a hook command not tried", here(hook=HookProgram("/x", True, None)), {"command_untried": "note"}),
    ("what hooks keep for a moment", here(spool_bytes=9, spool_seconds=29.0), {}),
    ("what hooks keep for long", here(spool_bytes=9, spool_seconds=31.0), {"spool_stuck": "warning"}),
    ("a target not looked at yet", target(has_server=None), {"target_unseen": "note"}),
    ("a target without a server", target(has_server=False), {"target_empty": "note"}),
    ("a target that fails", target(health=Health.DEGRADED, error="vm1: no"), {"target_degraded": "warning"}),
    ("a target on its way back", target(health=Health.DEGRADED), {"target_degraded": "warning"}),
    ("a target that is down", target(health=Health.DOWN, error="vm1: no"), {"target_down": "problem"}),
    ("a failure not yet counted", target(error="vm1: no"), {"target_degraded": "warning"}),
    ("a clock that is a little off", target(clock_ahead=-1.9), {}),
    ("a clock that is off", target(clock_ahead=-2.1), {"clock_differs": "note"}),
    ("hooks that are not heard", target(warning="hooks there are not heard: x"), {"hooks_unheard": "warning"}),
    ("a bridge", bridge("registered"), {}),
    ("no bridge", bridge("absent"), {"bridge_absent": "note"}),
    ("no bridge, as it is set", replace(bridge("absent"), wants_bridge=False), {}),
    ("an old bridge", bridge("outdated"), {"bridge_outdated": "warning"}),
    ("a bridge to nowhere", bridge("abandoned"), {"bridge_abandoned": "warning"}),
    ("a bridge elsewhere", bridge("other_instance"), {"bridge_elsewhere": "note"}),
    ("a namesake", bridge("foreign"), {"bridge_foreign": "warning"}),
    (
        "settings no bridge is read from",
        replace(WELL, bridges=(AgentBridge("a", error="x"),)),
        {"bridge_unreadable": "problem"},
    ),
    (
        "a bridge without a daemon",
        replace(bridge("registered"), daemon=NoDaemon(), agent_panes={}),
        {"daemon_not_running": "problem", "bridge_left": "warning"},
    ),
    ("nobody", replace(WELL, agent_panes={}), {"agents_none": "note"}),
    (
        "a server elsewhere",
        replace(WELL, other_servers=(OtherServer("/t/lab", 1, False),)),
        {"server_unwatched": "note"},
    ),
]


@pytest.mark.parametrize(("facts", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_found(facts: Facts, expected: dict[str, str]) -> None:
    assert found(facts) == expected


@pytest.mark.parametrize(("name", "where"), [("host", "here"), ("vm1", "there")])
def test_a_machine_without_a_tmux_server_is_named_for_where_it_is(name: str, where: str) -> None:
    facts = replace(WELL, targets=(replace(VM, name=name, has_server=False),))
    (item,) = [each for each in examine(facts, "now")["items"] if each["code"] == "target_empty"]
    assert item["message"].endswith(f"is running {where}") and item["mend"].endswith(f"in tmux {where}: tmux new")


def test_whose_clock_is_ahead() -> None:
    def told(ahead: float) -> str:
        (item,) = [
            each for each in examine(target(clock_ahead=ahead), "now")["items"] if each["code"] == "clock_differs"
        ]
        return str(item["message"])

    assert told(90.2).startswith("its clock is 90 s behind") and told(-90.2).startswith("its clock is 90 s ahead")


def test_every_code_is_documented_and_nothing_else() -> None:
    code = re.compile(r"[a-z]+(?:_[a-z]+)+")
    modules = [Path(inspect.getfile(check)) for checks in CHECKS.values() for check in checks]
    constants = [
        node.value
        for module in set(modules)
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    rows = [line.split("|")[1] for line in DOCS.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in code.findall(row)} == set(filter(code.fullmatch, constants))


def test_who_is_there_on_a_target_that_cannot_be_looked_at_is_not_told() -> None:
    assert "agents_none" not in found(replace(target(error="vm1: no"), agent_panes={}))


def test_a_pane_of_an_unreachable_target_has_its_targets_line() -> None:
    panes = (UnknownPane("pane:vm1/w/@1/%1", "vm1", "a", "target_unreachable"),)
    assert found(replace(target(health=Health.DOWN, error="x"), unknown_panes=panes)) == {"target_down": "problem"}


def test_only_one_group_speaks_of_another_machine() -> None:
    """What is about this machine alone is left out, and agtmux itself is always told."""
    hooks = (AgentHooks("a", error="bad file"),)
    asked = replace(WELL, target="vm1", targets=(VM,), hooks=hooks)
    groups = {item["group"] for item in examine(asked, "now")["items"]}
    assert groups == {"agtmux", "tmux"}
    assert found(replace(asked, target="host")) == {"hooks_unreadable": "problem"}


def test_without_a_daemon_nothing_is_said_that_only_a_daemon_knows() -> None:
    facts = replace(WELL, daemon=NoDaemon(), agent_panes={})
    assert found(facts) == {"daemon_not_running": "problem"}
    (host,) = [item for item in examine(facts, "now")["items"] if item["target"] == "host"]
    assert host["message"] == "local, tmux 3.4, 1 pane"


def test_a_capture_is_only_offered_of_a_pane_that_is_here() -> None:
    def mend(*refs: str) -> str:
        version = AgentVersion("a", "9", refs, is_installed=False, is_verified=False, reads_screens=True)
        (item,) = [each for each in examine(replace(WELL, agents=(version,)), "now")["items"] if each["agent"]]
        return str(item["mend"])

    assert "-t %3 " in mend("pane:vm1/w/@1/%7", "pane:host/w/@1/%3")
    assert "-t %N " in mend("pane:vm1/w/@1/%7")


def test_whatever_is_not_ok_says_what_mends_it() -> None:
    with pytest.raises(ValueError, match="mends it"):
        Finding(Level.NOTE, "x", "hm")
    with pytest.raises(ValueError, match="nothing else does"):
        Finding(Level.OK, "x", "fine", "nothing")


def test_the_report_counts_and_keeps_the_order_of_the_table() -> None:
    report = examine(here(free_bytes=1), "2027-01-01T00:00:00Z")
    assert report["generated_at"] == "2027-01-01T00:00:00Z"
    assert report["summary"]["problem"] == 1 and set(report["summary"]) == {level.value for level in Level}
    assert list(dict.fromkeys(item["group"] for item in report["items"])) == [
        group for group in CHECKS if group not in ("agents", "bridge")
    ]
