"""How hook rules are read: conditions, paths, reasons, limits, and what a wrong sheet is told."""

from typing import Any

import msgspec
import pytest

from agtmux.agents.adapter import SheetAdapter
from agtmux.agents.hooks import read_hook
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.events import Incomplete
from agtmux.domain.states import Source, State


def sheet(rules: str, agent_type: str = "eliza", command: str = "eliza") -> AgentSheet:
    text = f'agent_type = "{agent_type}"\nname = "Eliza"\n[process]\ncommands = ["{command}"]\n{rules}'
    return msgspec.toml.decode(text.encode(), type=AgentSheet)


def state_of(rule: str, payload: Any) -> State | None:
    _, verdict = read_hook(
        sheet(f'[[hook]]\nevent = "E"\nstate = "idle"\nreason_code = "r"\n{rule}').hook, "E", payload
    )
    assert verdict is not None
    return verdict.state


@pytest.mark.parametrize(
    ("condition", "payload", "fits"),
    [
        ('{ a = "x" }', {"a": "x"}, True),
        ('{ a = "x" }', {"a": "xy"}, False),
        ('{ a = "x" }', {}, False),
        ("{ a = true }", {"a": [1]}, True),
        ("{ a = true }", {"a": []}, False),
        ("{ a = true }", {}, False),
        ("{ a = false }", {}, True),
        ("{ a = false }", {"a": ""}, True),
        ("{ a = false }", {"a": 1}, False),
        ('{ a = { starts_with = "x" } }', {"a": "xy"}, True),
        ('{ a = { starts_with = "x" } }', {"a": 5}, False),
        ('{ "a.b" = "x" }', {"a": {"b": "x"}}, True),
        ('{ "a.0.b" = "x" }', {"a": [{"b": "x"}]}, True),
        ('{ "a.1.b" = "x" }', {"a": [{"b": "x"}]}, False),
        ('{ "a.b" = "x" }', {"a": "b"}, False),
        ('{ a = "x", b = "y" }', {"a": "x", "b": "y"}, True),
        ('{ a = "x", b = "y" }', {"a": "x", "b": "z"}, False),
    ],
)
def test_a_rule_fits_when_all_its_conditions_hold(condition: str, payload: Any, fits: bool) -> None:
    assert state_of(f"when = {condition}", payload) is (State.IDLE if fits else State.UNKNOWN)


def test_the_first_rule_that_fits_decides() -> None:
    rules = '[[hook]]\nevent = ["A", "B"]\n[[hook]]\nevent = "A"\nstate = "error"\nreason_code = "r"'
    assert read_hook(sheet(rules).hook, "A", {}) == (Source.HOOK, None)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("rate_limit", "rate_limit"),
        ("Rate limit!", "r"),
        ("", "r"),
        (5, "r"),
        (None, "r"),
        ("x" * 65, "r"),
        ("a\n", "r"),
    ],
)
def test_a_payload_may_name_the_reason_if_it_is_one(named: Any, reason: str) -> None:
    rules = '[[hook]]\nevent = "E"\nstate = "error"\nreason_code = "r"\nreason_path = "why"'
    _, verdict = read_hook(sheet(rules).hook, "E", {"why": named})
    assert verdict is not None
    assert verdict.reason_code == reason


ASKING = """[[hook]]
event = "E"
state = "waiting_input"
reason_code = "r"

[hook.attention]
kind = "question"
summary = ["a", "b"]
detail = ["d", "e"]
removed = ["x"]
added = ["y"]
options = "o"
"""


def attention_of(payload: Any):
    _, verdict = read_hook(sheet(ASKING).hook, "E", payload)
    assert verdict is not None
    return verdict.attention


def test_the_first_path_that_leads_to_a_text_is_the_summary() -> None:
    assert attention_of({"a": " ", "b": "from b"}).summary == "from b"
    assert attention_of({"a": ["x", "y"], "b": "no"}).summary == "x y"
    assert attention_of({"a": 5, "b": {"c": 1}}) is None


def test_a_summary_is_one_line_and_everything_is_bounded() -> None:
    asked = attention_of({"a": "one\n  two\t" + "x" * 999, "d": "y" * 20_000, "o": ["z" * 999] * 99})
    assert asked.summary.startswith("one two x")
    assert len(asked.summary) <= 200
    assert len(asked.detail) == 16_000 and asked.detail.startswith("one\n  two\tx")
    assert [len(option) for option in asked.options] == [200] * 20


def test_the_detail_has_all_that_a_yes_is_for() -> None:
    assert attention_of({"a": "ls"}).detail is None
    assert attention_of({"a": "ls", "d": "look", "e": "around"}).detail == "ls\n\nlook\n\naround"
    long = "echo a\n" + "rm -rf build && " * 20
    assert attention_of({"a": long, "d": "clean"}).detail == f"{long}\n\nclean"
    changed = attention_of({"a": "label.py", "x": "def label():\n    pass", "y": "def label(text):"})
    assert changed.detail == "label.py\n\n- def label():\n-     pass\n+ def label(text):"


def test_a_detail_that_is_cut_says_so_and_lets_no_secret_through() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for before in range(15_960, 16_010):
        detail = attention_of({"a": "x", "d": "y" * before + " " + secret + " " + "z" * 100_000}).detail
        assert detail.endswith("…") and len(detail) == 16_000
        assert secret[:12] not in detail


def test_options_are_labels_or_plain_texts_and_nothing_else() -> None:
    options = attention_of({"a": "?", "o": [{"label": "Red"}, "Blue", 5, None, {"name": "x"}]}).options
    assert options == ("Red", "Blue")


@pytest.mark.parametrize(
    "rules",
    [
        '[[hook]]\nevent = "E"\nstate = "sleeping"',
        '[[hook]]\nevent = "E"\nsource = "oracle"',
        '[[hook]]\nevent = "E"\ncolour = "red"',
        '[[hook]]\nstate = "idle"',
        '[[hook]]\nevent = "E"\nwhen = { a = 5 }',
        'colour = "red"',
    ],
)
def test_a_wrong_sheet_is_not_loaded(rules: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        sheet(rules)


@pytest.mark.parametrize("agent_type", ["", "Eliza", "9lives", "a b", "x" * 33])
def test_an_agent_type_is_a_short_plain_word(agent_type: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        sheet("", agent_type)


@pytest.mark.parametrize(
    ("mark", "command", "found"),
    [
        ("", "eliza", "eliza"),
        ("eliza", "zsh", "eliza"),
        ("parry", "eliza", "parry"),
        ("nobody", "zsh", "none"),
        ("nobody", "eliza", "eliza"),
        ("", "zsh", "none"),
        ("", "", "none"),
    ],
)
def test_a_pane_is_known_by_its_own_mark_or_else_by_what_runs_in_it(mark: str, command: str, found: str) -> None:
    registry = Registry([SheetAdapter(sheet("")), SheetAdapter(sheet("", "parry", "parry-cli"))])
    assert registry.identify(mark, command, []).agent_type == found


@pytest.mark.parametrize("line", ["++ x, evil()", "-- x", "++", "@@ -1 +1 @@", "+++ b/label.py", "--- a/label.py"])
def test_no_changed_line_is_taken_for_a_line_of_the_diffs_own(line: str) -> None:
    added = attention_of({"a": "label.js", "x": "one\ntwo", "y": f"one\n{line}\ntwo"})
    assert added.detail == f"label.js\n\n  one\n+ {line}\n  two"
    removed = attention_of({"a": "label.js", "x": f"one\n{line}\ntwo", "y": "one\ntwo"})
    assert removed.detail == f"label.js\n\n  one\n- {line}\n  two"
    far = attention_of({"a": "a", "x": "\n".join("abcdefghijkl"), "y": "\n".join([line, *"abcdefghijkl", line])})
    assert far.detail.count(f"+ {line}") == 2


ASKING_FOR_TOOLS = """
[[hook]]
event = "E"
state = "waiting_approval"
reason_code = "r"

[hook.attention]
kind = "approval"
summary = ["i.command", "i.path", "tool"]
input = "i"
tool = "tool"
tools = ["run", "edit"]
commands = ["run"]
notes = ["i.description"]
detail = ["i.prompt"]
removed = ["i.old"]
added = ["i.new"]
"""


def request_of(tool: str, **arguments: Any):
    _, verdict = read_hook(sheet(ASKING_FOR_TOOLS).hook, "E", {"tool": tool, "i": arguments})
    assert verdict is not None and verdict.attention is not None
    return verdict.attention


def test_what_an_agent_says_of_a_command_is_shown_with_it_and_not_in_its_place() -> None:
    asked = request_of("run", command="ls -la", description="List files")
    assert (asked.summary, asked.detail, asked.is_whole, asked.is_brief) == (
        "ls -la",
        "ls -la\n\nList files",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ('git push --token="x$(touch x)abcdefgh"', Incomplete.REDACTED),
        ("git push --token=[redacted]", Incomplete.REDACTED),
        ("cat label.txt \u202e# x", Incomplete.UNREADABLE),
        ("cat label\u200b.txt", Incomplete.UNREADABLE),
    ],
)
@pytest.mark.parametrize("more", [{}, {"description": "Push"}, {"timeout": 5}])
def test_a_command_that_cannot_be_shown_whole_says_so_whatever_stands_beside_it(
    command: str, why: Incomplete, more: dict[str, Any]
) -> None:
    asked = request_of("run", command=command, **more)
    assert (asked.incomplete, asked.is_brief) == (why, False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "echo a #\ntouch x"},
        {"command": 'rm "a  b"'},
        {"command": "ls", "is_background": True},
        {"command": "ls", "prompt": "and then"},
        {"command": "ls", "new": "x"},
        {"command": "x" * 201},
    ],
)
def test_one_line_is_all_of_a_request_only_if_nothing_was_joined_or_left_out(arguments: dict[str, Any]) -> None:
    asked = request_of("run", **arguments)
    assert not asked.is_brief
    for value in arguments.values():
        assert (value if isinstance(value, str) else "true") in asked.detail


def test_the_tool_is_named_unless_it_runs_what_is_shown() -> None:
    edit = request_of("edit", path="/p/label.py", old="a", new="b")
    assert (edit.summary, edit.detail) == ("/p/label.py", "/p/label.py\n\nTool: edit\n\n- a\n+ b")
    assert not request_of("edit", path="/p/label.py").is_brief


@pytest.mark.parametrize("name", ["command", "path", "prompt", "description", "old", "new"])
def test_of_a_tool_that_is_not_the_agents_own_the_name_is_shown_with_all_its_arguments(name: str) -> None:
    asked = request_of("mcp__prod__drop", **{name: "ls", "force": True})
    assert asked.summary == f"mcp__prod__drop {name}: ls force: true"
    assert asked.detail == f"mcp__prod__drop\n{name}: ls\nforce: true"
    assert asked.subject == "mcp__prod__drop" and not asked.is_brief


def test_no_argument_imitates_another() -> None:
    asked = request_of("mcp__prod__run", script="# a\nforce: false", **{"odd\nname": 1})
    assert asked.detail == 'mcp__prod__run\nscript:\n    # a\n    force: false\n"odd\\nname": 1'


def test_an_argument_of_another_kind_than_expected_is_shown_all_the_same() -> None:
    asked = request_of("run", command="ls", prompt={"a": 1}, new=["x", 5])
    assert asked.detail == 'ls\n\nprompt: {"a": 1}\nnew: ["x", 5]'
