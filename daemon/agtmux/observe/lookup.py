"""Which pane a ref means, right now."""

from __future__ import annotations

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import PaneRef, Ref
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.observe.world import PaneKey, World


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
