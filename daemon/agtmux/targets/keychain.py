"""Secrets in the system's keyring and nowhere else: passphrases and passwords for SSH, and the board's token.

Only keyrings that are known to encrypt are asked. A keyring that is missing, locked or of another kind has nothing to
say, and the connection then fails as if there were no secret. It may ask its user and take long, so it is asked by
threads of its own, once for each secret, and after a refusal not again for a while.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, Final

_log = logging.getLogger(__name__)

SERVICE: Final = "dev.agtmux"
# Other packages register themselves as keyrings, and one of them writes plain text.
_TRUSTED: Final = (
    "keyring.backends.macOS",
    "keyring.backends.SecretService",
    "keyring.backends.libsecret",
    "keyring.backends.kwallet",
)
# A little less than a connection may take.
_PATIENCE: Final = 2.5
_ASK_AGAIN: Final = 600.0
# Somebody waits for it, and may be asked to unlock it first.
_LONG_PATIENCE: Final = 30.0

_executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="keyring")
_lock = threading.Lock()
_asked: dict[str, tuple[float, Future[str | None]]] = {}


def passphrase(key_file: str) -> str | None:
    """Of a private key, kept as `ssh-key:<path of the key>`. Blocks: asyncssh asks for it in a thread."""
    return _answer(f"ssh-key:{key_file}")


async def password(ssh_target: str) -> str | None:
    """Of an account, kept as `ssh-password:<the ssh target>`."""
    return await asyncio.to_thread(_answer, f"ssh-password:{ssh_target}")


class NoKeyring(Exception):
    """There is none that can be trusted, or it does not answer."""


async def kept(name: str) -> str | None:
    """What is there under that name. Raises NoKeyring."""
    found: str | None = await _asked_of(lambda backend: backend.get_password(SERVICE, name))
    return found


async def keep(name: str, secret: str) -> None:
    """Raises NoKeyring."""
    await _asked_of(lambda backend: backend.set_password(SERVICE, name, secret))


async def _asked_of(ask: Callable[[Any], Any]) -> Any:
    question = asyncio.get_running_loop().run_in_executor(_executor, _first_trusted, ask)
    try:
        return await asyncio.wait_for(question, _LONG_PATIENCE)
    except TimeoutError:
        raise NoKeyring("it does not answer; is it locked?") from None


def _first_trusted(ask: Callable[[Any], Any]) -> Any:
    try:
        import keyring

        backends = [each for each in _backends(keyring.get_keyring()) if _is_trusted(each)]
    except Exception as error:
        raise NoKeyring(type(error).__name__) from None
    why = "there is none"
    for backend in backends:
        try:
            return ask(backend)
        except Exception as error:
            # Backends raise what their system's library raises, and that may quote what it was given.
            why = type(error).__name__
    raise NoKeyring(why)


def _answer(name: str) -> str | None:
    with _lock:
        asked_at, question = _asked.get(name, (0.0, None))
        if question is None or (question.done() and time.monotonic() - asked_at > _ASK_AGAIN):
            question = _executor.submit(_secret, name)
            _asked[name] = (time.monotonic(), question)
    try:
        return question.result(_PATIENCE)
    except NotInTime:
        return None
    finally:
        if question.done() and question.result() is not None:
            # A secret is not kept here, only that there is none.
            with _lock:
                _asked.pop(name, None)


def _secret(name: str) -> str | None:
    try:
        # Costs a tenth of a second, and most people have an agent.
        import keyring

        backends = _backends(keyring.get_keyring())
    except Exception as error:
        _log.warning("there is no keyring: %s", type(error).__name__)
        return None
    for backend in backends:
        if not _is_trusted(backend):
            continue
        try:
            found = backend.get_password(SERVICE, name)
        except Exception as error:
            # Backends raise what their system's library raises.
            _log.warning("the keyring does not answer: %s", type(error).__name__)
            continue
        if found is not None:
            return str(found)
    return None


def _is_trusted(backend: Any) -> bool:
    return type(backend).__module__.startswith(_TRUSTED)


def _backends(keyring: Any) -> list[Any]:
    return list(getattr(keyring, "backends", [])) or [keyring]
