"""`agtmux explain <ref>`: why a pane is shown the way it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.times import local_time
from agtmux.client import with_query
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final


# Role of a piece of evidence → what people are told. Unknown ones, of a newer daemon, are told as they are.
_ROLES: Final = {
    "decides": "decides",
    "agrees": "agrees with it",
    "contradicts": "differs, but not for long enough to decide",
    "overruled": "was overruled by the screen",
    "overtaken": "is older than what decides",
    "stale": "is too old to count",
    "unreachable": "does not count while the target is unreachable",
    "unreadable": "could not be understood",
}
# Source of an event → who said it, for people.
SOURCES: Final = {
    "hook": "its hook reported",
    "notify": "its notification reported",
    "wrapper": "the program it runs in reported",
    "poller": "its screen showed",
    "reconciler": "agtmux concluded",
}
_CONFIDENCE: Final = {
    "high": "sure",
    "medium": "fairly sure (medium): the evidence is incomplete, or its screen and its reports differ",
    "low": "not sure (low): there is little or only old evidence",
}


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Tells why an agent is shown in its state: what it reported itself, through hooks or notifications, what its"
        " screen showed, which of these decided, and how sure that is. Times are local; with --json they are UTC, and"
        " every word is the API's."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options)
    answer = daemon.get(with_query("/v1/explain", {"ref": full_ref(daemon, options.ref)}))
    if options.json:
        print_json(answer)
    else:
        print("\n".join(map(legible, _lines(answer))))
    return 0


def _lines(answer: dict[str, Any]) -> list[str]:
    item = answer["item"]
    since = local_time(item.get("state_since") or item["updated_at"])
    lines = [
        f"{item['ref']}",
        f"  {item['agent_type']} {item['agent_version'] or ''}".rstrip()
        + f" is {item['state']} ({item['reason_code']}) since {since}",
        f"  agtmux is {_CONFIDENCE.get(item['confidence'], item['confidence'])}",
    ]
    if item["attention"]:
        lines.append(f"  it asks: {item['attention']['summary']}")
    if answer["waiting_hook"]:
        lines.append(f"  its hook waits for an answer since {local_time(answer['waiting_hook']['since'])}")
    if not answer["evidence"]:
        lines.append("  it has reported nothing, and its screen has not been read yet")
    for link in answer["evidence"]:
        note = f": {link['note']}" if link["note"] else ""
        said = SOURCES.get(link["source"], f"{link['source']} said")
        lines.append(
            f"  {local_time(link['seen_at'])}  {said} {link['state']} ({link['reason_code']}){note}"
            f"; this {_ROLES.get(link['role'], link['role'])}"
        )
    return lines
