"""What can be looked at on this very Mac: `AgtmuxBar --selftest [REPORT.json]`. Nothing is changed or asked for.

A check says `ok`, `no` or `can't tell`, and what it saw. The app itself must not be running for it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

import rumps
import UserNotifications as UN
from AppKit import NSImage, NSStatusBar, NSVariableStatusItemLength
from Foundation import NSBundle

from agtmux import __version__, paths
from agtmux.client import Client
from AgtmuxBar.mac import commandline, environment, loginitem, spawn, status, terminals
from AgtmuxBar.mac.bundle import IDENTIFIER, Bundle
from AgtmuxBar.mac.launchd import Launchd
from AgtmuxBar.mac.menu import DrawnMenu
from AgtmuxBar.tree import Action, Item, Kind, Menu

_LIMIT: Final = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    # None for what cannot be told here, or is a matter of choice.
    is_ok: bool | None
    saw: str


# A verdict, None for none, and what was seen.
Verdict = tuple[bool | None, str]
_CHECKS: dict[str, Callable[[Bundle | None], Verdict]] = {}


def _check(name: str) -> Callable[[Callable[[Bundle | None], Verdict]], Callable[[Bundle | None], Verdict]]:
    def keep(function: Callable[[Bundle | None], Verdict]) -> Callable[[Bundle | None], Verdict]:
        _CHECKS[name] = function
        return function

    return keep


def main(bundle: Bundle | None, words: list[str]) -> int:
    found = findings(bundle)
    for finding in found:
        mark = {True: "ok        ", False: "no        ", None: "can't tell"}[finding.is_ok]
        print(f"{mark}  {finding.name}: {finding.saw}", flush=True)
    if words:
        # `open` shows no output; a file can be read afterwards.
        Path(words[0]).write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n", "utf-8")
    failed = sum(finding.is_ok is False for finding in found)
    print(f"{len(found)} checks, {failed} failed")
    return 1 if failed else 0


def findings(bundle: Bundle | None) -> list[Finding]:
    return [_finding(name, check, bundle) for name, check in _CHECKS.items()]


def _finding(name: str, check: Callable[[Bundle | None], Verdict], bundle: Bundle | None) -> Finding:
    try:
        is_ok, saw = check(bundle)
    except Exception as error:
        # A report with a hole in it is worth more than none.
        is_ok, saw = False, f"{type(error).__name__}: {error}"
    return Finding(name, is_ok, saw)


@_check("system")
def _system(bundle: Bundle | None) -> Verdict:
    return None, f"agtmux {__version__}, macOS {platform.mac_ver()[0] or 'unknown'}, {platform.machine()}"


@_check("bundle")
def _bundle(bundle: Bundle | None) -> Verdict:
    identifier = NSBundle.mainBundle().bundleIdentifier()
    if bundle is None:
        return None, "not in AgtmuxBar.app: no notifications with buttons, no login item, no launchd agent"
    where = "a temporary place: move it to Applications" if bundle.is_translocated else "where it stays"
    return identifier == IDENTIFIER and not bundle.is_translocated, f"{identifier} at {bundle.path}, {where}"


@_check("signature")
def _signature(bundle: Bundle | None) -> Verdict:
    if bundle is None:
        return None, "not in a bundle"
    done = spawn.run(["/usr/bin/codesign", "--verify", "--deep", "--strict", str(bundle.path)], limit=60)
    told = spawn.run(["/usr/bin/codesign", "--display", "--verbose=2", str(bundle.path)]).stderr
    signers = [line.partition("=")[2] for line in told.splitlines() if line.startswith(("Authority=", "Signature="))]
    is_developers = any(signer.startswith("Developer ID") for signer in signers)
    verdict = done.returncode == 0 and (True if is_developers else None)
    return verdict, f"{done.stderr.strip() or 'valid'}, by {', '.join(signers) or 'nobody'}"


@_check("environment of children")
def _children(bundle: Bundle | None) -> Verdict:
    inherited = dict(line.split("=", 1) for line in spawn.checked(["/usr/bin/env"]).splitlines() if "=" in line)
    left = sorted(set(inherited) - set(environment.scrubbed(inherited)))
    ours = sorted(set(os.environ) - set(environment.scrubbed(os.environ)))
    return not left and not ours, f"of py2app's: {', '.join(left + ours) or 'none'}; LANG={inherited.get('LANG')}"


@_check("tmux")
def _tmux(bundle: Bundle | None) -> Verdict:
    found = shutil.which("tmux", path=environment.search_path())
    return found is not None, spawn.checked([found, "-V"]).strip() + f" at {found}" if found else "not installed"


@_check("daemon")
def _daemon(bundle: Bundle | None) -> Verdict:
    is_answered = Client(start=False).is_answered()
    return None, f"{'answers' if is_answered else 'does not answer'} on {paths.socket_path()}"


@_check("launchd")
def _launchd(bundle: Bundle | None) -> Verdict:
    launchd = Launchd()
    return None, f"the agent is {'loaded' if launchd.is_loaded() else 'not loaded'}, its file {launchd.file}"


@_check("command line")
def _command(bundle: Bundle | None) -> Verdict:
    if bundle is None:
        return None, "not in a bundle"
    said = spawn.checked([str(bundle.commands / "agtmux"), "--version"]).strip()
    hook = bundle.commands / "agtmux-hook"
    linked = "linked" if commandline.is_ours(bundle) else "not linked"
    return said == f"agtmux {__version__}" and os.access(hook, os.X_OK), f"{said}, {linked}, {hook}"


@_check("python")
def _python(bundle: Bundle | None) -> Verdict:
    """As the hook and the daemon are started, each in its way."""
    if bundle is None:
        return None, "not in a bundle"
    python = str(bundle.commands / "python3")
    said = spawn.checked([python, "-P", "-m", "agtmux.cli.main", "--version"]).strip()
    alone = spawn.checked([python, "-I", "-S", "-c", "import json, sys; print(sys.version.split()[0])"]).strip()
    return said == f"agtmux {__version__}" and bool(alone), f"{alone}; as a module: {said}"


@_check("symbols")
def _symbols(bundle: Bundle | None) -> Verdict:
    make = NSImage.imageWithSystemSymbolName_accessibilityDescription_
    missing = [name for name in status.SYMBOLS.values() if make(name, "") is None]
    drawn = [icon for icon in status.SYMBOLS if status.drawing(icon) is None]
    return (
        not drawn,
        f"missing symbols: {', '.join(missing) or 'none'}; drawings that fail: {', '.join(drawn) or 'none'}",
    )


@_check("status item")
def _status(bundle: Bundle | None) -> Verdict:
    bar = NSStatusBar.systemStatusBar()
    item = bar.statusItemWithLength_(NSVariableStatusItemLength)
    try:
        status.StatusItem(item).show(Menu("2", "waiting", "2 agents wait for you"))
        title, image = item.button().title(), item.button().image()
        return title == " 2" and image is not None and bool(item.isVisible()), f"title {title!r}, visible to macOS"
    finally:
        bar.removeStatusItem_(item)


@_check("menu")
def _menu(bundle: Bundle | None) -> Verdict:
    owner = rumps.rumps.Menu()
    drawn = DrawnMenu(owner, lambda action, since: None)
    first = [Item(f"k{n}", "the same title", action=Action("a"), children=(Item(f"c{n}", "x"),)) for n in range(5)]
    drawn.draw([*first, Item("s", kind=Kind.SEPARATOR)])
    drawn.draw([first[4], first[1], Item("new", "new")])
    titles = [item.title() for item in owner._menu.itemArray()]
    drawn.clear()
    left = len(rumps.rumps.NSApp._ns_to_py_and_callback)
    return titles == ["the same title"] * 2 + ["new"] and left == 0, f"{titles}, {left} left in rumps' table"


@_check("notifications")
def _notifications(bundle: Bundle | None) -> Verdict:
    if not NSBundle.mainBundle().bundleIdentifier():
        return None, "only osascript's, without buttons: this Python has no bundle identifier"
    told = Event()
    seen: list[int] = []

    def answered(settings: Any) -> None:
        seen.append(settings.authorizationStatus())
        told.set()

    UN.UNUserNotificationCenter.currentNotificationCenter().getNotificationSettingsWithCompletionHandler_(answered)
    told.wait(_LIMIT)
    words = {0: "not asked yet", 1: "refused by the user", 2: "allowed", 3: "allowed, quietly"}
    return (None if seen else False), words.get(seen[0], str(seen[0])) if seen else "macOS did not answer"


@_check("login item")
def _login(bundle: Bundle | None) -> Verdict:
    return None, "not in a bundle" if bundle is None else ("on" if loginitem.is_on() else "off")


@_check("terminals")
def _terminals(bundle: Bundle | None) -> Verdict:
    found = [terminal.title for terminal, _ in terminals.installed()]
    return "Terminal" in found, ", ".join(found) or "none"
