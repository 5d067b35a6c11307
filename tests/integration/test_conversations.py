"""What was asked and answered, from the files that agents write: all of it, once, and nobody else's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

from support.home import COMMANDS, Home, wait_until
from support.talking import Talker, stamp, turns


def watched(home: Home, *talkers: Talker) -> None:
    home.start()
    wait_until(lambda: {each.pane for each in talkers} <= set(home.panes()), "the panes")


def test_what_is_asked_and_answered_is_told(home: Home):
    talker = Talker(home)
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    assert talker.hears(*turns(1, 1)) == [("user", "prompt 1"), ("assistant", "answer 1")]
    # Nothing but the file itself says so from now on.
    talker.turn(2)
    talker.hears(*turns(1, 2))
    (item,) = home.ask("GET", f"/v1/conversations?ref={talker.ref}").json["items"]
    assert (item["title"], item["messages"], item["source"]) == ("prompt 1", 4, "transcript")
    assert (item["session_id"], item["ref"]) == (talker.session, talker.ref)
    # gwt S1.2: of the agent too.
    assert home.panes()[talker.pane]["session_id"] == talker.session
    printed = home.run("log", talker.pane).stdout
    assert printed.splitlines()[1::3] == turns(1, 2)
    assert [json.loads(home.run("log", talker.pane, "--json").stdout)["items"][0]["request_id"]] == ["p1"]


def test_two_in_one_folder_have_each_their_own(home: Home):
    first, second = Talker(home), Talker(home)
    first.turn(1)
    second.turn(2)
    watched(home, first, second)
    first.stir()
    second.stir()
    first.hears(*turns(1, 1))
    second.hears(*turns(2, 2))


def test_a_hook_that_names_another_file_than_the_process_does_is_not_believed(home: Home):
    talker, other = Talker(home), Talker(home)
    talker.turn(1)
    other.turn(2)
    watched(home, talker, other)
    # As one would that an agent has started within its own pane.
    claim = {"session_id": other.session, "transcript_path": str(other.path), "hook_event_name": "Stop"}
    record = {"v": 1, "agent": "claude", "event": "Stop", "event_id": "e1", "event_time_ns": time.time_ns()}
    place = home.tmux_variables(talker.pane)
    record |= {"tmux": place["TMUX"], "pane_id": talker.pane}
    body = json.dumps(record).encode() + b"\n" + json.dumps(claim).encode()
    said = home.ask("POST", "/v1/events", body, {"Content-Type": "application/vnd.agtmux.hook"})
    assert said.json["status"] == "applied", said
    talker.hears(*turns(1, 1))


def test_without_proof_there_is_no_conversation(home: Home):
    talker = Talker(home)
    talker.turn(1)
    (talker.config / "sessions" / f"{talker.pid}.json").unlink()
    other = Talker(home)
    other.turn(2)
    watched(home, talker, other)
    talker.stir()
    other.stir()
    other.hears(*turns(2, 2))
    assert talker.said() == []
    panes = home.panes()
    assert [panes[each.pane]["session_id"] for each in (talker, other)] == [None, other.session]


def test_the_agents_own_settings_say_where_its_files_are(home: Home):
    talker = Talker(home, config=home.folder / "elsewhere")
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))


def test_a_daemon_that_is_killed_over_it_neither_doubles_nor_loses_anything(home: Home):
    talker = Talker(home)
    watched(home, talker)
    for number in range(1, 5):
        talker.turn(number)
        talker.stir("running" if number % 2 else "idle")
        if number % 2 == 0:
            os.kill(home.health()["pid"], signal.SIGKILL)
            talker.append(b'{"half": ')
            talker.append(b"1}\n")
            home.start()
    talker.hears(*turns(1, 4))
    assert home.query("SELECT count(*), count(DISTINCT message_id) FROM said") == [(8, 8)]


def test_files_that_are_cut_replaced_or_removed_are_no_reason_to_double_anything(home: Home):
    talker = Talker(home)
    kept = [talker.prompt("prompt 1"), talker.answer("answer 1")]
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))
    talker.path.unlink()
    talker.path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in kept))
    talker.turn(2)
    talker.hears(*turns(1, 2))
    talker.path.write_bytes(b"")
    talker.turn(3)
    talker.hears(*turns(1, 3))
    talker.append(b"\xff\xfe{broken\n" + b"x" * 3_000_000 + b"\n")
    talker.prompt("caf\u00e9 \x1b[31mred")
    talker.hears(*turns(1, 3), "café red")


def test_another_session_of_the_same_agent_is_another_conversation(home: Home):
    talker = Talker(home)
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))
    talker.begin()
    talker.turn(2)
    talker.stir("idle")
    talker.hears(*turns(1, 2))
    items = home.ask("GET", f"/v1/conversations?ref={talker.ref}").json["items"]
    assert [item["title"] for item in items] == ["prompt 2", "prompt 1"]


def test_words_are_found_also_within_others_and_secrets_are_not(home: Home):
    talker = Talker(home)
    secret = "ghp_" + "Ab1d" * 9
    talker.prompt("Why does src/parcels/label.py fail?")
    talker.answer(f"日本語のラベル: the token {secret} has 50% of it")
    talker.prompt('Quote "this" and OR that*')
    watched(home, talker)
    talker.stir()
    wait_until(lambda: len(talker.said()) == 3, "what was said")

    def found(words: str) -> int:
        return len(home.ask("GET", f"/v1/conversations/messages?search={quote(words)}").json["items"])

    assert [found(each) for each in ("label.py", "parcels fail", "ラベル", "語", "50%", "FAIL?")] == [1, 1, 1, 1, 1, 1]
    assert [found(each) for each in ('"this"', "that*", "nowhere", secret, "5_%", '" OR "')] == [1, 1, 0, 0, 0, 1]
    assert secret.encode() not in home.database.read_bytes()
    printed = home.run("log", "--search", "nowhere")
    assert (printed.returncode, printed.stdout) == (0, "No message matches the search.\n")


def test_no_secret_is_kept_that_a_screen_has_shown(home: Home):
    home.configure('[conversations]\nsources = "screens"\n')
    before, secret = "ghp_" + "Zy9x" * 9, "ghp_" + "Ab1d" * 9
    rule = "─" * 80
    below = ["", rule, "❯ ", rule, "  ? for shortcuts", ""]
    earlier = [f"❯ take {before} for it", "", f"● I take {before} then.", ""]
    later = [f"❯ and {secret} for the other", "", f"● With {secret} it is done.", ""]
    for name, lines in {"earlier": [*earlier, *below], "later": [*earlier, *later, *below]}.items():
        (home.folder / name).write_text("\n".join(lines))
    pane = home.pane(
        command=f"cd '{home.folder}' && clear && cat earlier && read _ && clear && cat later && sleep 3600"
    )
    home.start()
    wait_until(lambda: home.query("SELECT count(*) FROM conversations") == [(1,)], "its conversation")
    home.tmux("send-keys", "-t", pane, "Enter")
    said = [("and ghp_[redacted] for the other",), ("With ghp_[redacted] it is done.",)]
    wait_until(lambda: home.query("SELECT content FROM said ORDER BY seq")[-2:] == said, "what was said")
    kept = b"".join(path.read_bytes() for path in home.database.parent.glob(f"{home.database.name}*"))
    assert secret.encode() not in kept and before.encode() not in kept


def test_what_is_old_is_neither_taken_in_nor_kept(home: Home):
    home.configure('[retention]\nconversations = "1h"\n')
    talker = Talker(home)
    talker.prompt("long ago", timestamp=stamp(7200))
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))


def test_it_is_written_into_the_work_tree_and_git_does_not_see_it(home: Home):
    repository = home.folder / "repo"
    git(home, "init", "-q", str(repository))
    git(home, "-C", str(repository), "commit", "-q", "--allow-empty", "-m", "x")
    tree = home.folder / "linked"
    git(home, "-C", str(repository), "worktree", "add", "-q", str(tree), "-b", "side")
    talker = Talker(home, cwd=tree)
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))
    for _ in range(2):
        done = home.run("log", talker.pane, "--markdown")
        assert done.returncode == 0, done
        (path,) = done.stdout.split()
    assert path.startswith(f"{tree}/.agtmux/logs/")
    assert home.panes()[talker.pane]["worktree_path"] == str(tree)
    text = Path(path).read_text()
    assert "```markdown\nprompt 1\n```" in text and "- Branch: side" in text
    assert git(home, "-C", str(tree), "status", "--porcelain") == ""
    assert (repository / ".git/info/exclude").read_text().count("/.agtmux/") == 1
    assert not (tree / ".gitignore").exists()
    (item,) = [each for each in home.ask("GET", "/v1/worktrees").json["items"] if each["path"] == str(tree)]
    assert (item["last_message"], item["updated_at"] is None) == ("answer 1", False)
    assert [text for _, text in talker.said(f"worktree={tree}")] == turns(1, 1)
    assert "answer 1" in home.run("log", str(tree)).stdout


def test_of_a_conversation_that_is_too_long_to_be_written_down_the_end_is(home: Home):
    tree = home.folder / "repo"
    git(home, "init", "-q", str(tree))
    talker = Talker(home, cwd=tree)
    for number in range(60):
        talker.answer(f"answer {number} " + "words " * 16_000)
    talker.answer("` " * 100 + "`" * 90_000)
    talker.prompt("the last words")
    watched(home, talker)
    talker.stir()
    wait_until(lambda: ("user", "the last words") in talker.said(), "all of it")
    done = home.run("log", talker.pane, "--markdown")
    assert done.returncode == 0, done
    text = Path(done.stdout.split()[0]).read_text()
    assert "```markdown\nthe last words\n```" in text and "answer 59" in text and "answer 0 " not in text
    assert "What was said before is left out." in text and len(text) < 6_000_000


def test_a_link_in_a_work_tree_leads_nowhere(home: Home):
    tree = home.folder / "repo"
    git(home, "init", "-q", str(tree))
    (home.folder / "precious").mkdir()
    (tree / ".agtmux").symlink_to(home.folder / "precious")
    talker = Talker(home, cwd=tree)
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))
    done = home.run("log", talker.pane, "--markdown")
    assert done.returncode == 4 and "E_PRECONDITION_FAILED" in done.stderr
    assert list((home.folder / "precious").iterdir()) == []


def test_follow_goes_on_with_what_is_said_next(home: Home):
    talker = Talker(home)
    talker.turn(1)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 1))
    child = home.spawn(COMMANDS / "agtmux", "log", talker.pane, "--follow", "--json")
    assert child.stdout is not None
    lines = [json.loads(child.stdout.readline())["content"] for _ in range(2)]
    talker.turn(2)
    lines += [json.loads(child.stdout.readline())["content"] for _ in range(2)]
    assert lines == turns(1, 2)


def test_follow_outlives_its_daemon_and_starts_none(home: Home):
    talker = Talker(home)
    talker.turn(1)
    daemon = home.start()
    wait_until(lambda: talker.pane in home.panes(), "the pane")
    talker.stir()
    talker.hears(*turns(1, 1))
    child = home.spawn(COMMANDS / "agtmux", "log", talker.pane, "--follow", "--json")
    assert child.stdout is not None and child.stderr is not None
    lines = [json.loads(child.stdout.readline())["content"] for _ in range(2)]
    home.end(daemon)
    # Whoever has stopped it wants it stopped.
    assert "agtmuxd" in child.stderr.readline()
    assert home.answering_pid() is None
    talker.turn(2)
    home.start()
    lines += [json.loads(child.stdout.readline())["content"] for _ in range(2)]
    talker.turn(3)
    lines += [json.loads(child.stdout.readline())["content"] for _ in range(2)]
    assert lines == turns(1, 3)


def test_pages_are_asked_for_by_seq(home: Home):
    talker = Talker(home)
    for number in range(1, 6):
        talker.turn(number)
    watched(home, talker)
    talker.stir()
    talker.hears(*turns(1, 5))
    path = f"/v1/conversations/messages?ref={talker.ref}"
    latest = home.ask("GET", f"{path}&limit=4").json
    assert [item["content"] for item in latest["items"]] == turns(4, 5)
    assert latest["has_more"]
    before = home.ask("GET", f"{path}&limit=4&before={latest['items'][0]['seq']}").json
    assert [item["content"] for item in before["items"]] == turns(2, 3)
    after = home.ask("GET", f"{path}&limit=2&after={before['items'][-1]['seq']}").json
    assert ([item["content"] for item in after["items"]], after["has_more"]) == (turns(4, 4), True)
    for query in ("limit=0", "after=x", "before=-1", "wait=99999", "colour=red", "limit=1001", "after=" + "9" * 30):
        assert home.ask("GET", f"{path}&{query}").error["code"] == "E_USAGE", query


def git(home: Home, *words: str) -> str:
    who = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@x"}
    done = subprocess.run(["git", *words], env=home.env | who, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout
