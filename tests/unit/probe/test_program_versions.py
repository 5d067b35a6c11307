"""A program is found where installers put it, and its version told only where something shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agtmux.probe.processes import program_version


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account whose PATH has nothing of it."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return tmp_path


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def package(home: Path, bin_folder: str, version: str) -> None:
    """As npm installs one: a link into its package."""
    folder = home / bin_folder
    target = program(folder.parent / "lib" / "node_modules" / "parrot" / "cli.js")
    (target.parent / "package.json").write_text(json.dumps({"name": "parrot", "version": version}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "parrot").symlink_to(target)


@pytest.mark.parametrize(
    "folder",
    [
        ".local/bin",
        ".npm-global/bin",
        ".volta/bin",
        ".bun/bin",
        "bin",
        ".parrot/bin",
        ".nvm/versions/node/v22.1.0/bin",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin",
    ],
)
def test_it_is_found_in_the_usual_places(home: Path, folder: str) -> None:
    assert program_version("parrot") is None
    package(home, folder, "2.1.325")
    assert program_version("parrot") == "2.1.325"


def test_it_is_found_where_npm_is_told_to_install(home: Path) -> None:
    (home / ".npmrc").write_text("fund=false\nprefix = ${HOME}/.packages\n")
    package(home, ".packages/bin", "1.2.3")
    assert program_version("parrot") == "1.2.3"


def test_a_script_that_starts_a_package_beside_it_has_its_version(home: Path) -> None:
    """`~/.AGENT/local/AGENT` is one, and the package.json beside it is another's."""
    local = home / ".parrot" / "local"
    program(local / "parrot")
    (local / "package.json").write_text(json.dumps({"name": "parrot-local", "version": "0.0.1"}))
    package(home, ".parrot/local/node_modules/.bin", "2.0.9")
    for search_path in ("", str(local)):
        assert program_version("parrot", search_path) == "2.0.9"


def test_of_several_the_oldest_counts(home: Path) -> None:
    """Hooks that an old version rejects are not installed for a newer one beside it."""
    for node, version in (("v20.0.0", "2.10.0"), ("v22.0.0", "2.9.5")):
        package(home, f".nvm/versions/node/{node}/bin", version)
    assert program_version("parrot") == "2.9.5"


@pytest.mark.parametrize(("shims", "installs"), [(".local/share/mise", "installs"), (".asdf", "installs")])
def test_what_a_shim_may_run_is_looked_at(home: Path, shims: str, installs: str) -> None:
    program(home / shims / "shims" / "parrot")
    assert program_version("parrot") == ""
    for node, version in (("20", "2.0.3"), ("22", "2.0.14")):
        package(home, f"{shims}/{installs}/node/{node}/bin", version)
    assert program_version("parrot") == "2.0.3"


def test_what_is_on_the_path_goes_before_and_is_not_given_anothers_version(home: Path) -> None:
    program(home / "theirs" / "parrot")
    package(home, ".local/bin", "9.9.9")
    assert program_version("parrot", str(home / "theirs")) == ""
