"""Whether a report and a screen ask for the same, and what is shown where nothing tells."""

from dataclasses import replace

import pytest

from agtmux.domain.events import FULL_ROW, Attention, Incomplete
from agtmux.domain.redact import Redacted
from agtmux.engine.questions import Relation, both, is_one, is_shown, relation

SAME, SUBJECT, PART, UNSAID, OTHER = Relation


def reported(subject: str, kind: str = "approval", **more: object) -> Attention:
    return Attention(kind, Redacted(subject), None, (), more.get("incomplete"), Redacted(subject))  # type: ignore[arg-type]


def seen(subject: str, detail: str = "", kind: str = "approval", incomplete: Incomplete | None = None) -> Attention:
    shown = detail or f"Bash command\n{subject}\nMake a label\nDo you want to proceed?"
    summary = " ".join(subject.replace(FULL_ROW, " ").split())
    return Attention(kind, Redacted(summary), Redacted(shown), (), incomplete, Redacted(subject))


LINES = "mkdir -p out\nfor n in 1 2; do\n  touch $n\ndone"
CALL = 'Tool use\n\n  post - send(parcel: "A-1") (MCP)\n  Sends a parcel\n\nDo you want to proceed?'
RUN_TOOL = 'Allow the parcels MCP server to run tool "print_label"?'


def patch(*heads: str) -> str:
    return "\n".join(["*** Begin Patch", *(f"*** {head}\n+x" for head in heads), "*** End Patch"])


EDIT = "Do you want to make this edit to label.py?"


@pytest.mark.parametrize(
    ("subject", "screen", "expected"),
    [
        ("touch label.txt", seen("touch label.txt"), SAME),
        ("touch  label.txt", seen("touch label.txt"), SAME),
        (LINES, seen(LINES.replace("  touch", "touch")), SAME),
        # A full row ends where a blank was.
        ("touch a.txt b.txt", seen(f"touch a.txt{FULL_ROW}b.txt"), SAME),
        # Or within a word, and then a line break may have been there.
        ("touch a.txt b.txt", seen(f"touch a.txt b{FULL_ROW}.txt"), SUBJECT),
        # A line break in the place of a blank is another command, so both are shown.
        ("echo done rm -rf labels", seen("echo done\nrm -rf labels"), SUBJECT),
        ("echo done\nrm -rf labels", seen("echo done rm -rf labels"), SUBJECT),
        ("echo done\nrm -rf labels", seen(f"echo done{FULL_ROW}rm -rf labels"), SAME),
        ("rm -r /tmp/x", seen("rm -r / tmp/x"), OTHER),
        ("rm -r /tmp/x", seen("rm -r /\ntmp/x"), OTHER),
        # What is more, less or otherwise.
        ("touch x", seen("rm -r labels"), OTHER),
        ("ls", seen("touch x\nls"), OTHER),
        ("ls", seen("ls\ntouch x"), OTHER),
        ("ls", seen("ls\n\ntouch x"), OTHER),
        ("rm -r labels/old", seen("rm -r labels"), OTHER),
        ("rm -r…", seen("rm -r labels"), OTHER),
        ("", seen("rm -r labels"), OTHER),
        # A screen that shows a part of it, and says so.
        (
            "echo 1; echo 2; echo 3; echo 4; echo 5",
            seen("echo 3; echo 4; echo 5", incomplete=Incomplete.NOT_ON_SCREEN),
            PART,
        ),
        (
            "touch labels/parcel-001.txt; rm x",
            seen("touch labels/parcel-001.txt [… 2 lines]", incomplete=Incomplete.LEFT_OUT),
            PART,
        ),
        # Too little of it is left to tell: an approval takes a second step.
        ("touch labels.txt", seen("", "1. Yes", incomplete=Incomplete.NOT_ON_SCREEN), SUBJECT),
        ("touch labels.txt", seen("bels.txt", incomplete=Incomplete.NOT_ON_SCREEN), SUBJECT),
        ("touch labels.txt", seen("Do you want to proceed?", incomplete=Incomplete.NOT_ON_SCREEN), SUBJECT),
        ("touch labels.txt", seen("vans.txt", incomplete=Incomplete.NOT_ON_SCREEN), OTHER),
        ("touch labels.txt", seen("", "1. Yes", incomplete=Incomplete.LEFT_OUT), OTHER),
        ("touch labels.txt", seen("", "1. Yes"), OTHER),
        ("echo 3; echo 4; echo 5", seen("rm x; echo 4; echo 5", incomplete=Incomplete.NOT_ON_SCREEN), OTHER),
        # Files, which are not told by what would be done to them.
        ("/work/src/label.py", seen(EDIT, "Edit file\nsrc/label.py\n+ x\n" + EDIT), SUBJECT),
        ("/work/src/label.py", seen("Do you want to edit /work/src/label.py?"), SUBJECT),
        ("/work/src/label.py", seen("Do you want to edit ~/src/label.py?"), SUBJECT),
        ("/work/.env", seen("Do you want to create .env?"), SUBJECT),
        ("/work/src/label.py", seen("label.py (+1 -1)", "Make these edits?\nlabel.py (+1 -1)\n1 -x"), SUBJECT),
        (
            "/work/src/label.py",
            seen("label.py: x = 1 => x = 2", "? Edit  label.py: x = 1 => x = 2"),
            SUBJECT,
        ),
        ("/work/labels.txt", seen("Writing to labels.txt", "? WriteFile  Writing to labels.txt\n1 a"), SUBJECT),
        ("/work/labels.txt", seen("Writing to labels.txt ←"), SUBJECT),
        ("src/label.py", seen("Do you want to edit /work/src/label.py?"), SUBJECT),
        ("src/label.py", seen("Do you want to edit /work/old/label.py?"), OTHER),
        ("/work/labels.txt", seen("Writing to vans.txt"), OTHER),
        ("/work/labels.txt", seen("echo Writing to labels.txt"), OTHER),
        # A patch names its files.
        (patch("Add File: vans.py"), seen("Added vans.py (+2 -0)", "• Added vans.py (+2 -0)\n1 +a"), SUBJECT),
        (patch("Add File: vans.py"), seen("/w/vans.py", "• Added vans.py (+2 -0)\nDestination: /w/vans.py"), SUBJECT),
        (
            patch("Update File: a.py", "Delete File: b.py"),
            seen("a.py (+1 -1)", "└ a.py (+1 -1)\n└ b.py +0 -9"),
            SUBJECT,
        ),
        (patch("Update File: a.py", "Delete File: b.py"), seen("a.py (+1 -1)"), OTHER),
        (patch("Update File: a.py", "Move to: b.py"), seen("a.py (+1 -1)"), OTHER),
        (patch("Update File: src/a.py"), seen("Edited old/a.py (+1 -1)"), OTHER),
        (patch("Add File: vans.py"), seen("rm vans.py"), OTHER),
        ("*** Begin Patch\n", seen("Added vans.py (+2 -0)"), OTHER),
        ("/work/label.py", seen("rm label.py"), OTHER),
        ("/work/deploy.sh", seen("./deploy.sh"), OTHER),
        ("/work/old/label.py", seen(EDIT, "Edit file\nsrc/label.py"), OTHER),
        ("/work/label.py", seen("Do you want to edit /work/src/label.py?"), OTHER),
        ("/work/", seen("Do you want to create labels.txt?"), OTHER),
        # Tools of servers, which are named by every agent in its own way.
        ("mcp__post__send", seen("Sends a parcel", CALL), SUBJECT),
        ("mcp__my_post__send", seen("Sends a parcel", CALL.replace("post", "my post")), SUBJECT),
        ("mcp__post__send", seen("Sends a parcel", CALL.replace('"A-1")', '"A-1",\n')), SUBJECT),
        ("mcp__parcels__print_label", seen(RUN_TOOL, f"Field 1/1\n{RUN_TOOL}\n\nparcel: A-1"), SUBJECT),
        ("parcels-print_label", seen("print_label: {", "print_label\n{\n}\n\nDo you want to use this tool?"), SUBJECT),
        ("mcp__post__drop", seen("Sends a parcel", CALL), OTHER),
        ("mcp__other__send", seen("Sends a parcel", CALL), OTHER),
        ("send", seen("Sends a parcel", CALL), OTHER),
        ("ls", seen("ls", CALL.replace("send", "ls").replace("ls\n", "x\n")), SAME),
        ("parcels-drop", seen("print_label: {", "print_label\n{\n}\n\nDo you want to use this tool?"), OTHER),
    ],
)
def test_how_a_report_and_a_screen_are_related(subject: str, screen: Attention, expected: Relation) -> None:
    assert relation(reported(subject), screen) is expected
    assert is_one(reported(subject), screen) is (expected is not OTHER)


def test_a_report_that_says_nothing_of_what_would_run_settles_nothing() -> None:
    vague = reported("needs your permission", incomplete=Incomplete.NOT_REPORTED)
    assert relation(vague, seen("rm -r labels")) is UNSAID
    assert not is_one(vague, seen("rm -r labels"))
    assert relation(vague, vague) is SAME
    # Nor if it names the file that the screen is about: the screen says what would be done to it.
    named = reported("Edit file: /work/label.py", incomplete=Incomplete.NOT_REPORTED)
    assert relation(named, seen("Do you want to edit /work/label.py?")) is UNSAID


PLAN = "# Labels\n\n1. **Read** the labels\n2. Print"


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("Labels\n1. Read the labels\n2. Print", SAME),
        ("1. Read the labels", SUBJECT),
        ("Is this the plan to follow?", SAME),
        ("Delete all labels", OTHER),
        ("Labels\n1. Read the labels\n2. Delete", OTHER),
    ],
)
def test_a_plan_is_known_by_what_is_drawn_of_it(drawn: str, expected: Relation) -> None:
    assert relation(reported(PLAN, "plan"), seen(drawn, drawn, "plan")) is expected


def test_where_nothing_tells_both_are_shown() -> None:
    question, screen = reported("ls"), seen("rm -r labels")
    shown = both(question, screen, Incomplete.SCREEN_DIFFERS)
    assert shown.summary == "ls" and shown.detail is not None
    assert "ls" in shown.detail and "rm -r labels" in shown.detail
    # The hook's own answer is for what is shown; a key is for neither.
    assert is_shown(question, shown) and not is_shown(screen, shown)
    assert not is_one(shown, screen)
    assert is_one(None, screen) and is_one(question, None)


def test_a_tool_that_is_reported_by_its_name_alone_is_known_by_its_server_as_well() -> None:
    asks = 'Allow execution of MCP tool "print_label" from server "parcels"?'
    told = reported("print_label")
    assert relation(replace(told, detail=Redacted("print_label\nparcel: A-1\n\nparcels")), seen(asks)) is SUBJECT
    assert relation(replace(told, detail=Redacted("print_label\nparcel: A-1\n\nothers")), seen(asks)) is OTHER
    assert relation(told, seen(asks)) is OTHER
