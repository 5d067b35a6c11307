"""Which Python runs the hook: any from 3.8, found without starting anything else, and none is no reason to fail."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from agtmux.hook.compose import compose
from support.hook import BASE_PYTHON, PAYLOAD, Daemon, install, patient

OLDER_AND_NEWER = [
    python
    for version in range(8, 15)
    for python in sorted(Path.home().glob(f".pyenv/versions/3.{version}.*/bin/python3"))[-1:]
]


@pytest.mark.parametrize("python", OLDER_AND_NEWER, ids=lambda python: python.parent.parent.name)
def test_every_python_from_3_8_delivers_and_spools(tmp_path, hook, python):
    command = install(tmp_path / "other", patient(compose()), python)
    hook.run("claude", "Stop", command=command)
    assert len(hook.spooled()) == 1
    with Daemon(Path(hook.env["AGTMUX_SOCKET"])).serving() as daemon:
        hook.run("claude", "Stop", command=command)
        assert daemon.requests[0].payload == PAYLOAD


@pytest.mark.parametrize("python", [BASE_PYTHON, *OLDER_AND_NEWER], ids=str)
def test_delivering_imports_nothing_but_c_modules(hook, daemon, python):
    def imported(*args: str) -> set[str]:
        command = [python, "-I", "-S", "-X", "importtime", *args]
        done = subprocess.run(command, env=hook.env, input=b"{}", capture_output=True, timeout=20)
        return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}

    ours = imported(str(hook.command), "claude", "Stop") - imported("-c", "pass")
    assert len(daemon.requests) == 1
    assert ours <= {"posix", "time", "select", "_socket"}
    assert "_socket" in ours


@pytest.fixture
def marked(tmp_path):
    """A python3 that leaves a mark when it is chosen, and the way to ask whether it was."""

    class Marked:
        def make(self, folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            python = folder / "python3"
            python.write_text(f'#!/bin/sh\necho "$0" >>"{tmp_path}/marks"\nexec "{BASE_PYTHON}" "$@"\n')
            python.chmod(0o755)

        @property
        def chosen(self) -> list[str]:
            path = tmp_path / "marks"
            return [str(Path(line).parent) for line in path.read_text().splitlines()] if path.exists() else []

    return Marked()


@pytest.mark.parametrize("relative", [True, False])
def test_a_link_is_followed_to_the_python_beside_the_script(tmp_path, hook, daemon, marked, relative):
    real = install(tmp_path / "venv" / "bin", patient(compose()), None)
    marked.make(real.parent)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "one").symlink_to("../venv/bin/agtmux-hook" if relative else real)
    (tmp_path / "links" / "two").symlink_to("one" if relative else tmp_path / "links" / "one")
    hook.run("claude", "Stop", command=tmp_path / "links" / "two")
    assert [Path(folder).resolve() for folder in marked.chosen] == [real.parent]
    assert len(daemon.requests) == 1


def test_a_copy_finds_python_in_path_but_not_a_version_managers_shim(tmp_path, hook, daemon, marked):
    copy = install(tmp_path / "copied", patient(compose()), None)
    for folder in ("shims", "with space", "later"):
        marked.make(tmp_path / folder)
    hook.env["PATH"] = f"{tmp_path}/shims:{tmp_path}/*:{tmp_path}/with space:{tmp_path}/later"
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{tmp_path}/with space"]
    assert len(daemon.requests) == 1


def test_a_shim_is_better_than_nothing(tmp_path, hook, daemon, marked):
    text = patient(compose()).replace("/usr/bin /usr/local/bin /opt/homebrew/bin $tools", "/nonexistent")
    copy = install(tmp_path / "copied", text, None)
    marked.make(tmp_path / "shims")
    hook.env["PATH"] = f"/nonexistent:{tmp_path}/shims"
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{tmp_path}/shims"]
    assert len(daemon.requests) == 1


def test_a_copy_finds_python_in_the_usual_places(tmp_path, short_tmp, hook, daemon, marked):
    # Not in tmp_path: TMPDIR may hold a space, and the usual folders are words of the script.
    text = patient(compose()).replace("/usr/bin /usr/local/bin", f"/nonexistent {short_tmp}/usual")
    copy = install(tmp_path / "copied", text, None)
    marked.make(short_tmp / "usual")
    hook.env["PATH"] = ""
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{short_tmp}/usual"]
    assert len(daemon.requests) == 1


def test_a_machine_without_python_is_left_alone(tmp_path, hook):
    text = patient(compose()).replace("/usr/bin /usr/local/bin /opt/homebrew/bin $tools", "/nonexistent")
    copy = install(tmp_path / "copied", text, None)
    hook.env["PATH"] = "/nonexistent"
    hook.run("claude", "Stop", command=copy)
    assert not hook.state_dir.exists()


def test_a_python_that_complains_is_not_heard(hook):
    python = hook.command.parent / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\necho warning\necho warning >&2\n")
    python.chmod(0o755)
    hook.run("claude", "Stop")


def test_a_python_that_dangles_is_passed_over(tmp_path, hook, daemon, marked):
    # A virtual environment whose base Python was upgraded away.
    copy = install(tmp_path / "venv", patient(compose()), tmp_path / "gone")
    marked.make(tmp_path / "path")
    hook.env["PATH"] = str(tmp_path / "path")
    hook.run("claude", "Stop", command=copy)
    assert len(daemon.requests) == 1


def test_the_usual_case_starts_no_other_process(hook, daemon):
    if not shutil.which("strace"):
        pytest.skip("strace counts the processes")
    with tempfile.NamedTemporaryFile() as log:
        command = ["strace", "-f", "-o", log.name, "-e", "trace=execve,fork,vfork,clone,clone3"]
        subprocess.run([*command, hook.command, "claude", "Stop"], env=hook.env, stdin=subprocess.DEVNULL, check=True)
        calls = [line for line in Path(log.name).read_text().splitlines() if "+++" not in line]
    assert len(calls) == 2
    assert all("execve" in call for call in calls)
