"""A probe at the end of an SSH channel: one connection a target, made the way the user's own ssh would make it.

The user's config, keys, agent, jump hosts and known_hosts decide. A host key that is not known is never accepted here,
whatever the config says about that: accepting it is for the user's own ssh to ask.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncssh

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.limits import Limits
from agtmux.targets import keychain
from agtmux.targets.bootstrap import COMMAND, program
from agtmux.targets.link import Line, unreachable

_KEEP_ALIVE: Final = 15
# It tells at length of every step; what went wrong, we tell ourselves.
asyncssh.set_log_level("ERROR")
# What a login shell may say before the probe does.
_MOST_NOISE: Final = 65_536
_MOST_JUMPS: Final = 8
_KNOWN_HOSTS: Final = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")


async def open_ssh(ssh_target: str, limits: Limits) -> Line:
    """Raises AgtmuxError(E_TARGET_UNREACHABLE) with a sentence that says what to do."""
    async with _explained(ssh_target):
        async with _limit(limits.connect, "no connection"):
            connection = await _connect(ssh_target)
        try:
            async with _limit(limits.command, "connected, but the probe did not start"):
                return await _start_probe(connection, ssh_target)
        except BaseException:
            connection.abort()
            raise


async def _connect(ssh_target: str) -> asyncssh.SSHClientConnection:
    host, given = _address(ssh_target)
    options = await _options(host, **given)
    await _check_jumps(options, 0)
    return await asyncssh.connect(
        host,
        **given,
        known_hosts=_known_hosts(options),
        passphrase=keychain.passphrase,
        password=lambda: keychain.password(ssh_target),
        agent_forwarding=False,
        keepalive_interval=_KEEP_ALIVE,
    )


def _address(ssh_target: str) -> tuple[str, dict[str, Any]]:
    """`host`, `user@host` or `ssh://user@host:port`, as ssh takes them; what is not said is the config's to say."""
    given: dict[str, Any] = {}
    if ssh_target.startswith("ssh://"):
        parts = urlsplit(ssh_target)
        host = parts.hostname or ""
        if parts.username:
            given["username"] = parts.username
        if parts.port:
            given["port"] = parts.port
        return host, given
    user, at, host = ssh_target.rpartition("@")
    if at:
        given["username"] = user
    return host, given


async def _options(host: str, **given: Any) -> asyncssh.SSHClientConnectionOptions:
    # Without keys: only what the config says of the host is wanted.
    options = await asyncssh.SSHClientConnectionOptions.construct(host=host, client_keys=None, **given)
    assert isinstance(options, asyncssh.SSHClientConnectionOptions)
    return options


def _known_hosts(options: asyncssh.SSHClientConnectionOptions) -> list[str] | bytes:
    named = options.known_hosts
    if not isinstance(named, list):
        # `UserKnownHostsFile none`: with no file there is no host that is known.
        return b""
    files = [str(file) for file in named] or list(_KNOWN_HOSTS)
    readable = [path for file in files if os.access(path := str(Path(file).expanduser()), os.R_OK)]
    return readable or b""


async def _check_jumps(options: asyncssh.SSHClientConnectionOptions, depth: int) -> None:
    """On the way, asyncssh takes the config's word: where that is to know no host at all, it would trust any."""
    jumps = options.tunnel if isinstance(options.tunnel, str) else ""
    for jump in filter(None, jumps.split(",")):
        host, given = _address(f"ssh://{jump}")
        on_the_way = await _options(host, **given)
        if on_the_way.known_hosts is None:
            raise unreachable(f"the host key of {host}, on the way, is not checked by your ssh config; remove that")
        if depth < _MOST_JUMPS:
            await _check_jumps(on_the_way, depth + 1)


async def _start_probe(connection: asyncssh.SSHClientConnection, ssh_target: str) -> Line:
    process: asyncssh.SSHClientProcess[bytes] = await connection.create_process(
        COMMAND, encoding=None, request_pty=False, send_env=(), env=()
    )
    greeting = f"\0agtmux {secrets.token_hex(16)}\n"
    process.stdin.write(program(greeting))
    noise = bytearray()
    while greeting.encode() not in noise:
        chunk = await process.stdout.read(4_096)
        if not chunk:
            raise unreachable(await _why_it_ended(process, ssh_target))
        noise += chunk
        if len(noise) > _MOST_NOISE:
            raise unreachable(f"{ssh_target} says a lot, but the probe says nothing; is its login shell in order?")
    rest = bytes(noise.partition(greeting.encode())[2])

    async def read(most: int) -> bytes:
        nonlocal rest
        if rest:
            taken, rest = rest, b""
            return taken
        try:
            return await process.stdout.read(most)
        except asyncssh.Error as error:
            raise OSError(str(error)) from None

    return Line(read, process.stdin.write, connection.abort)


async def _why_it_ended(process: asyncssh.SSHClientProcess[bytes], ssh_target: str) -> str:
    said = (await process.stderr.read(2_000)).decode("utf-8", "replace").strip()
    await process.wait_closed()
    if process.exit_status == 127 or "not found" in said:
        return f"{ssh_target} has no python3; install Python 3.8 or newer there"
    last = said.splitlines()[-1][:200] if said else f"exit status {process.exit_status}"
    return f"the probe did not start on {ssh_target}: {last}"


@asynccontextmanager
async def _limit(microseconds: int, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(microseconds / SECOND):
            yield
    except TimeoutError:
        raise unreachable(f"{what} within {microseconds / SECOND:g} seconds") from None


@asynccontextmanager
async def _explained(ssh_target: str) -> AsyncIterator[None]:
    """What went wrong, in words that tell what to do."""
    try:
        yield
    except AgtmuxError:
        raise
    except asyncssh.HostKeyNotVerifiable:
        raise unreachable(
            f"the host key of {ssh_target} is not the one in your known_hosts, or not there yet;"
            f" look at it and accept it with: ssh {ssh_target}"
        ) from None
    except asyncssh.PermissionDenied:
        raise unreachable(
            f"{ssh_target} does not let you in; `ssh {ssh_target}` must work without asking anything:"
            " use ssh-agent, or put the passphrase into the keyring (docs/configuration.md)"
        ) from None
    except asyncssh.ConfigParseError as error:
        raise unreachable(f"your ssh config cannot be read: {error}") from None
    except (asyncssh.Error, ValueError) as error:
        raise unreachable(f"{ssh_target}: {error}") from None
    except OSError as error:
        raise unreachable(f"{ssh_target} cannot be reached: {error.strerror or error}") from None
