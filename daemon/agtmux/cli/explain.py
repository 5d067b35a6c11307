"""`agtmux explain <ref>`: why a pane is shown the way it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.refs import full_ref
from agtmux.client import with_query
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
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
    lines = [
        f"{item['ref']}",
        f"  {item['agent_type']} {item['agent_version'] or ''}".rstrip()
        + f" is {item['state']} ({item['reason_code']}), confidence {item['confidence']}, since {item['updated_at']}",
    ]
    if item["attention"]:
        lines.append(f"  it asks: {item['attention']['summary']}")
    if answer["waiting_hook"]:
        lines.append(f"  its hook waits for an answer since {answer['waiting_hook']['since']}")
    if not answer["evidence"]:
        lines.append("  nothing was told or seen about it yet")
    for link in answer["evidence"]:
        note = f": {link['note']}" if link["note"] else ""
        lines.append(
            f"  {link['role']:<11} {link['source']} said {link['state']} ({link['reason_code']})"
            f" at {link['seen_at']}{note}"
        )
    return lines
