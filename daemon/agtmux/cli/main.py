"""Which command runs, and how every command ends: its exit status and its error line."""

from __future__ import annotations

import codecs
import os
import sys
from argparse import ArgumentParser, HelpFormatter, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from io import TextIOWrapper

from agtmux import __version__
from agtmux.cli.commands import COMMANDS
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Iterable
    from typing import Any, Final, NoReturn

_EXAMPLE: Final = "example:"
_USAGE: Final = "usage: agtmux [--version] [--help] COMMAND …"


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in words
    # A terminal that knows no ▶ gets another sign instead of a traceback.
    if isinstance(sys.stdout, TextIOWrapper):
        codecs.register_error("agtmux", _unknown_sign)
        sys.stdout.reconfigure(errors="agtmux")
    try:
        status = _flushed(_ended(words))
    except AgtmuxError as error:
        status = _report(error, as_json)
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain about it at exit either.
        _discard_output()
        status = 0
    return status


def _unknown_sign(error: UnicodeError) -> tuple[str, int]:
    """Not a question mark: that is the sign of an agent that asks something."""
    assert isinstance(error, UnicodeEncodeError)
    return "#" * (error.end - error.start), error.end


def agtmuxd() -> int:
    return main(["daemon", "run", *sys.argv[1:]])


def _ended(words: list[str]) -> int:
    try:
        return _run(words)
    except SystemExit as end:
        # argparse's way to leave after --help.
        return end.code if isinstance(end.code, int) else 0


def _flushed(status: int) -> int:
    """What was printed is out, or it is said why not."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise AgtmuxError(ErrorCode.INTERNAL, f"the output could not be written: {error.strerror}") from None
    return status


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in COMMANDS:
            return _run([words[1], "--help"])
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"agtmux {__version__}")
        return 0
    command = COMMANDS.get(words[0])
    if command is None:
        raise AgtmuxError(
            ErrorCode.USAGE, f"there is no command {words[0]!r}{_guess(words[0], COMMANDS)}; see agtmux --help"
        )
    module = import_module(command.module)
    parser = _Parser(
        prog=f"agtmux {words[0]}",
        description=command.summary,
        epilog=f"{_EXAMPLE}\n  {command.example}",
        formatter_class=_formatter,
    )
    module.configure(parser)
    options: Namespace = parser.parse_args(words[1:])
    status: int = module.run(options)
    return status


def _formatter(prog: str) -> RawDescriptionHelpFormatter:
    # Left to itself, argparse imports shutil for the width, even when no help is asked for.
    try:
        width = os.get_terminal_size(1).columns
    except OSError:
        width = 80
    return _Formatter(prog, width=max(40, width - 2))


class _Formatter(RawDescriptionHelpFormatter):
    """Paragraphs are filled. What is set in stays as it is, as a list does, and an example, which is copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLE):
            return super()._fill_text(text, width, indent)
        told: list[str] = []
        paragraph: list[str] = []
        for line in [*text.split("\n"), ""]:
            if line and not line.startswith("  ") and not line.endswith(":"):
                paragraph.append(line)
                continue
            if paragraph:
                told.append(HelpFormatter._fill_text(self, " ".join(paragraph), width, indent))
                paragraph = []
            told.append(line)
        return "\n".join(told[:-1])


class _Parser(ArgumentParser):
    """argparse, with our error line and without abbreviations that a new option could break."""

    def __init__(self, *arguments: object, **options: object) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """The command that was given a word it does not know says so, and names its own help."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            word = unknown.split()[0]
            message = f"there is no {word} here{_guess(word.partition('=')[0], _options_of(self))}"
        elif (missing := message.removeprefix("the following arguments are required: ")) != message:
            known = next((action.choices for action in self._actions if action.dest == missing and action.choices), ())
            message = f"say which: {', '.join(map(str, known))}" if known else f"{missing} is missing"
        elif message.endswith("expected one argument"):
            option = message.removeprefix("argument ").partition(":")[0]
            message = f"{option} needs a value; one that begins with a dash is written {option}=-…"
        raise AgtmuxError(ErrorCode.USAGE, f"{message}; see {self.prog} --help")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            self.error(f"{value!r} is not one of {', '.join(known)}{_guess(str(value), known)}")


def _options_of(parser: ArgumentParser) -> list[str]:
    """Of the parser and of the commands below it, before whose name an option may have been written."""
    found = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    below = [each for action in parser._actions if isinstance(action.choices, dict) for each in action.choices.values()]
    return found + [option for each in below for option in _options_of(each)]


def _report(error: AgtmuxError, as_json: bool) -> int:
    try:
        if as_json:
            import json

            print(json.dumps(error.as_json()), flush=True)
    except OSError:
        _discard_output()
    # Python prints to standard output what is meant for a standard error that is closed.
    if sys.stderr is not None:
        print(legible(f"agtmux: {error}", keep="\n\t"), file=sys.stderr)
    return error.exit_status


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "agtmux tells you which of the coding agents in your tmux panes needs you, on any of your machines.",
            "",
            _USAGE,
            "",
            *lines,
            "",
            "agtmux COMMAND --help tells more, with an example.",
        ]
    )


def _guess(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1)
    return f" (did you mean {close[0]}?)" if close else ""


if __name__ == "__main__":
    sys.exit(main())
