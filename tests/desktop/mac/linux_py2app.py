"""The real py2app on Linux: `python linux_py2app.py FOLDERS BUILD-DIR DIST-DIR`, in the repository.

What is bundled is in FOLDERS, with colons between them: wheels for macOS, or for Linux with a stand-in for Cocoa. What
needs a Mac's programs is left out: rewriting load commands, stripping, signing.
"""

import importlib.util
import sys
import zlib
from importlib import machinery
from pathlib import Path

folders, build, dist = sys.argv[1:]
# What a Mac's extensions are called. modulegraph asks both the list and the finders.
machinery.EXTENSION_SUFFIXES.insert(0, f".cpython-3{sys.version_info.minor}-darwin.so")
finders = machinery.FileFinder.path_hook(
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)
sys.path_hooks[-1] = finders
sys.path_importer_cache.clear()

import py2app.build_app as build_app  # noqa: E402
import setuptools  # noqa: E402, F401
from modulegraph.modulegraph import addPackagePath  # noqa: E402

# py2app bundles what Python finds, and is itself not to be found there.
sys.path[:0] = folders.split(":")

real_config = build_app.get_config_var
# As a Python of a Mac's, whose library is a file of its own.
build_app.get_config_var = lambda name: 1 if name == "Py_ENABLE_SHARED" else real_config(name)
build_app.codesign_adhoc = lambda bundle: None
build_app.is_system = lambda: False
build_app.py2app.strip_files = lambda self, files: None
copy_loader_paths = build_app.py2app.copy_loader_paths


def copy_mach_o(self, source, target):
    # The extensions of this machine's Python are none of macholib's.
    if not Path(source).read_bytes().startswith(b"\x7fELF"):
        copy_loader_paths(self, source, target)


build_app.py2app.copy_loader_paths = copy_mach_o

if not hasattr(zlib, "__file__"):
    # Part of this machine's Python, and of a Mac's a file.
    Path(build).mkdir(parents=True, exist_ok=True)
    zlib.__file__ = f"{build}/zlib.so"
    Path(zlib.__file__).touch()

if importlib.util.find_spec("ctypes.macholib") is None:
    # Debian leaves it out of its Python. Every Mac's has it, and py2app's start-up code asks for it.
    addPackagePath("ctypes", str(Path(__file__).with_name("ctypes_of_a_mac")))

sys.argv[1:] = ["py2app", "--debug-skip-macholib", f"--bdist-base={build}", f"--dist-dir={dist}"]
setup = Path("setup.py")
exec(compile(setup.read_text("utf-8"), "setup.py", "exec"), {"__name__": "__main__", "__file__": "setup.py"})
