"""What comes first in every process of the bundle, before anything of ours can start another."""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from typing import NoReturn

from AgtmuxBar.mac import environment
from AgtmuxBar.mac.bundle import Bundle, own_bundle


def enter() -> Bundle | None:
    """py2app's variables are gone from here on, and `sys.executable` is a program that can be started without them."""
    bundle = own_bundle()
    environment.scrub()
    if bundle is not None:
        # The bundle's own `python` finds its library only with PYTHONHOME, which nobody else may inherit.
        # agtmux-hook is beside it too, where the daemon looks for it.
        sys.executable = str(bundle.commands / "python3")
    return bundle


def run(module: str, function: str) -> NoReturn:
    """The program of that name. py2app's stub opens a window for an exception, which is nothing for a terminal."""
    enter()
    try:
        status = getattr(importlib.import_module(module), function)()
    except Exception:
        traceback.print_exc()
        status = 1
    sys.exit(status)


def run_module() -> None:
    """`python3 -m MODULE …` of the bundle: its script calls this with those words as arguments."""
    enter()
    module = sys.argv[2]
    sys.argv[:] = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
