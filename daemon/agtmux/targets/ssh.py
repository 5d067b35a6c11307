"""A probe at the end of an SSH channel: one connection a target, made the way the user's own ssh would make it.

The user's config, keys, agent, jump hosts and known_hosts decide. A host key that is not known is never accepted here,
whatever the config says about that: accepting it is for the user's own ssh to ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

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
_WITH_PORT: Final = re.compile(r"(\[[^]]+\]|[^:]+):([0-9]{1,5})")
_KNOWN_HOSTS: Final = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")


async def open_ssh(ssh_target: str, limits: Limits) -> Line:
    """Raises AgtmuxError(E_TARGET_UNREACHABLE) with a sentence that says what to do."""
    # To the jump hosts on the way, and last to the target itself.
    opened: list[asyncssh.SSHClientConnection] = []

    def close() -> None:
        for connection in reversed(opened):
            connection.abort()

    try:
        async with _explained(ssh_target):
            async with _limit(limits.connect, "no connection"):
                await _connect(ssh_target, *_address(ssh_target), opened, 0)
            async with _limit(limits.command, "connected, but the probe did not start"):
                return await _start_probe(opened[-1], ssh_target, close)
    except BaseException:
        close()
        raise


async def _connect(
    ssh_target: str, host: str, given: dict[str, Any], opened: list[asyncssh.SSHClientConnection], depth: int
) -> None:
    """Over the jump hosts of the user's config, each checked as strictly as the target: asyncssh would take the
    config's word for them, and would leave their connections open when it is given up halfway."""
    options = await _options(host, **given)
    jumps = options.tunnel if isinstance(options.tunnel, str) and options.tunnel.lower() != "none" else ""
    for number, jump in enumerate(filter(None, jumps.split(","))):
        way = _address(f"ssh://{jump}")
        if number == 0 and depth < _MOST_JUMPS:
            # The first may itself be behind others.
            await _connect(ssh_target, *way, opened, depth + 1)
        else:
            await _connect_to(ssh_target, *way, opened)
    await _connect_to(ssh_target, host, given, opened)


async def _connect_to(
    ssh_target: str, host: str, given: dict[str, Any], opened: list[asyncssh.SSHClientConnection]
) -> None:
    opened.append(
        await asyncssh.connect(
            host,
            **given,
            tunnel=opened[-1] if opened else None,
            known_hosts=_known_hosts(await _options(host, **given)),
            passphrase=keychain.passphrase,
            password=lambda: keychain.password(ssh_target),
            # Whatever the config says: nothing of this machine is lent to that one.
            agent_forwarding=False,
            x11_forwarding=False,
            keepalive_interval=_KEEP_ALIVE,
        )
    )


def _address(ssh_target: str) -> tuple[str, dict[str, Any]]:
    """`host`, `user@host` or `ssh://user@host:port`, as ssh takes them; what is not said is the config's to say."""
    given: dict[str, Any] = {}
    is_url = ssh_target.startswith("ssh://")
    user, at, host = ssh_target.removeprefix("ssh://").rstrip("/").rpartition("@")
    if at:
        given["username"] = user
    if is_url and (parts := _WITH_PORT.fullmatch(host)):
        host, given["port"] = parts[1], int(parts[2])
    return host.strip("[]"), given


async def _options(host: str, **given: Any) -> asyncssh.SSHClientConnectionOptions:
    # `config=()` is the user's own, None would be none at all. Without keys: only what it says of the host is wanted.
    options = await asyncssh.SSHClientConnectionOptions.construct(config=(), host=host, client_keys=None, **given)
    assert isinstance(options, asyncssh.SSHClientConnectionOptions)
    return options


def _known_hosts(options: asyncssh.SSHClientConnectionOptions) -> list[str] | asyncssh.SSHKnownHosts:
    named = options.known_hosts
    if not isinstance(named, list):
        # `UserKnownHostsFile none`: with no file there is no host that is known.
        return asyncssh.import_known_hosts("")
    files = [str(file) for file in named] or list(_KNOWN_HOSTS)
    readable = [path for file in files if os.access(path := str(Path(file).expanduser()), os.R_OK)]
    return readable or asyncssh.import_known_hosts("")


async def _start_probe(connection: asyncssh.SSHClientConnection, ssh_target: str, close: Callable[[], None]) -> Line:
    process: asyncssh.SSHClientProcess[bytes] = await connection.create_process(
        COMMAND, encoding=None, request_pty=False, send_env=None, env=None, stderr=asyncssh.PIPE
    )
    greeting = f"\0agtmux {secrets.token_hex(16)}\n"
    with contextlib.suppress(OSError):
        # It may have ended already; what it said about that is read below.
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

    return Line(read, process.stdin.write, close)


async def _why_it_ended(process: asyncssh.SSHClientProcess[bytes], ssh_target: str) -> str:
    said = (await process.stderr.read(2_000)).decode("utf-8", "replace").strip()
    await process.wait_closed()
    if process.exit_status == 127:
        return f"{ssh_target} has no python3; install Python 3.8 or newer there"
    last = said.splitlines()[-1][:200] if said else f"exit status {process.exit_status}"
    return f"the probe did not start on {ssh_target}: {last}"


@asynccontextmanager
async def _limit(microseconds: int, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(microseconds / SECOND):
            yield
    except TimeoutError:
        raise unreachable(
            f"{what} within {microseconds / SECOND:g} seconds; is it on, and does ssh get there?"
        ) from None


@asynccontextmanager
async def _explained(ssh_target: str) -> AsyncIterator[None]:
    """What went wrong, in words that tell what to do."""
    try:
        yield
    except AgtmuxError:
        raise
    except asyncssh.HostKeyNotVerifiable:
        raise unreachable(
            f"a host key on the way to {ssh_target} is not the one in your known_hosts, or not there yet;"
            f" look at it and accept it with: ssh {ssh_target}"
            " (with UserKnownHostsFile none or /dev/null, none is ever known)",
            mend=f"ssh {ssh_target}",
        ) from None
    except asyncssh.PermissionDenied:
        raise unreachable(
            f"{ssh_target} does not let you in; `ssh {ssh_target}` must work without asking anything:"
            " use ssh-agent, or put the passphrase into the keyring (docs/targets.md)"
        ) from None
    except asyncssh.ConfigParseError as error:
        raise unreachable(f"your ssh config cannot be read: {error}") from None
    except (asyncssh.Error, ValueError) as error:
        raise unreachable(f"{ssh_target}: {error}") from None
    except OSError as error:
        why = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)
        raise unreachable(f"{ssh_target} cannot be reached: {why}; `ssh {ssh_target}` may tell more") from None
