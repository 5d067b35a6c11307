"""How py2app makes AgtmuxBar.app, for setup.py.

The bundle has the app and, as further programs of it, `agtmux-cli`, `agtmuxd` and `agtmux-bridge`. None may be called
like a package of ours, which it would hide. What people and agents are given are the sh scripts in Resources/bin: a
program of the bundle finds its library by its own path, and not through a link.
"""

from __future__ import annotations

import compileall
import os
import platform
import py_compile
import subprocess
import sys
from pathlib import Path

from py2app.build_app import py2app

HERE = Path("packaging/macos")
BUILD = Path("build/macos")
IDENTIFIER = "dev.agtmux.AgtmuxBar"

OWN = ("agtmux", "AgtmuxBar")
# Beside the app itself.
PROGRAMS = ("agtmux-cli", "agtmuxd", "agtmux-bridge")
# Whole, as files: resources, migrations, the probe's source and extensions are looked for beside the code.
PACKAGES = [
    *OWN,
    *("rumps", "aiosqlite", "asyncssh", "bcrypt", "cryptography", "cffi", "httptools"),
    *("keyring", "msgspec", "starlette", "uvicorn", "websockets", "anyio", "h11", "click", "idna"),
    # The server behind the bridge.
    *("mcp", "mcp_types", "pydantic", "pydantic_core", "annotated_types", "typing_inspection"),
    *("httpx2", "sse_starlette", "python_multipart"),
]
# What is imported by a name that is made at run time.
INCLUDES = [
    *("_cffi_backend", "keyring.backends.macOS", "PyObjCTools.AppHelper", "encodings.idna", "sqlite3", "runpy"),
    *("AppKit", "Foundation", "objc", "ServiceManagement", "UserNotifications"),
]
EXCLUDES = [
    *("tkinter", "test", "lib2to3", "ensurepip", "idlelib", "turtledemo", "pip", "setuptools", "pkg_resources"),
    # Of Linux, where the tray and the keyring speak D-Bus.
    *("jeepney", "secretstorage", "AgtmuxBar.linux"),
    *("PyObjCTest", "claude_agent_sdk", "pytest", "hypothesis", "mypy", "uvloop", "watchfiles", "numpy"),
]


def plist(version: str) -> dict[str, object]:
    return {
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleName": "AgtmuxBar",
        "CFBundleDisplayName": "agtmux",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "CFBundleDevelopmentRegion": "en",
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        # SMAppService, by which it opens at login, came with 13.
        "LSMinimumSystemVersion": "13.0",
        "LSMultipleInstancesProhibited": True,
        # In the menu bar and not in the Dock.
        "LSUIElement": True,
        "NSHighResolutionCapable": True,
        # py2app names one that there is not.
        "NSMainNibFile": "",
        # macOS may otherwise end it without a word, and the stream from the daemon with it.
        "NSSupportsAutomaticTermination": False,
        "NSSupportsSuddenTermination": False,
        "NSHumanReadableCopyright": "MIT licence",
    }


class Bundle(py2app):
    """py2app, which refuses a distribution with dependencies: they are in the bundle, and nobody will install them."""

    def finalize_options(self) -> None:
        self.distribution.install_requires = None
        super().finalize_options()

    def create_binaries(self, py_files, pkgdirs, extensions, loader_files):
        # Nothing may be written into a signed bundle, and commands are not to be compiled anew at every call.
        for name in OWN:
            compileall.compile_dir(
                self.get_bootstrap(name),
                quiet=1,
                force=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        return super().create_binaries(py_files, pkgdirs, extensions, loader_files)

    def get_bootstrap(self, bootstrap):
        # py2app would take ./AgtmuxBar for it, and what was built into its zip file as well.
        if bootstrap in OWN:
            return str(Path(self.get_finalized_command("build").build_lib, bootstrap).absolute())
        return super().get_bootstrap(bootstrap)

    def get_plist_options(self) -> dict[str, object]:
        return super().get_plist_options() | plist(self.distribution.get_version())


def arguments(compose_hook) -> dict[str, object]:
    """Of setuptools.setup. Draws the icon and composes the hook on the way."""
    compose_hook(BUILD / "bin" / "agtmux-hook")
    # By another Python: what this one has imported py2app would take from where it was imported, into its zip file.
    draw = [sys.executable, str(HERE / "icon.py"), str(BUILD / "AgtmuxBar.icns")]
    subprocess.run(draw, check=True, env=os.environ | {"PYTHONPATH": str(Path().absolute())})
    commands = [*sorted(map(str, (HERE / "bin").iterdir())), str(BUILD / "bin" / "agtmux-hook")]
    options = {
        # Dropped files and URLs would be read as arguments, by an event loop of its own.
        "argv_emulation": False,
        # A command runs where it was called.
        "no_chdir": True,
        "arch": os.environ.get("AGTMUX_BUNDLE_ARCH") or platform.machine(),
        "iconfile": str(BUILD / "AgtmuxBar.icns"),
        "extra_scripts": [str(HERE / "main" / f"{name}.py") for name in PROGRAMS],
        "packages": PACKAGES,
        "includes": INCLUDES,
        "excludes": EXCLUDES,
        "strip": True,
        "optimize": 0,
        "resources": [],
    }
    return {
        "app": [{"script": str(HERE / "main" / "menu-bar.py")}],
        "options": {"py2app": options},
        "cmdclass": {"py2app": Bundle},
        "data_files": [("bin", commands)],
        # Else setuptools would look for modules and scripts of its own accord.
        "packages": [],
        "py_modules": [],
    }
