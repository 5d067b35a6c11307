"""Real rumps over the stand-in for Cocoa, for every test below."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# What several tests here share. Appended: nothing of ours may hide a library.
sys.path.append(str(HERE))

import fetched  # noqa: E402


@pytest.fixture(scope="session")
def cocoa_modules() -> None:
    """The stand-in, before PyObjC where there is one, and rumps."""
    if "standin" in sys.modules:
        return
    taken = [name for name in ("objc", "AppKit", "Foundation") if name in sys.modules]
    assert not taken, f"the real {taken} were imported first"
    try:
        rumps = fetched.rumps()
    except fetched.Unavailable as reason:
        pytest.skip(f"rumps cannot be had: {reason}")
    sys.path[:0] = [str(HERE / "cocoa"), str(rumps)]
    try:
        importlib.import_module("rumps")
    finally:
        sys.path.remove(str(rumps))


@pytest.fixture
def world(cocoa_modules: None) -> Iterator[object]:
    standin = importlib.import_module("standin")
    rumps = importlib.import_module("rumps.rumps")
    rumps.NSApp._ns_to_py_and_callback.clear()
    with standin.new_world() as made:
        yield made
