"""The tmux server that a command is typed in, by $TMUX, and whether the daemon watches it."""

from __future__ import annotations

import os

from agtmux.client import Client, with_query


def target_here(daemon: Client) -> str | None:
    """The target that it is; None outside of tmux, and in a server that nobody watches."""
    if not os.environ.get("TMUX"):
        return None
    found = daemon.get(with_query("/v1/here", {"tmux": os.environ["TMUX"]}))["target"]
    return None if found is None else str(found)


def unwatched(daemon: Client) -> str | None:
    """What to say where this is tmux, and agtmux sees nothing of it."""
    if not os.environ.get("TMUX") or target_here(daemon) is not None:
        return None
    import shlex

    from agtmux.domain.refs import is_target_name

    socket_path = os.environ["TMUX"].rsplit(",", 2)[0]
    name = os.path.basename(socket_path)
    words = f"{name if is_target_name(name) else 'NAME'} --tmux-socket {shlex.quote(socket_path)}"
    return f"the tmux server that you are in is not watched; `agtmux target add {words}` takes it in"
