"""The launchd agent, over a `launchctl` that is as asynchronous as the real one."""

import os
import plistlib
import subprocess
import sys
from pathlib import Path

import pytest

from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.mac.launchd import Launchd, job

PROGRAM = Path("/Applications/AgtmuxBar.app/Contents/MacOS/agtmuxd")
JOB = f"gui/{os.getuid()}/dev.agtmux.daemon"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "launchd").mkdir()
    return tmp_path / "launchd"


@pytest.fixture
def launchd(tmp_path, root):
    def run(argv):
        assert argv[0] == "/bin/launchctl"
        command = [sys.executable, str(Path(__file__).with_name("launchctl.py")), *argv[1:]]
        return subprocess.run(command, env={"LAUNCHD": str(root)}, capture_output=True, text=True, timeout=30)

    return Launchd(tmp_path / "home", run, limit=10)


def calls(root):
    words = [line.split()[0] for line in (root / "calls").read_text().splitlines()]
    return [word for word in words if word != "print"]


def test_it_is_written_loaded_and_started(launchd, root, tmp_path):
    launchd.start(PROGRAM, tmp_path / "log")
    assert calls(root) == ["bootstrap", "kickstart"]
    written = plistlib.loads(launchd.file.read_bytes())
    assert launchd.file.name == "dev.agtmux.daemon.plist"
    assert launchd.file.stat().st_mode & 0o777 == 0o644
    assert written["ProgramArguments"] == [str(PROGRAM)]
    assert [path.name for path in launchd.file.parent.iterdir()] == [launchd.file.name]
    assert launchd.is_loaded()


def test_what_runs_as_it_should_is_left_alone(launchd, root, tmp_path):
    launchd.start(PROGRAM, tmp_path / "log")
    before = launchd.file.stat().st_mtime_ns
    (root / "calls").unlink()
    launchd.start(PROGRAM, tmp_path / "log")
    # A kickstart without -k does nothing to one that runs.
    assert calls(root) == ["kickstart"]
    assert launchd.file.stat().st_mtime_ns == before


def test_an_app_that_was_moved_is_loaded_anew_once_the_old_one_is_gone(launchd, root, tmp_path):
    launchd.start(PROGRAM, tmp_path / "log")
    (root / "slow").write_text("4")
    launchd.start(Path("/Users/u/Applications/AgtmuxBar.app/Contents/MacOS/agtmuxd"), tmp_path / "log")
    assert (root / "loaded").read_text().startswith("/Users/u/")
    assert calls(root) == ["bootstrap", "kickstart", "bootout", "bootstrap", "kickstart"]


def test_a_bootstrap_that_comes_too_early_is_tried_again(launchd, root, tmp_path):
    (root / "loaded").write_text("/another")
    (root / "going").write_text("3")
    launchd._write(job(PROGRAM, tmp_path / "log", tmp_path))
    launchd._bootstrap()
    assert calls(root).count("bootstrap") > 1
    assert (root / "loaded").read_text() == str(PROGRAM)


def test_a_restart_is_one_kickstart(launchd, root, tmp_path):
    launchd.start(PROGRAM, tmp_path / "log")
    launchd.restart()
    assert (root / "calls").read_text().splitlines()[-1] == f"kickstart -k {JOB}"


def test_removal_waits_until_it_is_gone_and_leaves_no_file(launchd, root, tmp_path):
    launchd.start(PROGRAM, tmp_path / "log")
    (root / "slow").write_text("3")
    launchd.remove()
    assert not (root / "loaded").exists()
    assert not launchd.file.exists()
    # Again is nothing.
    launchd.remove()


@pytest.mark.parametrize(
    "theirs",
    [
        plistlib.dumps({"Label": "dev.agtmux.daemon", "ProgramArguments": ["/opt/homebrew/bin/agtmuxd"]}),
        b"<broken",
        b"",
    ],
)
def test_a_file_that_the_user_wrote_is_run_and_left(launchd, root, tmp_path, theirs):
    launchd.file.parent.mkdir(parents=True)
    launchd.file.write_bytes(theirs)
    if theirs.startswith(b"<?xml"):
        launchd.start(PROGRAM, tmp_path / "log")
        assert (root / "loaded").read_text() == "/opt/homebrew/bin/agtmuxd"
    else:
        with pytest.raises(AgtmuxError, match="bootstrap"):
            launchd.start(PROGRAM, tmp_path / "log")
    launchd.remove()
    assert not (root / "loaded").exists()
    assert launchd.file.read_bytes() == theirs


def test_one_that_does_not_go_is_an_error_and_its_file_stays(launchd, root, tmp_path):
    launchd._limit = 0.2
    launchd.start(PROGRAM, tmp_path / "log")
    (root / "slow").write_text("1000000")
    with pytest.raises(AgtmuxError, match="has not ended"):
        launchd.remove()
    assert launchd.file.exists()


def test_what_launchctl_refuses_is_told(launchd):
    with pytest.raises(AgtmuxError, match=r"kickstart dev\.agtmux\.daemon: Could not find service"):
        launchd.restart()


def test_the_job_has_a_path_and_a_locale_and_comes_back_only_after_a_crash(tmp_path, monkeypatch):
    monkeypatch.setenv("AGTMUX_SOCKET", "/tmp/s")
    monkeypatch.setenv("PATH", "/only/in/this/shell")
    monkeypatch.setenv("PYTHONHOME", "/x")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    made = job(PROGRAM, tmp_path / "<log> & more", tmp_path)
    environment = made["EnvironmentVariables"]
    assert "/opt/homebrew/bin" in environment["PATH"].split(":")
    assert "/only/in/this/shell" not in environment["PATH"]
    assert environment["LANG"] == "en_US.UTF-8"
    assert environment["AGTMUX_SOCKET"] == "/tmp/s"
    assert "PYTHONHOME" not in environment
    assert made["KeepAlive"] == {"SuccessfulExit": False}
    assert (made["ThrottleInterval"], made["ProcessType"], made["RunAtLoad"]) == (10, "Interactive", True)
    assert plistlib.loads(plistlib.dumps(made)) == made
