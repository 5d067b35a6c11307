"""`agtmux completion bash|zsh|fish`: scripts made from the table of commands."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.commands import COMMANDS


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell the script is for")


def run(options: Namespace) -> int:
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]())
    return 0


def _bash() -> str:
    cases = "\n".join(f"    {name}) words='{' '.join(command.words)}' ;;" for name, command in COMMANDS.items())
    return f"""_agtmux() {{
  local words current=${{COMP_WORDS[COMP_CWORD]}}
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='{" ".join(COMMANDS)} --help --version'
  else
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _agtmux agtmux"""


def _zsh() -> str:
    names = "\n".join(
        f"    '{name}:{command.summary.replace(chr(39), chr(39) * 2)}'" for name, command in COMMANDS.items()
    )
    cases = "\n".join(f"    {name}) compadd -- {' '.join(command.words)} ;;" for name, command in COMMANDS.items())
    return f"""#compdef agtmux
_agtmux() {{
  local -a commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case $words[2] in
{cases}
  esac
}}
compdef _agtmux agtmux"""


def _fish() -> str:
    lines = ["complete -c agtmux -f"]
    for name, command in COMMANDS.items():
        summary = command.summary.replace("'", "\\'")
        lines.append(f"complete -c agtmux -n __fish_use_subcommand -a {name} -d '{summary}'")
        for word in command.words:
            offered = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c agtmux -n '__fish_seen_subcommand_from {name}' {offered}")
    return "\n".join(lines)
