"""Passphrases and passwords for SSH, from the system's keyring and nowhere else.

Only keyrings that are known to encrypt are asked. A keyring that is missing, locked or of another kind has nothing to
say, and the connection then fails as if there were no secret.
"""

from __future__ import annotations

import asyncio
import logging
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


async def passphrase(key_file: str) -> str | None:
    """Of a private key, kept as `ssh-key:<path of the key>`."""
    return await asyncio.to_thread(_secret, f"ssh-key:{key_file}")


async def password(ssh_target: str) -> str | None:
    """Of an account, kept as `ssh-password:<the ssh target>`."""
    return await asyncio.to_thread(_secret, f"ssh-password:{ssh_target}")


def _secret(name: str) -> str | None:
    # Costs a tenth of a second, and most people have an agent.
    import keyring

    for backend in _backends(keyring.get_keyring()):
        if not type(backend).__module__.startswith(_TRUSTED):
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


def _backends(keyring: Any) -> list[Any]:
    return list(getattr(keyring, "backends", [])) or [keyring]
