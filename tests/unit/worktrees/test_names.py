"""Names of branches are git's own rules, and names of sessions mean nothing to tmux."""

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.worktrees.names import check_branch, check_session, session_of

PIECES = st.lists(
    st.sampled_from([*"abz019-_.@/~^:?*[\\{} \t\n\x7f\"'#$;%", "..", "@{", ".lock", "//", "HEAD", "é", "日"]),
    max_size=8,
)


@settings(max_examples=150)
@given(PIECES.map("".join))
@example("@")
@example("a/.b")
@example("a.lock/b")
def test_a_branch_is_taken_only_if_git_takes_it(name: str) -> None:
    try:
        check_branch(name)
    except AgtmuxError as error:
        assert error.code is ErrorCode.USAGE
    else:
        done = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, timeout=30)
        assert done.returncode == 0, name


@pytest.mark.parametrize("name", ["main", "feature/auth", "fix-1.2", "日本語", "user@host", "a'b", "x;y", "$(x)"])
def test_what_people_call_their_branches_is_taken(name: str) -> None:
    check_branch(name)


@pytest.mark.parametrize("name", ["-x", "", "HEAD", "a b", "a\u202eb", "x" * 201])
def test_what_would_be_mistaken_is_not(name: str) -> None:
    with pytest.raises(AgtmuxError):
        check_branch(name)


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1).map(lambda name: "/home/dev/" + name))
def test_a_session_can_be_called_after_any_folder(folder: str) -> None:
    name = session_of(folder)
    assert name.startswith("cw_") and not set(name) & set("#:.=*;'\"%$@{}") and len(name) <= 64


@pytest.mark.parametrize(
    "name", ["#(date)", "#{pid}", "a:b", "a.b", "=x", "-x", "a\nb", "", "x" * 65, "$1", "@1", "%1"]
)
def test_a_session_is_only_a_name(name: str) -> None:
    with pytest.raises(AgtmuxError):
        check_session(name)
