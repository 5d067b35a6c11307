"""What the app does to a Mac when asked to: the command, the login item, the first window; and when it refuses."""

import os
from pathlib import Path

import pytest

from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.mac import commandline
from AgtmuxBar.mac.bundle import Bundle, own_bundle, require_settled

TRANSLOCATED = Bundle(Path("/private/var/folders/x/AppTranslocation/0-0/d/AgtmuxBar.app"))


@pytest.fixture
def bundle(tmp_path):
    made = Bundle(tmp_path / "Applications" / "AgtmuxBar.app")
    made.commands.mkdir(parents=True)
    script = made.commands / "agtmux"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return made


def test_a_bundle_is_found_from_each_of_its_programs():
    for program in ("MacOS/python", "Resources/bin/python3"):
        assert own_bundle(f"/Applications/AgtmuxBar.app/Contents/{program}") == Bundle(
            Path("/Applications/AgtmuxBar.app")
        )
    assert own_bundle("/usr/bin/python3") is None
    # A framework's Python is in a bundle of its own, which is not ours.
    assert own_bundle() is None


def test_a_copy_that_macos_runs_from_a_temporary_place_refuses_to_install_itself(tmp_path):
    bundle = Bundle(tmp_path / "AppTranslocation" / "0-0" / "d" / "AgtmuxBar.app")
    bundle.commands.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    with pytest.raises(AgtmuxError, match="temporary place"):
        require_settled(bundle)
    with pytest.raises(AgtmuxError, match="Applications"):
        commandline.install(bundle, [str(tmp_path / "bin")])
    assert not list((tmp_path / "bin").iterdir())


def test_a_copy_on_a_disk_image_refuses_too():
    with pytest.raises(AgtmuxError, match="a disk that may go"):
        require_settled(Bundle(Path("/Volumes/agtmux/AgtmuxBar.app")))


def test_the_command_is_a_link_that_a_shell_finds(bundle, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    link = commandline.install(bundle, [str(tmp_path / "none"), str(folder), "~/x"])
    assert link == folder / "agtmux"
    assert link.resolve() == (bundle.commands / "agtmux").resolve()
    assert commandline.is_ours(bundle, str(folder))
    # Again changes nothing.
    assert commandline.install(bundle, [str(folder)]) == link
    assert [path.name for path in folder.iterdir()] == ["agtmux"]
    commandline.uninstall(bundle, [str(folder)])
    assert not list(folder.iterdir())


def test_a_link_to_where_the_app_was_before_is_pointed_here(bundle, tmp_path):
    (tmp_path / "agtmux").symlink_to("/old/AgtmuxBar.app/Contents/Resources/bin/agtmux")
    assert not commandline.is_ours(bundle, str(tmp_path))
    commandline.install(bundle, [str(tmp_path)])
    assert commandline.is_ours(bundle, str(tmp_path))


@pytest.mark.parametrize("other", ["file", "link"])
def test_what_somebody_else_put_there_stays(bundle, tmp_path, other):
    there = tmp_path / "agtmux"
    there.write_text("theirs") if other == "file" else there.symlink_to("/usr/local/bin/theirs")
    with pytest.raises(AgtmuxError, match="is not AgtmuxBar's"):
        commandline.install(bundle, [str(tmp_path)])
    assert there.is_symlink() if other == "link" else there.read_text() == "theirs"
    commandline.uninstall(bundle, [str(tmp_path)])
    assert os.path.lexists(there)


def test_a_folder_is_made_only_where_none_can_be_used(bundle, tmp_path):
    link = commandline.install(bundle, [str(tmp_path / "none"), str(tmp_path / "made" / "bin")])
    assert link == tmp_path / "made" / "bin" / "agtmux"
    assert not (tmp_path / "none").exists()


def test_the_login_item_is_asked_of_macos(world, bundle):
    from AgtmuxBar.mac import loginitem

    assert not loginitem.is_on()
    loginitem.turn(True, bundle)
    assert loginitem.is_on()
    loginitem.turn(False, bundle)
    assert not loginitem.is_on()
    with pytest.raises(AgtmuxError):
        loginitem.turn(True, TRANSLOCATED)
    world.login_refusal = "Operation not permitted"
    with pytest.raises(AgtmuxError, match="Operation not permitted"):
        loginitem.turn(True, bundle)


@pytest.fixture
def desktop(world, bundle, monkeypatch, tmp_path):
    from AgtmuxBar.mac.desktop import MacDesktop

    monkeypatch.setenv("AGTMUX_STATE_DIR", str(tmp_path / "state"))
    return MacDesktop(bundle)


BRIDGES = {"claude": "~/.claude.json", "codex": "/etc/codex.toml"}


def test_each_offer_says_what_it_changes_and_only_what_is_ticked_is_done(world, bundle, desktop):
    from AgtmuxBar.mac import welcome

    settings = str(Path.home() / ".claude" / "settings.json")
    offers = welcome.offers(bundle, desktop, [settings], BRIDGES)
    assert [offer.choice.key for offer in offers] == ["hooks", "bridge claude", "bridge codex", "command", "login"]

    def untick_the_hooks(alert):
        boxes = alert.accessoryView()._values["views"]
        assert [box.state() for box in boxes] == [1, 1, 1, 1, 0]
        assert "for each event to ~/.claude/settings.json, and nothing else" in alert.informativeText()
        assert "MCP server to ~/.claude.json while agtmux is open" in alert.informativeText()
        assert "the same in /etc/codex.toml" in alert.informativeText()
        assert "makes the link" in alert.informativeText()
        assert "LaunchAgents/dev.agtmux.daemon.plist" in alert.informativeText()
        assert [button.title() for button in alert.buttons()] == ["Set Up", "Not Now"]
        boxes[0].setState_(0)
        boxes[2].setState_(0)
        return 1000

    assert welcome.is_due()
    world.alert_answers.append(untick_the_hooks)
    accepted = welcome.ask(offers, bundle)
    assert [offer.choice.key for offer in accepted] == ["bridge claude", "command"]
    assert not welcome.is_due()


def test_not_now_does_nothing_and_is_not_asked_again(world, bundle, desktop):
    from AgtmuxBar.mac import welcome

    world.alert_answers.append(1001)
    assert welcome.ask(welcome.offers(bundle, desktop, [], BRIDGES)) == []
    assert not welcome.is_due()


def test_a_translocated_copy_offers_nothing_and_asks_again_from_applications(world, desktop):
    from AgtmuxBar.mac import welcome

    assert not welcome.may_install(TRANSLOCATED)
    assert welcome.ask(welcome.offers(TRANSLOCATED, desktop, [], BRIDGES)) == []
    assert welcome.is_due()


def test_one_that_fails_does_not_keep_the_next_from_being_done(world):
    from AgtmuxBar.mac import dialogs, welcome

    done = []

    def fail():
        raise OSError("read-only")

    offers = [
        welcome.Offer(dialogs.Choice("a", "A", ""), fail),
        welcome.Offer(dialogs.Choice("b", "B", ""), lambda: done.append("b")),
        welcome.Offer(dialogs.Choice("c", "C", ""), fail, decline=lambda: done.append("no c")),
    ]
    assert welcome.carry_out(offers, offers[:2]) == ["A: read-only"]
    assert done == ["b", "no c"]


def test_outside_a_bundle_the_menu_is_silent_about_what_only_a_bundle_can(world):
    from AgtmuxBar.mac.desktop import MacDesktop

    desktop = MacDesktop(None)
    found = desktop.surroundings()
    assert (found.is_launched_at_login, found.has_command_line_tool) == (None, None)
    with pytest.raises(AgtmuxError, match=r"only AgtmuxBar\.app"):
        desktop.launch_at_login(True)
    with pytest.raises(AgtmuxError, match=r"only AgtmuxBar\.app"):
        desktop.install_command()
