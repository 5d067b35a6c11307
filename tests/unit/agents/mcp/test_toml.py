"""Our entry in TOML of any kind: it comes and goes, and every other byte stays."""

import tomllib

import pytest
import tomlkit
from hypothesis import assume, given
from hypothesis import strategies as st

from agtmux.agents.mcp import toml_file
from unit.agents.mcp.toml_documents import UNDER, toml_documents

ENTRY = {
    "command": "/opt/agtmux/bin/agtmux-mcp",
    "args": ["--socket", "/run/me/agtmux/agtmuxd.sock"],
    "env_vars": ["TMUX", "TMUX_PANE"],
}
# What users and agents do to an entry: (the part of it, what stands there instead).
EDITS = [
    ("command = ", "command="),
    ("[mcp_servers.agtmux]", "  [ mcp_servers . 'agtmux' ] # mine"),
    ("args = ", "# a comment\n\targs\t=\t"),
    ('["TMUX", "TMUX_PANE"]', '[\n  "TMUX", # ]\n  "TMUX_PANE",\n]'),
    ('["TMUX", "TMUX_PANE"]', '["TMUX", "TMUX_PANE"]\nenv.A = """\n[x]\n"""'),
    ('["TMUX", "TMUX_PANE"]', '["TMUX", "TMUX_PANE"]\n\n[mcp_servers.agtmux.tools.list]\napproval_mode = "approve"'),
    ('["TMUX", "TMUX_PANE"]', '["TMUX", "TMUX_PANE"]\n[[mcp_servers.agtmux.rules]]\na = 1'),
]
TAILS = ["", "\n# next\n", "\n# next\n[later]\na = 1\n", '\n[mcp_servers.later]\ncommand = "x" # [y]\n']


def parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        assume(False)
        raise


def lines_of(text: str) -> list[str]:
    # A last line without an end gets one before our entry, and keeps it when something follows the entry.
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n") if line.strip()]


@given(toml_documents())
def test_any_toml_is_as_before(text: str) -> None:
    parsed(text)
    new = toml_file.added(text, UNDER, ENTRY)
    assert new.startswith(text)
    assert parsed(new)[UNDER]["agtmux"] == ENTRY  # type: ignore[index]
    assert toml_file.removed(new, UNDER) == text


@given(toml_documents(), st.sampled_from(EDITS), st.sampled_from(TAILS))
def test_an_entry_that_was_edited_goes_and_every_other_line_stays(text: str, edit: tuple[str, str], tail: str) -> None:
    parsed(text)
    new = toml_file.added(text, UNDER, ENTRY)
    # In the entry itself, and not in a text that quotes it.
    edited = text + new[len(text) :].replace(*edit) + tail
    assume(parsed(edited)[UNDER]["agtmux"])  # type: ignore[index]
    try:
        left = toml_file.removed(edited, UNDER)
    except toml_file.TomlError as error:
        # tomlkit 0.15 drops spaces in [[ x ]] and after some dates.
        assert (
            "by hand" in error.problem and tomlkit.dumps(tomlkit.parse(body := edited.removeprefix("\ufeff"))) != body
        )
        return
    assert left is not None and lines_of(left) == lines_of(text + tail)
    if not tail:
        assert left == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('[mcp_servers]\nagtmux = { command = "x" } # y\nfiles.a = 1\n', "[mcp_servers]\nfiles.a = 1\n"),
        ("a = 1\nmcp_servers.agtmux.command = 'x'\nmcp_servers.agtmux.args = []\nb = 2\n", "a = 1\nb = 2\n"),
        ("[mcp_servers.agtmux]\na = 1\n[t]\n[mcp_servers.agtmux.env]\nb = 1\n# z\n", "[t]\n# z\n"),
    ],
)
def test_an_entry_in_another_form_goes_too(text: str, left: str) -> None:
    assert toml_file.removed(text, UNDER) == left


@pytest.mark.parametrize("text", ['mcp_servers = { agtmux = { command = "x" }, b = { c = 1 } }\n'])
def test_an_entry_inside_of_a_line_is_left_alone_with_what_to_do(text: str) -> None:
    with pytest.raises(toml_file.TomlError, match="by hand"):
        toml_file.removed(text, UNDER)


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000 + "]" * 5_000, "a = " + "1" * 5_000])
def test_toml_that_no_parser_takes_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(toml_file.TomlError):
        toml_file.added(text, UNDER, ENTRY)


def test_an_entry_is_not_looked_for_in_text_that_quotes_it() -> None:
    quoted = f"notes = '''\n{toml_file.added(None, UNDER, ENTRY)}'''\n"
    new = toml_file.added(quoted, UNDER, ENTRY) + "\n[later]\n" + quoted
    assert toml_file.removed(new, UNDER) == quoted + "\n[later]\n" + quoted
