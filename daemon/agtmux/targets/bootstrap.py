"""What is sent to a VM: the sources of the probe in one text, and the constant command that runs such a text there."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

# Whatever shell the user has there takes these words as they are. The text is preceded by its length.
COMMAND: Final = (
    "python3 -I -S -c "
    '\'import sys; b = sys.stdin.buffer; exec(compile(b.read(int(b.readline())), "agtmux-probe", "exec"))\''
)

_LOADER: Final = """\
import sys
if sys.version_info < (3, 8):
    sys.exit("agtmux needs Python 3.8 or newer there, and its python3 is %s" % sys.version.split()[0])
import importlib.abc, importlib.util

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name in SOURCES:
            return importlib.util.spec_from_loader(name, self, is_package=name in ("agtmux", "agtmux.probe"))

    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], module.__name__, "exec"), module.__dict__)

sys.meta_path.insert(0, Finder())
from agtmux.probe.remote import main
main(GREETING)
"""


def program(greeting: str) -> bytes:
    """What COMMAND reads: the probe, which says `greeting` before anything else."""
    text = f"SOURCES = {_sources()!r}\nGREETING = {greeting!r}\n{_LOADER}".encode()
    return b"%d\n" % len(text) + text


@cache
def _sources() -> dict[str, str]:
    folder = resources.files("agtmux.probe")
    files = {entry.name: entry for entry in folder.iterdir() if entry.name.endswith(".py")}
    sources = {f"agtmux.probe.{name[:-3]}": file.read_text("utf-8") for name, file in files.items()}
    # The package itself is only its docstring.
    sources["agtmux"] = sources["agtmux.probe"] = ""
    sources.pop("agtmux.probe.__init__", None)
    return sources
