"""When a report and a screen are taken to ask the same."""

import pytest

from agtmux.domain.events import Attention
from agtmux.domain.redact import Redacted
from agtmux.engine.questions import is_same


def an_attention(summary: str, detail: str | None = None, kind: str = "approval") -> Attention:
    return Attention(kind, Redacted(summary), None if detail is None else Redacted(detail))


def bash(command: str) -> Attention:
    """As a screen has it."""
    return an_attention(command, f"Bash command\n{command}\nMake a label\nDo you want to proceed?")


LINES = "mkdir -p out\nfor n in 1 2; do\ntouch $n\ndone"


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("touch label.txt", bash("touch label.txt")),
        ("touch  label.txt", bash("touch label.txt")),
        ("touch label.txt", an_attention("run it", "│ touch label.txt      │\nDo you want to run this command?")),
        ("touch label.txt", an_attention("touch label.txt (Make it) ←", "?  Shell touch label.txt\ntouch label.txt")),
        ("touch /var/lib/labels.db", an_attention("x", "Run this?\n$ touch /var/lib/labels.db")),
        # Over several lines, its own or the screen's.
        (" ".join(LINES.split()), an_attention("x", f"Bash command\n{LINES}\nLoop")),
        ("touch a.txt b.txt c.txt", an_attention("x", "Bash command\n│ touch a.txt b.t │\n│ xt c.txt        │")),
        # Cut.
        ("touch a.txt b.tx…", bash("touch a.txt b.txt c.txt")),
        # Files.
        (
            "/work/src/label.py",
            an_attention("Do you want to make this edit to label.py?", "Edit file\nsrc/label.py\n+ x"),
        ),
        ("/work/src/label.py", an_attention("Do you want to edit /work/src/label.py?")),
        ("/work/src/label.py", an_attention("Do you want to edit ~/src/label.py?")),
        ("/work/.env", an_attention("Do you want to create .env?")),
        ("/work/src/label.py", an_attention("label.py (+1 -1)", "Make these edits?\nlabel.py (+1 -1)\n1 -x")),
    ],
)
def test_one_question(told: str, seen: Attention) -> None:
    assert is_same(an_attention(told), seen)


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("touch x", bash("rm -r labels")),
        # A part of it is not it.
        ("ls", bash("rm -r labels")),
        ("labels", bash("rm -r labels")),
        ("rm -r", bash("rm -r labels")),
        ("rm -r labels", bash("rm -r")),
        ("rm -r labels/old", bash("rm -r labels")),
        ("rm -r…", bash("echo rm -r labels")),
        ("…", bash("rm -r labels")),
        ("", bash("rm -r labels")),
        # A file is not a command that has it in it.
        ("/work/label.py", bash("rm label.py")),
        ("/work/deploy.sh", bash("./deploy.sh")),
        ("/work/deploy.sh", bash("deploy.sh")),
        ("/work/x", bash("rm -r x")),
        # Nor one of the same name elsewhere.
        ("/work/old/label.py", an_attention("Do you want to make this edit to label.py?", "Edit file\nsrc/label.py")),
        ("/work/label.py", an_attention("Do you want to edit /work/src/label.py?")),
        ("/work/", an_attention("Do you want to create labels.txt?")),
    ],
)
def test_two_questions(told: str, seen: Attention) -> None:
    assert not is_same(an_attention(told), seen)


def test_a_plan_is_known_by_what_is_drawn_of_it() -> None:
    told = an_attention(
        "# Labels - 1. **Read** the labels - 2. Print…", "# Labels\n\n1. **Read** the labels\n2. Print", "plan"
    )
    drawn = "Ready to code?\n│ Labels               │\n│ 1. Read the labels   │\nWould you like to proceed?"
    assert is_same(told, an_attention("Would you like to proceed?", drawn, "plan"))
    assert not is_same(told, an_attention("Would you like to proceed?", "Ready to code?\nDelete all labels", "plan"))
    assert not is_same(told, bash("rm -r labels"))
    # It may stand above the dialog.
    assert is_same(told, an_attention("Is this the plan to follow?", "Is this the plan to follow?", "plan"))


def test_who_says_nothing_says_nothing_else() -> None:
    assert is_same(None, bash("ls")) and is_same(an_attention("ls"), None)
