"""What a child of the app may inherit.

The stub that py2app starts us with leaves its own variables in the environment. A tmux server or a shell that got them
would keep them for ever, and every Python started there would look for its library in our bundle.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

# Set by the stub whatever they were before, so there is nothing of the user's to keep.
_STUB: Final = frozenset(
    {
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONOPTIMIZE",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONEXECUTABLE",
        "RESOURCEPATH",
        "EXECUTABLEPATH",
        "ARGVZERO",
        "_PY2APP_LAUNCHED_",
        "__PYVENV_LAUNCHER__",
        # Who was started by Finder or launchd. A terminal would take itself for us.
        "__CFBundleIdentifier",
        "XPC_SERVICE_NAME",
        "XPC_FLAGS",
    }
)
_STUB_PREFIX: Final = "PYOBJC_BUNDLE_ADDRESS"
# Set to files in the bundle by py2app; a user's own are left.
_IF_OURS: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_INSIDE: Final = ".app/Contents/Resources"

# launchd and Finder give `/usr/bin:/bin:/usr/sbin:/sbin`: no tmux of Homebrew's, MacPorts' or Nix's.
_FOLDERS: Final = (
    "~/.local/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/opt/local/bin",
    "~/.nix-profile/bin",
    "/run/current-system/sw/bin",
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/sbin",
)
# Every macOS has it. Without any, tmux shows underscores for what is not ASCII.
_LOCALE: Final = "en_US.UTF-8"
_LOCALE_VARIABLES: Final = ("LC_ALL", "LC_CTYPE", "LANG")


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what py2app put there."""
    return {name: value for name, value in environment.items() if not _is_stubs(name, value)}


def for_child(environment: Mapping[str, str] | None = None, home: Path | None = None) -> dict[str, str]:
    """What every process that we start gets: scrubbed, with a PATH that finds tmux and a locale that has UTF-8."""
    made = scrubbed(os.environ if environment is None else environment)
    made["PATH"] = search_path(made.get("PATH", ""), home)
    if not any(_is_utf8(made.get(name, "")) for name in _LOCALE_VARIABLES):
        for name in _LOCALE_VARIABLES:
            made.pop(name, None)
        made["LANG"] = _LOCALE
    return made


def search_path(path: str = "", home: Path | None = None) -> str:
    """That PATH first, and behind it the folders that programs are installed in on a Mac."""
    known = [folder.replace("~", str(home or Path.home()), 1) for folder in _FOLDERS]
    return ":".join(dict.fromkeys([*filter(None, path.split(":")), *known]))


def scrub(environment: MutableMapping[str, str] | None = None) -> None:
    """This process's own, once py2app's start is over: what others spawn is then as clean as what we do."""
    mine = os.environ if environment is None else environment
    for name in [name for name, value in mine.items() if _is_stubs(name, value)]:
        del mine[name]


def _is_stubs(name: str, value: str) -> bool:
    return name in _STUB or name.startswith(_STUB_PREFIX) or (name in _IF_OURS and _INSIDE in value)


def _is_utf8(locale: str) -> bool:
    return locale.lower().replace("-", "").endswith("utf8")
