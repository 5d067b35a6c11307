"""How an edited file looks, whose entries are whose, and what happens to them when the user edits too."""

import json

import pytest

from agtmux.agents.install.edit import Found, install, lacks, status, switched_off, uninstall
from agtmux.agents.install.jsonc import JsoncError
from unit.agents.install.documents import FLAT, GROUPED, HOOK, WAITING, wiring

ONE = wiring(events=["Stop"])
FLAT_ONE = wiring(FLAT, events=["Stop"])
COMMAND = f"{HOOK} eliza Stop"
ENTRY = f'{{ "hooks": [ {{ "type": "command", "command": "{COMMAND}", "timeout": 10 }} ] }}'

# What was there, and what it looks like with us, where $ is our entry on one line.
LAYOUTS = {
    "two spaces": (
        '{\n  "a": 1\n}\n',
        '{\n  "a": 1,\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": [\n          {\n'
        f'            "type": "command",\n            "command": "{COMMAND}",\n            "timeout": 10\n'
        "          }\n        ]\n      }\n    ]\n  }\n}\n",
    ),
    "tabs, and no newline at the end": (
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{}\n\t\t]\n\t}\n}',
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{},\n\t\t\t{\n\t\t\t\t"hooks": [\n\t\t\t\t\t{\n'
        f'\t\t\t\t\t\t"type": "command",\n\t\t\t\t\t\t"command": "{COMMAND}",\n\t\t\t\t\t\t"timeout": 10\n'
        "\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t}\n}",
    ),
    "one line": ('{"a":1}', '{"a":1, "hooks": { "Stop": [ $ ] }}'),
    "a list on one line": ('{\n "hooks": {\n  "Stop": [{}]\n }\n}', '{\n "hooks": {\n  "Stop": [{}, $]\n }\n}'),
    "nothing": ("{}", '{"hooks": { "Stop": [ $ ] }}'),
    "nothing but space": ("{ }", '{"hooks": { "Stop": [ $ ] } }'),
    "an empty list": ('{"hooks":{"Stop":[]}}', '{"hooks":{"Stop":[$]}}'),
    "a trailing comma": ('{"hooks":{"Stop":[{},]}}', '{"hooks":{"Stop":[{}, $,]}}'),
    "a comment on the last": (
        '{"hooks":{"Stop":[{} /* mine */]}}',
        '{"hooks":{"Stop":[{}, /* mine */ $]}}',
    ),
    "a comment behind a trailing comma": (
        '{"hooks":{"Stop":[\n{}, // mine\n]}}',
        '{"hooks":{"Stop":[\n{}, // mine\n'
        '{\n  "hooks": [\n    {\n      "type": "command",\n'
        f'      "command": "{COMMAND}",\n      "timeout": 10\n    }}\n  ]\n}},\n]}}}}',
    ),
}


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_an_entry_is_written_in_the_style_of_the_file(before: str, after: str) -> None:
    assert install(before, ONE) == after.replace("$", ENTRY)
    assert uninstall(install(before, ONE), ONE) == before


def test_windows_line_ends_are_kept() -> None:
    assert install('{\r\n  "a": 1\r\n}\r\n', ONE).count("\n") == install('{\r\n  "a": 1\r\n}\r\n', ONE).count("\r\n")


def test_a_new_file_names_what_its_kind_must_have() -> None:
    entry = {"type": "command", "bash": COMMAND}
    assert json.loads(install(None, FLAT_ONE)) == {"version": 1, "hooks": {"Stop": [entry]}}


def test_a_path_is_quoted_for_the_shell_and_for_json() -> None:
    text = install(None, wiring(hook='/it\'s "here"/agtmux-hook', events=["Stop"]))
    (group,) = json.loads(text)["hooks"]["Stop"]
    assert group["hooks"][0]["command"] == """'/it'"'"'s "here"/agtmux-hook' eliza Stop"""


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/old/place/agtmux-hook eliza Stop", True),
        ("'/old place/agtmux-hook' eliza Stop", True),
        ("agtmux-hook eliza", True),
        ("exec  agtmux-hook  eliza Stop", True),
        ("/bin/agtmux-hook elizabeth Stop", False),
        ("/bin/agtmux-hook parry Stop", False),
        ("/bin/my-agtmux-hook eliza Stop", False),
        ("/bin/agtmux-hook.sh eliza Stop", False),
        ("echo agtmux-hook; eliza", False),
    ],
)
def test_an_entry_is_ours_by_its_program_and_agent(command: str, ours: bool) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    found = status(text, ONE)
    assert (found.missing == ()) is ours
    assert uninstall(text, ONE) == (text if not ours else '{"hooks": {"Stop": []}}')


@pytest.mark.parametrize(
    "text",
    ["[]", "null", '"x"', '{"hooks": []}', '{"hooks": null}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": "x"}}'],
)
def test_a_file_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(JsoncError):
        install(text, ONE)
    assert uninstall(text, ONE) == text
    assert status(text, ONE) == Found(missing=("Stop",))


def test_lists_of_events_that_are_not_ours_may_have_any_form() -> None:
    text = '{"hooks": {"enabled": true, "disabled": ["x"], "Other": {}}}'
    assert uninstall(install(text, ONE), ONE) == text


BEFORE = '{\n  "a": 1\n}\n'


def edited(old: str, new: str) -> str | None:
    """Install, let the user replace something, uninstall."""
    text = install(BEFORE, ONE)
    assert old in text
    return uninstall(text.replace(old, new), ONE)


def test_an_entry_that_the_user_put_behind_ours_stays() -> None:
    assert edited("\n    ]\n", ',\n      { "hooks": [] }\n    ]\n') == (
        '{\n  "a": 1,\n  "hooks": {\n    "Stop": [\n      { "hooks": [] }\n    ]\n  }\n}\n'
    )


def test_an_entry_that_the_user_put_before_ours_stays() -> None:
    assert edited('"Stop": [', '"Stop": [\n      {},') == (
        '{\n  "a": 1,\n  "hooks": {\n    "Stop": [\n      {}\n    ]\n  }\n}\n'
    )


def test_a_command_that_the_user_put_beside_ours_stays() -> None:
    left = edited("\n        ]\n", ',\n          { "type": "command", "command": "true" }\n        ]\n')
    assert json.loads(left or "")["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "true"}]}]


def test_a_matcher_that_the_user_gave_to_our_entry_goes_with_it() -> None:
    assert edited('"hooks": [', '"matcher": "x",\n        "hooks": [') == BEFORE


def test_a_comment_that_the_user_wrote_into_our_part_stays() -> None:
    assert edited('"Stop": [', '"Stop": [ // mine') == (
        '{\n  "a": 1,\n  "hooks": {\n    "Stop": [ // mine\n    ]\n  }\n}\n'
    )
    made = install(None, FLAT_ONE)
    assert uninstall(made.replace("{\n", "{ // mine\n", 1), FLAT_ONE) == '{ // mine\n  "version": 1\n}\n'


def test_what_follows_ours_on_its_line_does_not_slip_into_a_comment() -> None:
    before = '{"hooks":{"Stop":[{} // mine\n]}}'
    text = install(before, ONE).replace("\n]}}", ", {}\n]}}")
    assert uninstall(text, ONE) == '{"hooks":{"Stop":[{}, // mine\n {}\n]}}'


def test_a_member_that_the_user_put_behind_ours_stays() -> None:
    assert edited("\n  }\n}", '\n  },\n  "b": 2\n}') == '{\n  "a": 1,\n  "b": 2\n}\n'


def test_what_the_user_put_into_a_file_that_we_made_keeps_it() -> None:
    text = install(None, FLAT_ONE).replace('"version": 1', '"version": 1,\n  "mine": true')
    assert json.loads(uninstall(text, FLAT_ONE) or "") == {"version": 1, "mine": True}


def test_a_file_that_an_agent_wrote_anew_is_cleared_of_all_that_is_ours() -> None:
    anew = json.dumps(json.loads(install(BEFORE, wiring())), indent=4)
    assert uninstall(anew, wiring()) == json.dumps({"a": 1}, indent=4)


def test_a_file_begun_by_somebody_else_is_left_as_it_was_even_if_it_only_has_what_a_new_one_has() -> None:
    begun = '{\n  "version": 1\n}\n'
    assert uninstall(install(begun, FLAT_ONE), FLAT_ONE) == begun


def test_entries_that_are_there_twice_become_one() -> None:
    before = '{"hooks": {"Stop": [{}]}}'
    once = install(before, ONE)
    twice = once.replace("]}}", f", {ENTRY}]}}}}")
    assert install(twice, ONE) == once
    assert uninstall(twice, ONE) == before


def test_an_empty_object_that_was_there_is_still_known_as_such_when_the_first_of_ours_has_gone() -> None:
    for before in ('{"hooks": {}}', '{\n  "hooks": {\n  }\n}\n'):
        last = install(install(before, wiring()), wiring(events=["Ask"]))
        assert last == install(before, wiring(events=["Ask"]))
        assert uninstall(last, wiring()) == before


def test_an_entry_under_a_name_that_a_later_one_hides_is_moved_to_where_the_agent_looks() -> None:
    hidden = install('{"hooks": {}}', ONE).replace("}}", '}, "hooks": {"Other": []}}')
    assert status(hidden, ONE) == Found(missing=("Stop",), surplus=("Stop",))
    assert json.loads(install(hidden, ONE))["hooks"].keys() == {"Other", "Stop"}
    assert uninstall(install(hidden, ONE), ONE) == '{"hooks": {}, "hooks": {"Other": []}}'


def test_a_list_that_hides_another_of_its_name_stays_when_it_is_empty() -> None:
    text = '{"hooks": {"Stop": [{"hooks": []}], "Stop": [ ' + ENTRY + " ]}}"
    assert uninstall(text, ONE) == '{"hooks": {"Stop": [{"hooks": []}], "Stop": [ ]}}'


def test_an_entry_of_ours_with_another_event_in_its_command_is_put_right() -> None:
    wrong = install(None, ONE).replace("eliza Stop", "eliza Start")
    assert status(wrong, ONE) == Found(stale=("Stop",))
    assert install(wrong, ONE) == install(None, ONE)


def test_a_setting_that_switches_hooks_off_is_seen() -> None:
    way = wiring(GROUPED + 'off = { disableAllHooks = true, "a.enabled" = false }\n')
    assert switched_off('{"disableAllHooks": true}', way) == ["disableAllHooks"]
    assert switched_off('{"a": {"enabled": false}, "disableAllHooks": false}', way) == ["a.enabled"]
    assert switched_off('{"a": [], "disableAllHooks": "true"}', way) == []
    assert switched_off(None, way) == []


def test_a_file_without_what_its_kind_must_have_is_noticed() -> None:
    assert lacks("{}", FLAT_ONE) == ["version"]
    assert lacks('{"version": 2}', FLAT_ONE) == []
    assert lacks(None, FLAT_ONE) == []


def test_an_old_entry_is_told_to_wait_and_keeps_what_the_user_made_of_it() -> None:
    now = wiring(WAITING, events=["Ask"])
    handler = '{"timeout": 5, "command": "agtmux-hook eliza Ask", "x": 1}'
    old = f'{{"hooks": {{"Ask": [{{"matcher": "Bash", "hooks": [{handler}]}}]}}}}'
    (group,) = json.loads(install(old, now))["hooks"]["Ask"]
    assert group == {
        "matcher": "Bash",
        "hooks": [{"timeout": 86400, "command": f"{HOOK} eliza Ask --wait", "quiet": True, "x": 1}],
    }
    assert uninstall(install(old, now), now) == uninstall(old, now)


def test_an_entry_that_waits_already_keeps_the_users_limit() -> None:
    now = wiring(WAITING, events=["Ask"])
    mine = install("{}", now).replace("86400", "600")
    assert install(mine, now) == mine


def test_a_file_with_more_of_ours_than_we_ever_wrote_is_refused_at_once() -> None:
    many = '{"hooks": {"Stop": [' + ",".join([ENTRY] * 5_000) + "]}}"
    for act in (install, uninstall, status):
        with pytest.raises(JsoncError, match="5000 entries of agtmux"):
            act(many, ONE)
