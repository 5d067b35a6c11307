"""Secrets for SSH from a real Secret Service, and from nothing that is none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gnome-keyring-daemon") is None, reason="a Secret Service is Linux's"
)
# What the daemon does, in a session that has a keyring: somebody has put a secret there, and agtmux asks for it.
ASKS = """
import asyncio, json, sys
import keyring
from agtmux.targets import keychain
told = {"backend": type(keyring.get_keyring()).__module__}
told["before"] = keychain.passphrase("/keys/id")
if sys.argv[1] == "put":
    keyring.set_password(keychain.SERVICE, "ssh-key:/keys/id2", "open sesame")
    keyring.set_password(keychain.SERVICE, "ssh-password:vm1", "hunter2")
    told["key"] = keychain.passphrase("/keys/id2")
    told["password"] = asyncio.run(keychain.password("vm1"))
    told["other"] = keychain.passphrase("/keys/id3")
print(json.dumps(told))
"""
# The board's token, as the door asks for it.
TOKEN = """
import asyncio, json, sys
from pathlib import Path
from agtmux.api.board.token import RunToken, TokenStore
from agtmux.domain.errors import AgtmuxError
async def main():
    store = TokenStore(None, Path(sys.argv[1]), RunToken())
    try:
        return [await store.load(), await store.load(), await store.load(anew=True), await store.load()]
    except AgtmuxError as error:
        return [str(error)]
print(json.dumps({"tokens": asyncio.run(main())}))
"""


def session(tmp_path: Path, script: str, how: str, asks: str = ASKS, **env: str) -> dict[str, Any]:
    """In a D-Bus session of its own, with a home of its own."""
    (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
    program = tmp_path / "asks.py"
    program.write_text(asks)
    environment = {
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **env,
    }
    done = subprocess.run(
        ["dbus-run-session", "--", "sh", "-c", script.format(ask=f'"{sys.executable}" "{program}" {how}')],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def test_a_real_keyring_gives_what_was_put_there_and_nothing_else(tmp_path: Path) -> None:
    unlock = "printf 'a password' | gnome-keyring-daemon --unlock --components=secrets >/dev/null && {ask}"
    told = session(tmp_path, unlock, "put")
    assert told["backend"].startswith(("keyring.backends.SecretService", "keyring.backends.chainer"))
    assert (told["before"], told["key"], told["password"], told["other"]) == (None, "open sesame", "hunter2", None)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.keyring"))
    assert kept and b"open sesame" not in kept and b"hunter2" not in kept


def test_without_a_keyring_there_is_no_secret_and_no_wait(tmp_path: Path) -> None:
    told = session(tmp_path, "{ask}", "look")
    assert told["before"] is None


def test_a_keyring_that_writes_plain_text_is_not_asked(tmp_path: Path) -> None:
    package = tmp_path / "plain"
    package.mkdir()
    (package / "plaintext.py").write_text(
        "from keyring.backend import KeyringBackend\n"
        "class Plain(KeyringBackend):\n"
        "    priority = 9\n"
        "    def get_password(self, service, name): return 'written down'\n"
        "    def set_password(self, service, name, value): raise AssertionError\n"
    )
    env = {"PYTHON_KEYRING_BACKEND": "plaintext.Plain", "PYTHONPATH": str(package)}
    told = session(tmp_path, "{ask}", "look", **env)
    assert told == {"backend": "plaintext", "before": None}
    told = session(tmp_path, "{ask}", str(tmp_path / "no-file"), TOKEN, **env)
    first, again, new, last = told["tokens"]
    assert first == again != new == last, "a token of this run"
    assert "written down" not in told["tokens"]
    assert not (tmp_path / "no-file").exists()


def test_the_boards_token_is_kept_by_the_keyring_and_in_no_file(tmp_path: Path) -> None:
    unlock = "printf 'a password' | gnome-keyring-daemon --unlock --components=secrets >/dev/null && {ask}"
    first, again, new, last = session(tmp_path, unlock, str(tmp_path / "no-file"), TOKEN)["tokens"]
    assert first == again != new == last
    assert all(len(token) >= 43 for token in (first, new))
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert first.encode() not in kept and new.encode() not in kept
