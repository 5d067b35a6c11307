"""Which pane is meant by what a user or a program writes, right now.

runtime:ID, pane:TARGET/SESSION/@W/%P    as the API tells them
TARGET/SESSION/@W/%P                     as a table shows a pane, the session encoded or as it is
%P, TARGET/%P                            its number, where that is the only one
NAME, NAME without its @TARGET           of the agent in it, where that is the only one
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import PaneRef, Ref, is_pane_id, parse_ref
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.observe.world import PaneKey, World, plain_name

_PREFIXES = ("pane:", "runtime:")


def resolve(world: World, text: str) -> PaneKey:
    """The pane that is meant, in any of the forms above. Raises if there is none, or more than one."""
    return find_pane(world, resolve_ref(world, text))


def resolve_ref(world: World, text: str) -> Ref:
    """The same as a ref, which may lead to what is no longer there if `text` is a whole one."""
    text = text.strip()
    if text.startswith(_PREFIXES):
        return parse_ref(text)
    keys = [key for key in world.panes if key in world.records]
    target, _, pane_id = text.rpartition("/")
    if is_pane_id(pane_id) and "/" not in target:
        return _only(world, text, [key for key in keys if key[1] == pane_id and target in ("", key[0])])
    if named := called(world, text, keys):
        return _only(world, text, named)
    if shown := [key for key in keys if as_shown(world, key) == text]:
        return _only(world, text, shown)
    return parse_ref(f"pane:{text}" if is_pane_id(pane_id) else text)


def called(world: World, name: str, keys: Iterable[PaneKey]) -> list[PaneKey]:
    """The agents of that name; without their target where nobody has it as a whole."""
    runtimes = {key: world.records[key].runtime for key in keys if world.records[key].runtime.has_agent}
    return [key for key, runtime in runtimes.items() if world.name_of(runtime) == name] or [
        key for key, runtime in runtimes.items() if plain_name(runtime).partition("@")[0] == name
    ]


def find_pane(world: World, ref: Ref) -> PaneKey:
    """Raises if there is none; a pane that has moved to another session or window is not the one that was meant."""
    if not isinstance(ref, PaneRef):
        key = world.by_runtime.get(RuntimeId(ref.runtime_id))
        if key is None:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "that runtime has ended or never was; list the panes again")
        return key
    key = (TargetId(ref.target), PaneId(ref.pane_id))
    pane = world.panes.get(key)
    if pane is None or key not in world.records:
        raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"there is no {ref}; list the panes again")
    if (pane.session_name, pane.window_id) != (ref.session_name, ref.window_id):
        raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"{ref} has moved to {pane.session_name}/{pane.window_id}")
    return key


def _only(world: World, text: str, keys: Collection[PaneKey]) -> PaneRef:
    found = [_ref(world, key) for key in sorted(keys)]
    if len(found) > 1:
        # The shortest form that tells them apart.
        several = ", ".join(f"{ref.target}/{ref.pane_id}" for ref in found)
        raise AgtmuxError(
            ErrorCode.REF_AMBIGUOUS,
            f"{text[:64]} may be several panes; say which: {several}",
            {"refs": [str(ref) for ref in found]},
        )
    for ref in found:
        return ref
    raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"no pane is called {text[:64]!r}; see agtmux list panes --all")


def _ref(world: World, key: PaneKey) -> PaneRef:
    pane = world.panes[key]
    return PaneRef(pane.target_id, pane.session_name, pane.window_id, pane.pane_id)


def as_shown(world: World, key: PaneKey) -> str:
    """As a table shows a pane, with its session's name as it is."""
    pane = world.panes[key]
    return "/".join((pane.target_id, pane.session_name, pane.window_id, pane.pane_id))
