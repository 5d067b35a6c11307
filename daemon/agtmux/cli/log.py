"""`agtmux log`: what was said to an agent and by it; with `actions`, who did what to which, and what came of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli import said
from agtmux.cli.explain import SOURCES
from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.times import local_time, short_time
from agtmux.client import with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# Of an id, in a table: enough to find it by.
_SHORT: Final = 12
_HEADS: Final = ("AT", "ACTION", "RESULT", "BY", "AGENT", "PANE", "ID", "WHAT")
_RELATIONS: Final = {"own": "this action itself", "followed": "soon after it, for this or another reason"}
_ROOMY: Final = 110
_FEW: Final = tuple(map(_HEADS.index, ("AT", "ACTION", "RESULT", "AGENT", "WHAT")))


_ACTIONS: Final = "actions"


class _Words(tuple[str, ...]):
    """Words that have a meaning of their own; whatever else is given names an agent or a folder."""

    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        return True


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "What was said to an agent and by it, the oldest first. With `conversations` a list of what there is, and with"
        " `actions` every action that was asked for, the latest first, refused ones included."
    )
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        metavar="WHAT",
        choices=_Words((_ACTIONS, said.CONVERSATIONS)),
        help="an agent's pane, ref or name; a folder, for the work tree it is in; `conversations`; or `actions`",
    )
    said.configure(parser)
    only = parser.add_argument_group("actions", "which actions")
    only.add_argument("--action", metavar="ID", help="only this one, and what the agent reported then; an ID as shown")
    only.add_argument("--ref", help="only on this pane, wherever it was then, or on this runtime")
    only.add_argument("--type", metavar="ACTION", help="only of this type, as approve or view-output")
    only.add_argument("--since", metavar="D", help="only of the last, as 30m or 2d")
    add_common(parser)


def run(options: Namespace) -> int:
    if options.what != _ACTIONS:
        if strange := [name for name in ("action", "ref", "type", "since") if getattr(options, name) is not None]:
            raise AgtmuxError(ErrorCode.USAGE, f"--{strange[0]} is about actions: agtmux log actions --{strange[0]} …")
        return said.run(options)
    if any((options.search, options.follow, options.markdown, options.conversation)):
        raise AgtmuxError(ErrorCode.USAGE, "--search, --follow, --markdown and --conversation are about what was said")
    daemon = client(options)
    if options.action is not None and any((options.ref, options.type, options.since, options.limit)):
        raise AgtmuxError(ErrorCode.USAGE, "--action is one action already; leave the other choices out")
    asked = {
        "action_id": options.action,
        "ref": None if options.ref is None else full_ref(daemon, options.ref),
        "type": options.type,
        "since": options.since,
        "limit": None if options.limit is None else str(options.limit),
    }
    answer = daemon.get(with_query("/v1/actions", asked))
    if options.json:
        print_json(answer)
    elif options.action is not None:
        print("\n".join(map(legible, _lines(answer["items"][0]))))
    elif answer["items"]:
        from agtmux.cli.table import draw, terminal_width, wants_colour

        width = terminal_width()
        # Where there is little room, what was done and when is worth more than by whom and where.
        is_narrow = width is not None and width < _ROOMY
        columns = _FEW if is_narrow else range(len(_HEADS))
        rows = [[_row(item, is_narrow)[column] for column in columns] for item in answer["items"]]
        heads = [_HEADS[column] for column in columns]
        place = heads.index("PANE") if "PANE" in heads else None
        print("\n".join(draw(heads, rows, colour=wants_colour(), width=width, place=place)))
    else:
        print("nothing fits what was asked for" if answer["filters"] else "nothing was done yet")
    return 0


def _row(item: dict[str, Any], is_narrow: bool) -> tuple[str, ...]:
    return (
        short_time(item["requested_at"]) if is_narrow else local_time(item["requested_at"]),
        item["action_type"],
        item["result_code"],
        item["about"].get("actor") or "-",
        item["agent_type"] or "-",
        _place(item),
        item["action_id"][:_SHORT],
        item["error_code"] or legible(_what(item["about"])),
    )


def _what(about: dict[str, Any]) -> str:
    """What it was about, in a few words."""
    if about.get("question"):
        return str(about["question"])
    if "characters" in about:
        many = "" if about["characters"] == 1 else "s"
        return f"{about['characters']} character{many}{', Enter' if about.get('enter') else ''}"
    told = (about[name] for name in ("key", "signal", "client", "way") if about.get(name))
    return str(next(told, ""))


def _lines(item: dict[str, Any]) -> list[str]:
    """One action in full."""
    error = f" ({item['error_code']})" if item["error_code"] else ""
    lines = [
        f"{item['action_type']} {item['action_id']}",
        f"  {item['result_code']}{error}, asked for by {item['about'].get('actor') or 'somebody'}"
        f" at {local_time(item['requested_at'])}, over at"
        f" {local_time(item['completed_at']) if item['completed_at'] else '-'}",
        f"  {item['agent_type'] or 'runtime'} in {_place(item)}, runtime {item['runtime_id']}",
    ]
    about = {name: value for name, value in item["about"].items() if name not in ("actor", "force_stale")}
    lines += [f"  {name}: {value}" for name, value in about.items()]
    for event in item["events"]:
        who = "agtmux noted" if event["relation"] == "own" else SOURCES.get(event["source"], f"{event['source']} said")
        after = _RELATIONS.get(event["relation"], event["relation"])
        lines.append(f"  {local_time(event['ingested_at'])}  {who} {event['event_type']} ({after})")
    return lines


def _place(item: dict[str, Any]) -> str:
    if item["ref"] is None:
        return f"{item['target']}/{item['pane_id']}"
    return str(item["ref"]).removeprefix("pane:")
