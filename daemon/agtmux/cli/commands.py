"""The table of commands: where each lives, what it does in a line, one example. Nothing is imported before use."""

from __future__ import annotations

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Command:
    __slots__ = ("example", "module", "summary", "words")

    def __init__(self, module: str, summary: str, example: str, words: tuple[str, ...] = ()) -> None:
        self.module = module
        self.summary = summary
        self.example = example
        # What completion offers after the command's name.
        self.words = words


_COMMON = ("--json", "--no-start", "--help")
_GUARDS = ("--if-runtime", "--if-state", "--if-updated-within", "--force-stale")
_PLACES = ("--target", "--all-targets", "--target-session", "--session", "--agent")
_FILTERS = (*_PLACES, "--state", "--needs-action", "--all", "--group-by")

COMMANDS: Final[dict[str, Command]] = {
    "up": Command(
        "agtmux.cli.up",
        "start what is missing: the daemon, and the tray or the live table",
        "agtmux up --no-register",
        ("--headless", "--register", "--no-register", "--demo-if-empty", "--help"),
    ),
    "down": Command(
        "agtmux.cli.down", "stop the daemon and the tray", "agtmux down", ("--headless", "--json", "--help")
    ),
    "status": Command("agtmux.cli.status", "say how the daemon is", "agtmux status --json", ("--json", "--help")),
    "list": Command(
        "agtmux.cli.list",
        "list panes, windows or sessions with what their agents do",
        "agtmux list panes --needs-action --json",
        (
            "panes",
            "windows",
            "sessions",
            *_FILTERS,
            "--with-agent-status",
            "--agent-summary",
            *_COMMON,
        ),
    ),
    "watch": Command(
        "agtmux.cli.watch",
        "show what agents do as it changes, as a live table or as JSON lines",
        "agtmux watch --needs-action",
        ("--scope", *_FILTERS, "--format", "--interval", "--cursor", "--once", *_COMMON),
    ),
    "wait": Command(
        "agtmux.cli.wait",
        "block until agents are in a state, or one needs you",
        "agtmux wait %3 --for completed,error --timeout 30m && make deploy",
        ("--for", "--all", "--any", "--timeout", "--ignore-others", *_PLACES, *_COMMON),
    ),
    "bar": Command(
        "agtmux.cli.bar",
        "print one line for a status bar: who needs you, and how many do what",
        "agtmux bar --format plain --width 60",
        ("--format", "--width", "--json", "--help"),
    ),
    "menu": Command(
        "agtmux.cli.menu",
        "print the menu of the menu bar or the tray as text",
        "agtmux menu",
        _COMMON,
    ),
    "board": Command(
        "agtmux.cli.board",
        "serve the web page and open it: who needs you, screens, answers",
        "agtmux board",
        (
            *("--port", "--bind", "--no-open", "--stop", "--token-file", "--new-token", "--print-token"),
            *_COMMON,
        ),
    ),
    "target": Command(
        "agtmux.cli.target",
        "add, look at, list or remove the tmux servers that are watched",
        "agtmux target add work --tmux-socket work",
        ("add", "connect", "list", "remove", "--kind", "--ssh-target", "--tmux-socket", "--yes", *_COMMON),
    ),
    "hooks": Command(
        "agtmux.cli.hooks",
        "let agents report what they do, and take that back",
        "agtmux hooks install",
        ("install", "uninstall", "status", "--agent", "--target", *_COMMON),
    ),
    "mcp": Command(
        "agtmux.cli.mcp",
        "let agents see each other, through the bridge in their settings, and take that back",
        "agtmux mcp status",
        ("register", "unregister", "status", "serve", "--agent", "--target", "--socket", *_COMMON),
    ),
    "message": Command(
        "agtmux.cli.message",
        "write to agents as another agent would, and see what they write to each other",
        'agtmux message send reviewer "main is red, please hold your merge"',
        (
            *("send", "broadcast", "list", "show", "reply", "read", "cancel"),
            *("--stdin", "--type", "--priority", "--reply-to", "--task", "--ttl", "--now", "--wait", "--team"),
            *("--with", "--to", "--status", "--since", "--limit", *_COMMON),
        ),
    ),
    "team": Command(
        "agtmux.cli.team",
        "start several agents that work together, as a file describes them, and stop them",
        "agtmux team up review.toml",
        ("up", "down", "status", "--yes", *_COMMON),
    ),
    "explain": Command(
        "agtmux.cli.explain",
        "say why a pane is shown the way it is",
        "agtmux explain %3",
        _COMMON,
    ),
    "send": Command(
        "agtmux.cli.send",
        "type a text or press a key at an agent's prompt, and say whether it was taken",
        'agtmux send %3 --text "run the tests" --enter',
        ("--text", "--stdin", "--key", "--enter", "--paste", "--append", "--shell", *_GUARDS, *_COMMON),
    ),
    "kill": Command(
        "agtmux.cli.kill",
        "interrupt an agent, or end it",
        "agtmux kill %3 --mode signal --signal TERM",
        ("--mode", "--signal", "--yes", *_GUARDS, *_COMMON),
    ),
    "launch": Command(
        "agtmux.cli.launch",
        "start an agent in a pane of its own, in the git worktree of a branch if you like",
        'agtmux launch NAME --branch feature/labels --prompt "print three labels"',
        (
            *("--branch", "--worktree", "--session", "--role", "--target", "--cwd", "--prompt", "--start-server"),
            *_COMMON,
        ),
    ),
    "stop": Command(
        "agtmux.cli.stop",
        "end an agent, as gently as it lets one",
        "agtmux stop %3",
        ("--yes", "--remove-worktree", *_GUARDS, *_COMMON),
    ),
    "attach": Command(
        "agtmux.cli.attach",
        "jump to a pane, here or on another machine",
        "agtmux attach host/work/@1/%3",
        ("--waiting", "--client", "--nested", "--new-window", "--print", *_GUARDS, *_COMMON),
    ),
    "pick": Command(
        "agtmux.cli.pick",
        "choose an agent from a list with a view of its screen, and jump to it",
        "agtmux pick --needs-action",
        (*_FILTERS, "--client", "--nested", "--new-window", "--print", "--no-start", "--help"),
    ),
    "chat": Command(
        "agtmux.cli.chat",
        "talk to an agent in this terminal, or behind a socket that other programs can use",
        "agtmux chat --cwd ~/project",
        (
            *("--cwd", "--socket", "--resume", "--attach", "--model", "--permission-mode", "--program"),
            *("--approval-timeout", "--verbose", "--help"),
        ),
    ),
    "approve": Command(
        "agtmux.cli.approve",
        "say yes to what an agent asks, this once",
        "agtmux approve %3",
        ("--partial", "--if-dialog", *_GUARDS, *_COMMON),
    ),
    "deny": Command(
        "agtmux.cli.deny",
        "say no to what an agent asks, and why",
        'agtmux deny %3 --reason "use the staging database"',
        ("--reason", "--if-dialog", *_GUARDS, *_COMMON),
    ),
    "view-output": Command(
        "agtmux.cli.view_output",
        "print the last lines of a pane",
        "agtmux view-output pane:host/work/@1/%3 --lines 50",
        ("--lines", *_COMMON),
    ),
    "log": Command(
        "agtmux.cli.log",
        "print what was said to an agent and by it; or who did what to which agent, and what came of it",
        "agtmux log host/work/@1/%3 --follow",
        (
            *(
                "actions",
                "conversations",
                "--search",
                "--follow",
                "--markdown",
                "--conversation",
                "--target",
                "--limit",
            ),
            *("--action", "--ref", "--type", "--since", *_COMMON),
        ),
    ),
    "classify": Command(
        "agtmux.cli.classify",
        "say what a saved screen shows, without a daemon",
        "tmux capture-pane -p -e -t %3 | agtmux classify --agent NAME",
        ("--agent", "--title", "--command", "--json", "--help"),
    ),
    "doctor": Command(
        "agtmux.cli.doctor",
        "say what works here and what mends what does not",
        "agtmux doctor --target vm1",
        ("--target", "--json", "--help"),
    ),
    "daemon": Command("agtmux.cli.daemon", "run the daemon in the foreground", "agtmux daemon run", ("run", "--help")),
    "demo": Command(
        "agtmux.cli.demo",
        "a few scripted agents in a tmux server of their own, to see every state without an account",
        "agtmux demo && agtmux list panes && agtmux demo --stop",
        ("--stop", "--for", "--json", "--help"),
    ),
    "completion": Command(
        "agtmux.cli.completion",
        "print the completion script for a shell",
        'eval "$(agtmux completion bash)"',
        ("bash", "zsh", "fish", "--help"),
    ),
}
