"""What is kept of an action in the words of whoever asked: no secret, no control character."""

from hypothesis import given
from hypothesis import strategies as st

from agtmux.actions.ledger import _kept, kept_ref

SECRET = "gh" + "p_" + "a1B2" * 9


def test_a_reference_with_a_secret_is_known_again_and_not_kept():
    kept, other = kept_ref(f"deploy {SECRET}"), kept_ref(f"deploy {SECRET[:-1]}x")
    assert SECRET not in kept and kept != other
    assert kept_ref(f"deploy {SECRET}") == kept == kept_ref(kept)


@given(st.text(max_size=200))
def test_two_references_are_one_only_if_they_are_the_same(text):
    kept = kept_ref(text)
    assert kept.isprintable()
    assert kept_ref(kept) == kept
    assert kept_ref(text + "x") != kept


def test_actor_and_folder_hold_no_secret_and_no_control_character():
    about = _kept(
        {"actor": f"me {SECRET}\x1b[31m", "worktree": f"/src/{SECRET}", "session_name": "a\x9bb", "ref": "pane:x"}
    )
    assert SECRET not in str(about)
    assert all(str(value).isprintable() for value in about.values())
    assert about["ref"] == "pane:x"
