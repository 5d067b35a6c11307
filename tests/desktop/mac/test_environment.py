"""What children inherit: nothing of py2app's, and what launchd does not give."""

import json
import os
import subprocess
import sys

import pytest

from AgtmuxBar.mac import environment, spawn

STUB = {
    "PYTHONHOME": "/Applications/AgtmuxBar.app/Contents/Resources",
    "PYTHONPATH": "/Applications/AgtmuxBar.app/Contents/Resources",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "RESOURCEPATH": "/Applications/AgtmuxBar.app/Contents/Resources",
    "EXECUTABLEPATH": "/Applications/AgtmuxBar.app/Contents/MacOS/AgtmuxBar",
    "ARGVZERO": "AgtmuxBar",
    "_PY2APP_LAUNCHED_": "1",
    "PYOBJC_BUNDLE_ADDRESS815": "0x1",
    "__PYVENV_LAUNCHER__": "x",
    "__CFBundleIdentifier": "dev.agtmux.AgtmuxBar",
    "SSL_CERT_FILE": "/Applications/AgtmuxBar.app/Contents/Resources/openssl.ca/cert.pem",
    "SSL_CERT_DIR": "/Applications/AgtmuxBar.app/Contents/Resources/openssl.ca/certs",
}


def test_all_of_the_stubs_variables_go_and_the_users_stay():
    users = {"HOME": "/Users/u", "SSL_CERT_FILE": "/etc/corporate.pem", "TMUX": "x", "AGTMUX_SOCKET": "s"}
    assert environment.scrubbed(STUB | users) == users


def test_a_real_child_gets_none_of_them(monkeypatch):
    for name, value in STUB.items():
        # A Python that is started with these would not start.
        monkeypatch.setenv(name, value)
    told = json.loads(spawn.checked([sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]))
    assert not set(STUB) & set(told)
    assert any("utf" in told.get(name, "").lower() for name in ("LC_ALL", "LC_CTYPE", "LANG"))


def test_a_child_that_lives_on_gets_none_of_them(monkeypatch, tmp_path):
    for name, value in STUB.items():
        monkeypatch.setenv(name, value)
    # A fifo: reading it waits until the child has written.
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    spawn.start(["/bin/sh", "-c", f"env >{fifo}"])
    names = {line.partition("=")[0] for line in fifo.read_text().splitlines()}
    assert "PATH" in names
    assert not set(STUB) & names


def test_this_process_can_be_scrubbed_for_what_others_spawn():
    mine = dict(STUB, HOME="/Users/u")
    environment.scrub(mine)
    assert mine == {"HOME": "/Users/u"}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"LANG": "en_US.UTF-8"}),
        ({"LANG": "C"}, {"LANG": "en_US.UTF-8"}),
        ({"LC_ALL": "C", "LANG": "ja_JP.UTF-8"}, {"LC_ALL": "C", "LANG": "ja_JP.UTF-8"}),
        ({"LC_CTYPE": "de_DE.utf8"}, {"LC_CTYPE": "de_DE.utf8"}),
    ],
)
def test_there_is_a_locale_with_utf_8(given, made):
    found = environment.for_child(given)
    assert {name: found[name] for name in found if name != "PATH"} == made


def test_homebrew_is_found_and_the_users_path_comes_first(tmp_path):
    path = environment.search_path("/custom/bin:/usr/bin", tmp_path).split(":")
    assert path[:2] == ["/custom/bin", "/usr/bin"]
    assert {"/opt/homebrew/bin", "/usr/local/bin", f"{tmp_path}/.local/bin"} <= set(path)
    assert len(path) == len(set(path))


def test_a_program_that_fails_is_an_error_with_its_last_words():
    with pytest.raises(OSError, match="too bad"):
        spawn.checked(["/bin/sh", "-c", "echo first >&2; echo too bad >&2; exit 3"])


def test_a_program_that_hangs_is_an_error():
    with pytest.raises(OSError, match="has not ended"):
        spawn.run(["/bin/sh", "-c", "exec tail -f /dev/null"], limit=0.2)


@pytest.mark.parametrize(("function", "status"), [("fine", 0), ("refused", 4), ("broken", 1)])
def test_a_program_of_the_bundle_ends_with_a_status_and_never_with_an_exception(tmp_path, function, status):
    """py2app's stub opens a window for one."""
    (tmp_path / "program.py").write_text(
        "def fine(): return 0\ndef refused(): return 4\ndef broken(): raise OSError('x')\n"
    )
    code = f"from AgtmuxBar.mac import inside; inside.run('program', {function!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == status
    assert ("OSError" in done.stderr) is (function == "broken")
