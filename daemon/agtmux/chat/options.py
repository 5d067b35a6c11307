"""What `agtmux-chat` and `agtmux chat` can be told alike."""

from __future__ import annotations

from agtmux.domain.durations import SECOND, parse_duration

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

ANSWER_LIMIT = "5m"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--cwd", default=".", metavar="DIR", help="the folder to work in (default: this one)")
    parser.add_argument("--socket", metavar="PATH", help="where clients find the session (default: a file of agtmux's)")
    parser.add_argument("--resume", metavar="ID", help="go on with an earlier session, also one from a terminal")
    parser.add_argument("--model", metavar="NAME", help="the model, if not the usual one")
    parser.add_argument("--permission-mode", metavar="MODE", help="what may be done unasked, if not as settings say")
    parser.add_argument("--program", metavar="PATH", help="the agent's program, if not the one that comes with the SDK")
    parser.add_argument(
        "--approval-timeout",
        default=ANSWER_LIMIT,
        metavar="D",
        help=f"what nobody answers for so long is denied (default: {ANSWER_LIMIT})",
    )
    parser.add_argument("--verbose", action="store_true", help="tell more on standard error")


def seconds(duration: str) -> float:
    return parse_duration(duration) / SECOND
