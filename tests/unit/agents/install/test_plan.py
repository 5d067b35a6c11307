"""Every agent's hooks, from the settings its users may have, into real files and out again."""

import json
from pathlib import Path

import msgspec
import pytest

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.edit import Wiring
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.install.plan import Report, hooks_status, install_hooks, uninstall_hooks
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import MOST_BYTES, digest
from support.histories import with_history
from unit.agents.install.documents import as_python
from unit.agents.install.test_sheet import BY_NAME

HOOK = "/opt/agtmux/bin/agtmux-hook"
NEWEST = "99.0.0"
# With events that nobody has decided on yet, so that the form is tried all the same.
CURSOR = msgspec.structs.replace(
    BY_NAME["cursor"], hooks=msgspec.structs.replace(BY_NAME["cursor"].hooks, events=["sessionStart", "stop"])
)
SHEETS = {**BY_NAME, "cursor": CURSOR}


def starts(sheet: AgentSheet) -> dict[str, str | None]:
    """Settings that somebody may have before we come."""
    assert sheet.hooks is not None
    ours, *_, last = sheet.hooks.events
    theirs = json.dumps(sheet.hooks.entry_for("~/bin/notify.sh"))
    pretty = json.dumps({"a": [1], "hooks": {ours: [json.loads(theirs)], "Else": []}, "z": None}, indent=4)
    return {
        "no file": None,
        "empty": "{}",
        "empty with a space": "{ }",
        "empty over two lines": "{\n}\n",
        "empty hooks": '{\n  "hooks": {}\n}\n',
        "empty hooks over two lines": '{\n  "hooks": {\n  }\n}\n',
        "an empty list": f'{{\n  "hooks": {{\n    "{last}": [ ]\n  }}\n}}\n',
        "other settings": '{\n  "model": "x",\n  "permissions": {\n    "allow": ["Bash(ls:*)"]\n  }\n}\n',
        "hooks of others": f'{{"version": 1, "hooks": {{"{ours}": [{theirs}], "{last}": [{theirs}, {theirs}]}}}}',
        "four spaces": pretty,
        "tabs": json.dumps(json.loads(pretty), indent="\t"),
        "windows": pretty.replace("\n", "\r\n") + "\r\n",
        "no indentation": json.dumps(json.loads(pretty), indent=0),
        "crooked": f'{{ "hooks"\n:\n   {{ "{ours}" :[{theirs}\n]  \n  ,"{last}":\n[\n\n]}}}}   \n\n',
        "comments": f'// mine\n{{\n  // hooks\n  "hooks": {{ /* {ours} */\n    "{ours}": [ // one\n'
        f"      {theirs}, // two\n    ],\n    // end\n  }},\n  // end\n}}\n// after\n",
        "byte order mark": "\ufeff" + pretty,
        "escapes": f'{{"\\u0068ooks": {{"{ours}": [], "x": "\\ud83d\\ude00 {{"}}, "\\"hooks\\"": {{"a": "]"}}}}',
        "a name twice": f'{{"hooks": {{"{ours}": [{theirs}]}}, "hooks": {{"{ours}": [], "{ours}": [{theirs}]}}}}',
    }


CASES = [
    pytest.param(sheet, text, id=f"{name}-{start}")
    for name, sheet in SHEETS.items()
    for start, text in starts(sheet).items()
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def files(home: Path) -> LocalFiles:
    return LocalFiles({"HOME": str(home)})


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path / "state" / "backups")


def place(sheet: AgentSheet, files: LocalFiles, text: str | None) -> Path:
    """The agent's file, with that text, if any."""
    assert sheet.hooks is not None
    path = Path(sheet.hooks.path(files.environ))
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
    return path


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(("sheet", "text"), CASES)
def test_hooks_come_and_go_and_nothing_else_changes(
    sheet: AgentSheet, text: str | None, home: Path, files: LocalFiles, backups: Backups
) -> None:
    path = place(sheet, files, text)
    before = tree(home)
    assert sheet.hooks is not None
    events = tuple(sheet.hooks.events)

    installed = install_hooks(sheet, files, HOOK, backups, version=NEWEST)
    assert (installed.agent, installed.path) == (sheet.agent_type, str(path))
    assert installed.added == events
    assert (text is None) == (installed.backup is None)
    if installed.backup:
        assert Path(installed.backup).read_bytes() == (text or "").encode()
    now = as_python(path.read_bytes().decode())
    for event in events:
        command = Wiring(sheet.agent_type, sheet.hooks, events, HOOK).command(event)
        assert now["hooks"][event][-1] == sheet.hooks.entry_for(command, event)
    assert len(tree(home)) == len(before) or text is None

    again = install_hooks(sheet, files, HOOK, backups, version=NEWEST)
    assert not again.changed
    assert again.already_there == events
    assert hooks_status(sheet, files, HOOK, version=NEWEST).already_there == events

    moved = install_hooks(sheet, files, "/else where/agtmux-hook", backups, version=NEWEST)
    assert moved.replaced == events
    assert hooks_status(sheet, files, HOOK, version=NEWEST).stale == events

    (removed,) = uninstall_hooks(sheet, files, backups)
    assert set(removed.removed) == set(events)
    assert tree(home) == before
    assert backups.noted(sheet.agent_type) == {}
    assert hooks_status(sheet, files, HOOK, version=NEWEST).missing == events
    assert uninstall_hooks(sheet, files, backups) == [Report(sheet.agent_type, str(path))]


CLAUDE = BY_NAME["claude"]


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b'{\n  "a": 1\n  "b": 2\n}', 3, 3),
        (b"{\n  hooks: {}\n}", 2, 3),
        (b'{"hooks": {}', 1, 13),
        (b'{\n "hooks": 5\n}', 2, 11),
        (b'{"hooks": {"Stop": {}}}', 1, 20),
        (b"[]", 1, 1),
        (b'{"a": "\xff"}', 1, 8),
        (b"model = 'x'\n", 1, 1),
        ("{}".encode("utf-16"), 1, 1),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone_and_named(
    data: bytes, line: int, column: int, home: Path, files: LocalFiles, backups: Backups, tmp_path: Path
) -> None:
    path = place(CLAUDE, files, "")
    path.write_bytes(data)
    with pytest.raises(AgtmuxError, match="left as it is") as caught:
        install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    assert caught.value.code is ErrorCode.CONFIG
    assert caught.value.details == {"path": str(path), "line": line, "column": column}
    assert str(path) in caught.value.message
    assert path.read_bytes() == data
    assert not (tmp_path / "state").exists()


def test_an_empty_file_is_left_alone_with_a_hint(files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, " \n")
    with pytest.raises(AgtmuxError, match=r"is empty; write \{\} into it"):
        install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    assert path.read_text() == " \n"


def test_a_broken_file_stops_removal_and_status_too(files: LocalFiles, backups: Backups) -> None:
    place(CLAUDE, files, "{")
    with pytest.raises(AgtmuxError):
        uninstall_hooks(CLAUDE, files, backups)
    with pytest.raises(AgtmuxError):
        hooks_status(CLAUDE, files, HOOK, version=NEWEST)


def test_a_read_only_file_is_left_alone(files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, "{}")
    path.chmod(0o400)
    with pytest.raises(AgtmuxError, match="read-only"):
        install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    assert path.read_text() == "{}"
    assert hooks_status(CLAUDE, files, HOOK, version=NEWEST).already_there == ()


def test_a_symbolic_link_is_followed_and_mentioned(home: Path, files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, "")
    path.unlink()
    real = home / "dotfiles.json"
    real.write_text("{}")
    path.symlink_to(real)
    installed = install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    assert any(str(real) in warning for warning in installed.warnings)
    assert path.is_symlink()
    uninstall_hooks(CLAUDE, files, backups)
    assert path.is_symlink()
    assert real.read_text() == "{}"


def test_the_mode_of_a_file_is_kept(files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, "{}")
    path.chmod(0o604)
    install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    uninstall_hooks(CLAUDE, files, backups)
    assert path.stat().st_mode & 0o777 == 0o604


def test_hooks_are_found_where_they_were_put_when_the_environment_has_changed(
    home: Path, backups: Backups, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    install_hooks(
        CLAUDE, LocalFiles({"HOME": str(home), "CLAUDE_CONFIG_DIR": str(other)}), HOOK, backups, version=NEWEST
    )
    reports = uninstall_hooks(CLAUDE, LocalFiles({"HOME": str(home)}), backups)
    assert [report.path for report in reports if report.removed] == [str(other / "settings.json")]
    assert not other.exists()


def test_an_old_version_gets_what_it_knows_and_loses_what_it_does_not(files: LocalFiles, backups: Backups) -> None:
    place(CLAUDE, files, "{}")
    install_hooks(CLAUDE, files, HOOK, backups, version="2.1.325")
    report = install_hooks(CLAUDE, files, HOOK, backups, version="2.1.70")
    assert report.removed == ("StopFailure",)
    assert "Claude Code 2.1.70 does not have these hooks yet: StopFailure." in report.warnings
    assert hooks_status(CLAUDE, files, HOOK, version="2.1.70").missing == ()
    assert hooks_status(CLAUDE, files, HOOK, version="2.1.325").missing == report.removed


@pytest.mark.parametrize(("version", "told"), [(None, "no Claude Code was found"), ("", "is not known, so")])
def test_a_version_that_is_not_known_takes_nothing_out(
    files: LocalFiles, backups: Backups, version: str | None, told: str
) -> None:
    place(CLAUDE, files, "{}")
    least = install_hooks(CLAUDE, files, HOOK, backups, version=version)
    assert least.added and least.left_out and least.version == version
    assert any(told in warning for warning in least.warnings)
    # Which, how many, and what adds them.
    whole = " ".join(least.warnings)
    assert CLAUDE.hooks is not None
    assert f"{len(least.left_out)} of {len(CLAUDE.hooks.events)}: {', '.join(least.left_out)}" in whole
    assert "`agtmux hooks install --agent claude`" in whole
    # Once its version is known, they are told as missing.
    assert hooks_status(CLAUDE, files, HOOK, version=NEWEST).missing == least.left_out
    install_hooks(CLAUDE, files, HOOK, backups, version="2.1.70")
    some = hooks_status(CLAUDE, files, HOOK, version=version)
    assert some.left_out == ("StopFailure",)
    assert (some.stale, some.surplus, some.missing) == ((), (), ())
    full = install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    again = install_hooks(CLAUDE, files, HOOK, backups, version=version)
    assert not again.changed and not again.left_out and not again.warnings
    assert set(again.already_there) == {*full.added, *full.already_there}
    # Another place of agtmux-hook is still brought up to date, for all of them.
    moved = install_hooks(CLAUDE, files, "/elsewhere/agtmux-hook", backups, version=version)
    assert moved.replaced == again.already_there and not moved.removed


def test_people_are_told_what_they_have_to_do_when_something_is_new(files: LocalFiles, backups: Backups) -> None:
    codex = BY_NAME["codex"]
    first = install_hooks(codex, files, HOOK, backups, version=None)
    assert any("trust" in warning for warning in first.warnings)
    assert install_hooks(codex, files, HOOK, backups, version=None).warnings == ()


def test_settings_that_keep_hooks_from_running_are_mentioned(files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, '{"disableAllHooks": true}')
    report = install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    assert (
        f"{path} switches all hooks off (disableAllHooks); nothing is reported until that is changed."
        in report.warnings
    )
    place(CURSOR, files, "{}")
    report = install_hooks(CURSOR, files, HOOK, backups, version=NEWEST)
    assert any('does not say "version": 1' in warning for warning in report.warnings)


def test_settings_that_keep_hooks_from_running_are_seen_in_a_large_file(files: LocalFiles) -> None:
    config = {"enabled": False, "disabled": ["x" * 100] * 20}
    place(SHEETS["gemini"], files, with_history(MOST_BYTES, hooksConfig=config))
    assert hooks_status(SHEETS["gemini"], files, HOOK, version=NEWEST).off == ("hooksConfig.enabled",)


def test_an_agent_without_hooks_is_refused(files: LocalFiles, backups: Backups) -> None:
    for sheet in (BY_NAME["cursor"], msgspec.structs.replace(CLAUDE, hooks=None)):
        with pytest.raises(AgtmuxError) as caught:
            install_hooks(sheet, files, HOOK, backups, version=NEWEST)
        assert caught.value.code is ErrorCode.UNSUPPORTED


@pytest.mark.parametrize(
    "hook", ["agtmux-hook", "bin/agtmux-hook", "/bin/other", "/bin/agtmux-hook\n", "/\udcff/agtmux-hook"]
)
def test_a_command_that_would_not_be_known_again_is_refused(hook: str, files: LocalFiles, backups: Backups) -> None:
    with pytest.raises(AgtmuxError) as caught:
        install_hooks(CLAUDE, files, hook, backups, version=NEWEST)
    assert caught.value.code is ErrorCode.USAGE


@pytest.mark.parametrize("name", [name for name, sheet in SHEETS.items() if sheet.hooks and sheet.hooks.events])
@pytest.mark.parametrize("size", [2 * MOST_BYTES, 15_000_000])
def test_hooks_in_a_large_file_leave_every_byte(name: str, size: int, files: LocalFiles, backups: Backups) -> None:
    sheet = SHEETS[name]
    assert sheet.hooks is not None
    theirs = {sheet.hooks.events[0]: [sheet.hooks.entry_for("~/bin/notify.sh")]}
    text = with_history(size, hooks=theirs, last=[1])
    path = place(sheet, files, text)
    installed = install_hooks(sheet, files, HOOK, backups, version=NEWEST)
    assert installed.added == tuple(sheet.hooks.events) and installed.backup is not None
    assert Path(installed.backup).read_bytes() == text.encode()
    content = json.loads(path.read_bytes())
    assert set(content.pop("hooks")) == set(sheet.hooks.events)
    assert content.items() <= json.loads(text).items()
    assert hooks_status(sheet, files, HOOK, version=NEWEST).already_there == installed.added
    assert uninstall_hooks(sheet, files, backups)[0].removed
    assert path.read_bytes() == text.encode()


def test_hooks_go_from_a_file_that_has_grown_large_since(files: LocalFiles, backups: Backups) -> None:
    path = place(CLAUDE, files, "{}")
    install_hooks(CLAUDE, files, HOOK, backups, version=NEWEST)
    grown = json.loads(with_history(MOST_BYTES, disableAllHooks=True)) | json.loads(path.read_bytes())
    path.write_text(json.dumps(grown, indent=2))
    assert "disableAllHooks" in " ".join(hooks_status(CLAUDE, files, HOOK, version=NEWEST).warnings)
    assert uninstall_hooks(CLAUDE, files, backups)[0].removed
    assert json.loads(path.read_bytes()) == {name: value for name, value in grown.items() if name != "hooks"}


def test_copies_are_private_kept_once_and_not_for_ever(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    backups = Backups(folder)
    for number in [0, 0, *range(20)]:
        data = b"%d" % number
        copy = backups.keep("claude", "/home/x/.claude/settings.json", data, digest(data))
        assert copy.stat().st_mode & 0o777 == 0o600
    assert len(list(folder.iterdir())) == 10
    assert copy.read_bytes() == b"19"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_record_that_is_damaged_costs_only_what_it_knew(tmp_path: Path) -> None:
    backups = Backups(tmp_path)
    backups.note("claude", "/a", ["/x"])
    backups.note("claude", "/a", ["/x", "/y"])
    assert backups.noted("claude") == {"/a": ["/x", "/y"]}
    (tmp_path / "installed.json").write_text("{")
    assert backups.noted("claude") == {}
    backups.forget("claude", "/a")
