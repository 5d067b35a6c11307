"""What is kept of a text: no secret, nothing that steers a terminal, and no more than is sensible."""

from dataclasses import replace

from agtmux.conversations.archive import Conversation
from agtmux.conversations.markdown import document, file_name
from agtmux.conversations.message import LONGEST, Message, digest, entry, kept, summarised
from agtmux.domain.redact import MARK, Redacted
from agtmux.domain.runtimes import TargetId
from agtmux.domain.timestamps import Timestamp

SECRET = "ghp_" + "a1B2" * 9


def test_a_secret_is_not_kept_also_where_the_text_is_cut():
    text, is_cut = kept("x " * (LONGEST // 2 - 5) + SECRET + " end")
    assert is_cut and SECRET[:12] not in text
    assert kept(f"token {SECRET}") == (f"token ghp_{MARK}", False)


def test_nothing_in_it_steers_a_terminal():
    text, _ = kept(
        "\x1b[31mred\x1b[0m \x1b]0;title\x07and \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x07\x00\x9b2J end\r\nnext"
    )
    assert text == "red and link    end\nnext"


def test_a_sequence_without_an_end_takes_no_more_than_its_line():
    assert kept("one \x1b]0;two\nthree")[0] == "one \nthree"
    assert kept("one \x1bPtwo\nthree \x1b[31mfour")[0] == "one \nthree four"


def test_an_id_that_has_a_secret_in_it_is_none():
    assert entry("1", "user", "x", Timestamp(0), SECRET).request_id is None
    assert entry("1", "user", "x", Timestamp(0), "turn-1").request_id == "turn-1"


def test_html_is_text():
    assert kept("<b>&amp;</b>")[0] == "<b>&amp;</b>"


def test_a_summary_is_one_line():
    assert summarised(Redacted("\n\n a  b\n\tc ")) == "a b c"
    assert len(summarised(Redacted("word " * 100))) <= 120


def test_half_a_character_is_kept_as_something():
    assert entry("1", "user", "a\ud800b", Timestamp(0)).content.isprintable()
    assert digest("\ud800") != digest("a")


def test_markdown_quotes_what_was_said_as_it_is():
    conversation = Conversation(
        conversation_id="0123456789ab",
        target_id=TargetId("host"),
        agent_type="some",
        session_id=None,
        runtime_id=None,
        cwd="/",
        worktree="/",
        branch="main",
        title="Make `it` *so*",
        source="screen",
        started_at=Timestamp(1_700_000_000_000_000),
        updated_at=Timestamp(0),
    )
    content = Redacted("# no heading\n````\ncode\n````")
    message = Message(
        seq=1,
        message_id="m",
        conversation_id="c",
        target_id=TargetId("host"),
        agent_type="some",
        runtime_id=None,
        worktree="/",
        role="user",
        content=content,
        summary=content,
        at=Timestamp(1_700_000_000_000_000),
        request_id=None,
        source="screen",
        is_cut=False,
    )
    text = document(replace(conversation, branch="<img/src=x>_[y](z)"), [message])
    assert "- Branch: \\<img/src=x\\>\\_\\[y\\](z)\n" in text and "left out" not in text
    assert "\nWhat was said before is left out.\n" in document(conversation, [message], is_whole=False)
    assert text.startswith("# Make \\`it\\` \\*so\\*\n")
    assert f"`````markdown\n{content}\n`````" in text
    assert file_name(conversation) == "20231114-221320-some-01234567.md"
