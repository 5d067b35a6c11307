"""Dependencies point one way, and only agents/ knows an agent's name.

The tables say which part may import which. A part is a folder or a top-level module of `agtmux`, or the
resident app. Every import counts: inside functions, under TYPE_CHECKING, and import_module("agtmux…").
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ROOT_PACKAGE = "agtmux"  # `from agtmux import __version__`
LEAVES = {ROOT_PACKAGE, "clock", "config", "paths", "logs"}
BASE = {"domain", "engine"} | LEAVES
CLIENT = {"client", "follow", "withdrawal", "domain", "paths", ROOT_PACKAGE}
BELOW_SERVICE = BASE | {
    *(
        "store",
        "probe",
        "hook",
        "targets",
        "agents",
        "observe",
        "actions",
        "messages",
        "worktrees",
        "conversations",
        "doctor",
        "bridge",
    ),
}

# part → the parts it may import besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    ROOT_PACKAGE: set(),
    "__main__": {"cli"},
    "domain": set(),
    "engine": {"domain"},
    "paths": {"domain", ROOT_PACKAGE},  # narrower than the other leaves, because clients import it
    "clock": BASE,
    "config": BASE,
    "logs": BASE,
    "probe": set(),
    "hook": set(),
    "store": BASE,
    "targets": BASE | {"probe"},
    "agents": BASE,
    "observe": BASE | {"store", "agents", "targets", "probe", "hook"},
    "actions": BASE | {"store", "targets", "agents"},
    "messages": BASE | {"store", "observe", "actions", "agents"},
    "worktrees": BASE | {"store", "observe", "actions", "agents", "targets", "messages"},
    "conversations": BASE | {"store", "observe", "agents", "targets", "worktrees"},
    # examines all of them, and nothing but the service and its command needs it
    "doctor": BASE | {"agents", "observe", "probe", "bridge"},
    "service": BELOW_SERVICE,
    "api": BELOW_SERVICE | {"service"},
    "daemon": BASE | {"service", "api"},  # the process: lock, log, signals
    "client": {"starting", "domain", "paths", ROOT_PACKAGE},
    "starting": {"domain", "paths", ROOT_PACKAGE},
    "withdrawal": {"paths", ROOT_PACKAGE},
    "follow": CLIENT,
    "cli": CLIENT,
    "board": CLIENT,
    # the daemon's side of it; what an agent starts is narrower, see below
    "bridge": BASE | {"agents", "observe", "targets", "probe", "hook", "messages", "worktrees"},
    "chat": CLIENT,
    "demo": CLIENT,
    "AgtmuxBar": CLIENT,
}

# A file that differs from its part, and why.
FILE_MAY_IMPORT: dict[str, set[str]] = {
    # composed into the hook command, which has no package around it
    "domain/redact.py": set(),
    # runs in the daemon, not in the hook
    "hook/spool_reader.py": {"hook", "domain"},
    # becomes the daemon instead of asking it
    "cli/daemon.py": CLIENT | {"cli", "daemon"},
    # replays a screen without a daemon, by the daemon's own rules
    "cli/classify.py": CLIENT | {"cli", "agents"},
    # examines this machine by itself where there is no daemon to ask
    "cli/doctor.py": CLIENT | {"cli", "doctor"},
    # the menu of the resident app, in a terminal
    "cli/menu.py": CLIENT | {"cli", "AgtmuxBar"},
    # starts the resident app where there is a desktop
    "cli/up.py": CLIENT | {"cli", "AgtmuxBar"},
    # becomes the bridge
    "cli/mcp.py": CLIENT | {"cli", "bridge"},
    # the process that an agent starts, which has to be there at once
    "bridge/main.py": CLIENT | {"bridge"},
    # the same, and composed into one file where there is no agtmux
    **{f"bridge/{name}.py": {"bridge"} for name in ("run", "relay", "local", "wire")},
    # becomes the session, or the terminal that talks to one
    "cli/chat.py": CLIENT | {"cli", "chat"},
    # the stage is a client too, and a command shows it
    "cli/demo.py": CLIENT | {"cli", "demo"},
}

# Single modules of parts that are otherwise closed, and why.
# Whose socket, folder or file it is: everything that connects, listens or reads settings asks it, on any machine.
OWNERS = "agtmux.probe.owners"
MAY_IMPORT_MODULE: dict[str, set[str]] = {
    # composed into the hook command together with the hook's own files
    "hook": {"agtmux.domain.redact", OWNERS},
    # the careful part of changing people's files, which runs on other machines too
    "agents": {"agtmux.probe.files"},
    # the words that a probe says to tmux, where they are handed to a terminal instead
    "actions": {"agtmux.probe.clients"},
    **{part: {OWNERS} for part in ("paths", "config", "client", "bridge", "chat")},
}

# Imports that may only stand inside a function, so that the other commands do not pay for them.
LAZY: dict[str, set[str]] = {
    "cli/classify.py": {"agents"},
    "cli/daemon.py": {"daemon"},
    "cli/demo.py": {"demo"},
    "cli/doctor.py": {"doctor"},
    "cli/menu.py": {"AgtmuxBar"},
    "cli/up.py": {"AgtmuxBar"},
    "cli/mcp.py": {"bridge"},
    "cli/chat.py": {"chat"},
    "daemon.py": {"service", "api"},
}

# What runs without our dependencies, under the python3 that a machine happens to have.
STANDALONE = (
    *("probe/", "hook/", "domain/redact.py"),
    *("bridge/run.py", "bridge/relay.py", "bridge/local.py", "bridge/wire.py"),
)
STANDALONE_EXCEPT = ("hook/spool_reader.py",)
NEWER_THAN_3_8 = {"graphlib", "tomllib", "zoneinfo"}

# `cursor` alone is an ordinary word here: watch streams and SQL have them.
AGENT_NAME = re.compile(r"(?<![a-z])(claude|codex|gemini|copilot|cursor[-_ ]?(?:agent|cli))(?![a-z])", re.IGNORECASE)
MAY_NAME_AGENTS = (
    "agents/",
    "resources/",
    "chat/",  # the Agent SDK is one agent's own library and carries its name
)


def part_of(file: str) -> str:
    """`store/writer.py` → store, `service.py` → service, `__init__.py` → agtmux."""
    head = file.split("/")[0].removesuffix(".py")
    return ROOT_PACKAGE if head == "__init__" else head


def where(file: str, line: int) -> str:
    return f"{file if file.startswith('AgtmuxBar/') else f'daemon/agtmux/{file}'}:{line}"


def is_module(dotted: str) -> bool:
    path = ROOT.joinpath("daemon", *dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(file: str, source: str) -> Iterator[tuple[int, str, bool]]:
    """Line, dotted name and whether it stands inside a function, of every import in a file."""
    package = ["AgtmuxBar" if file.startswith("AgtmuxBar/") else ROOT_PACKAGE]
    package += [folder for folder in file.split("/")[:-1] if folder != "AgtmuxBar"]

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[int, str, bool]]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield node.lineno, alias.name, inside
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                base = base + (module.split(".") if module else [])
                for alias in names:
                    yield node.lineno, ".".join([*base, alias.name]), inside
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name, inside
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(ast.parse(source), False)


def imported_part(dotted: str) -> str | None:
    """The part a dotted name belongs to, None outside the project."""
    head, *rest = dotted.split(".")
    if head == "AgtmuxBar":
        return "AgtmuxBar"
    if head != ROOT_PACKAGE:
        return None
    # `from agtmux import __version__` names no module; a table row without a file yet is still a part.
    if rest and (rest[0] in MAY_IMPORT or is_module(f"{head}.{rest[0]}")):
        return rest[0]
    return ROOT_PACKAGE


def import_violations(file: str, source: str) -> list[str]:
    """What a file (named relative to daemon/agtmux, or AgtmuxBar/…) imports against the tables."""
    part = part_of(file)
    if part not in MAY_IMPORT:
        return [f"{where(file, 1)}: `{part}` has no row in MAY_IMPORT; add one that says what it may import"]
    allowed = FILE_MAY_IMPORT.get(file, MAY_IMPORT[part] | {part})
    standalone = file.startswith(STANDALONE) and file not in STANDALONE_EXCEPT
    found = []
    for line, dotted, inside in imports(file, source):
        target = imported_part(dotted)
        if target is None:
            top = dotted.split(".")[0]
            if standalone and (top not in sys.stdlib_module_names or top in NEWER_THAN_3_8):
                found.append(f"{where(file, line)}: imports {dotted}, but may use only Python 3.8's standard library")
        elif target not in allowed and not any(
            f"{dotted}.".startswith(f"{module}.") for module in MAY_IMPORT_MODULE.get(part, ())
        ):
            rule = ", ".join(sorted(allowed)) or "nothing of agtmux"
            found.append(f"{where(file, line)}: imports {dotted}, but {part} may import only: {rule}")
        elif target in LAZY.get(file, ()) and not inside:
            found.append(f"{where(file, line)}: imports {dotted} at the top; only inside the function that needs it")
    return found


def agent_names(file: str, source: str) -> list[str]:
    """Identifiers and strings that name an agent; comments and docstrings may."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) in prose:
            continue
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                text = text.decode("latin-1") if isinstance(text, bytes) else text
                # Word ends in an identifier: ClaudeHook, claude_hook.
                if isinstance(text, str) and (hit := AGENT_NAME.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", text))):
                    line = getattr(node, "lineno", 1)
                    found.append(f"{where(file, line)}: names {hit[0]!r}; only agents/ and resources/ may know agents")
    return found


def sources() -> Iterator[tuple[str, str]]:
    package = ROOT / "daemon" / "agtmux"
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "AgtmuxBar").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_dependencies_point_one_way():
    found = [line for file, source in sources() for line in import_violations(file, source)]
    assert not found, "\n" + "\n".join(found)


def test_only_agents_knows_an_agents_name():
    found = [
        line
        for file, source in sources()
        if not file.startswith((*MAY_NAME_AGENTS, "AgtmuxBar/"))
        for line in agent_names(file, source)
    ]
    assert not found, "\n" + "\n".join(found)


def test_what_runs_elsewhere_is_valid_python_3_8():
    for file, source in sources():
        if file.startswith(STANDALONE):
            # Grammar only. ruff, told the same version, finds the rest.
            ast.parse(source, filename=file, feature_version=(3, 8))


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("domain/states.py", "from agtmux.domain import errors", None),
        ("domain/states.py", "from . import errors", None),
        ("domain/states.py", "from agtmux import paths", "may import only: domain"),
        ("domain/redact.py", "from agtmux.domain import errors", "nothing of agtmux"),
        ("domain/redact.py", "import msgspec", "standard library"),
        ("engine/apply.py", "from ..domain.states import State", None),
        (
            "engine/apply.py",
            "def f():\n    from agtmux.store import writer",
            "engine/apply.py:2: imports agtmux.store",
        ),
        ("engine/apply.py", "from .. import store", "imports agtmux.store"),
        (
            "engine/apply.py",
            "if TYPE_CHECKING:\n    import agtmux.store.writer",
            "imports agtmux.store.writer",
        ),
        ("probe/snapshot.py", "import json, subprocess\nfrom .capture import capture", None),
        ("probe/snapshot.py", "import msgspec", "Python 3.8's standard library"),
        ("probe/snapshot.py", "import tomllib", "Python 3.8's standard library"),
        ("probe/snapshot.py", "from agtmux.domain import refs", "may import only: probe"),
        ("hook/spool.py", "from agtmux.domain.redact import redact_text", None),
        ("hook/spool.py", "from agtmux.domain import redact", None),
        ("hook/send.py", "from agtmux.probe.owners import connected", None),
        ("hook/send.py", "from agtmux.probe.peer import peer_pid", "may import only: hook"),
        ("hook/spool.py", "from agtmux.domain import events", "may import only: hook"),
        ("hook/compose.py", "from agtmux import paths", "may import only: hook"),
        ("hook/spool_reader.py", "from agtmux.domain import events\nimport msgspec", None),
        ("store/writer.py", "from agtmux import clock, config, logs\nfrom agtmux.engine import apply", None),
        ("store/writer.py", "from agtmux.agents import registry", "but store may import only"),
        ("store/writer.py", "importlib.import_module('agtmux.service')", "imports agtmux.service"),
        ("observe/binding.py", "from agtmux.hook.spool_reader import read", None),
        ("observe/binding.py", "from agtmux.actions import guards", "but observe may import only"),
        ("service.py", "from agtmux.observe import binding", None),
        ("service.py", "def run():\n    from agtmux.api import app", "but service may import only"),
        ("api/app.py", "from agtmux.service import Service", None),
        ("api/app.py", "from agtmux.cli import main", "but api may import only"),
        ("cli/status.py", "from agtmux import __version__, client\nfrom agtmux.domain import errors", None),
        ("cli/status.py", "def run():\n    from agtmux.daemon import main", "but cli may import only"),
        ("cli/daemon.py", "def run():\n    from agtmux.daemon import main", None),
        ("cli/daemon.py", "from agtmux.daemon import main", "only inside the function"),
        ("cli/chat.py", "def run():\n    from agtmux.chat import main", None),
        ("cli/chat.py", "from agtmux.chat import main", "only inside the function"),
        ("chat/door.py", "from agtmux.client import Client\nfrom agtmux.domain import errors", None),
        ("chat/sdk.py", "from agtmux.observe import chats", "but chat may import only"),
        ("observe/chats.py", "from agtmux.chat import protocol", "but observe may import only"),
        ("AgtmuxBar/model.py", "from AgtmuxBar import text\nfrom agtmux.client import Client", None),
        ("AgtmuxBar/mac/app.py", "from ..model import tree", None),
        ("AgtmuxBar/model.py", "from agtmux.store import writer", "but AgtmuxBar may import only"),
        ("helpers/misc.py", "", "has no row in MAY_IMPORT"),
    ],
)
def test_the_import_rules_bite(file, source, complaint):
    found = import_violations(file, source)
    assert not found if complaint is None else complaint in "\n".join(found)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('"""Claude Code calls this."""  # codex too', False),
        ("def f():\n    '''gemini'''", False),
        ("cursor = rows.cursor()", False),
        ("codexes = 1", False),
        ("kind = 'claude'", True),
        ("kind = f'{home}/.codex/config.toml'", True),
        ("class GeminiAdapter: ...", True),
        ("import claude_agent_sdk", True),
        ("def read_copilot_log(): ...", True),
        ("f(codex=1)", True),
        ("argv = ['cursor-agent']", True),
        ("magic = b'CLAUDE_CODE'", True),
    ],
)
def test_the_agent_name_rule_bites(source, named):
    assert bool(agent_names("observe/x.py", source)) is named


def test_modules_are_started_without_the_working_directory_in_the_path():
    """`python -m` without -P imports from wherever it is started; `paths.python_module` has the words."""
    started = re.compile(r"sys\.executable, *\"-(?!P)|\[python, \"-(?![PI])")
    found = [file for file, source in sources() if started.search(source)]
    assert not found
