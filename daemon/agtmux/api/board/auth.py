"""Who may come in: a token, codes that open once, and what a browser gets in exchange. Values, no I/O.

A browser's cookie goes to every server on the same host, whatever its port. So a session has two halves: the cookie,
which scripts cannot read, and a key, which only pages of this very origin can keep. Neither opens anything alone.
Both follow from the token, so that a session outlives the daemon, and ends for all when the token is made anew.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections import deque
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

# And its port: two boards on one host would otherwise take each other's away.
COOKIE: Final = "agtmux_board_"
# Seconds.
SESSION_LASTS: Final = 30 * 24 * 3600
CODE_LASTS: Final = 60.0
_MOST_CODES: Final = 16
# In characters; what is shorter could be guessed.
_SHORTEST_ATTEMPT: Final = 16
_LONGEST: Final = 512

# Wrong tokens and codes in a minute, from one address and from all.
MOST_FAILURES: Final = 10
_MOST_OVERALL: Final = 100
_MINUTE: Final = 60.0
_MOST_ADDRESSES: Final = 1_000


def new_token() -> str:
    return secrets.token_urlsafe(32)


class Credentials:
    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(_digest(given), _digest(self._token.decode()))

    def new_session(self, now: float) -> tuple[str, str]:
        """The cookie and the key."""
        about = f"{secrets.token_urlsafe(16)}.{int(now) + SESSION_LASTS}"
        return f"{about}.{self._seal('cookie', about)}", self._seal("key", about)

    def is_session(self, cookie: str, key: str, now: float) -> bool:
        about, _, seal = cookie[:_LONGEST].rpartition(".")
        is_sealed = hmac.compare_digest(seal.encode(), self._seal("cookie", about).encode())
        is_keyed = hmac.compare_digest(key[:_LONGEST].encode(), self._seal("key", about).encode())
        expires = about.rpartition(".")[2]
        return is_sealed and is_keyed and expires.isdecimal() and now < int(expires)

    def _seal(self, kind: str, about: str) -> str:
        return hmac.new(self._token, f"{kind}:{about}".encode(), hashlib.sha256).hexdigest()


class Codes:
    """Each opens once, and soon nothing any more. It may stand where others can read it: in a list of processes.

    Who uses one may give it a name by chance, and may use it again under that name: the answer to the first time can
    get lost on its way.
    """

    def __init__(self) -> None:
        # By their digests: how alike a wrong one is cannot be found out by the time it takes.
        self._until: dict[bytes, float] = {}
        self._taken: dict[bytes, tuple[bytes, float]] = {}

    def issue(self, now: float) -> str:
        self._forget(now)
        while len(self._until) >= _MOST_CODES:
            del self._until[next(iter(self._until))]
        code = secrets.token_urlsafe(24)
        self._until[_digest(code)] = now + CODE_LASTS
        return code

    def take(self, code: str, attempt: str, now: float) -> bool:
        self._forget(now)
        known = _digest(code)
        until = self._until.pop(known, None)
        if until is not None:
            if len(attempt) >= _SHORTEST_ATTEMPT:
                self._taken[known] = (_digest(attempt), until)
            return True
        by, _ = self._taken.get(known, (b"", 0.0))
        return hmac.compare_digest(by, _digest(attempt))

    def _forget(self, now: float) -> None:
        self._until = {code: until for code, until in self._until.items() if now < until}
        self._taken = {code: taken for code, taken in self._taken.items() if now < taken[1]}


class Attempts:
    """Counts what was wrong. Who was wrong too often is not listened to for a while, whatever they say."""

    def __init__(self) -> None:
        self._failures: dict[str, deque[float]] = {}

    def check(self, address: str, now: float) -> None:
        self._forget(now)
        theirs = self._failures.get(address, ())
        is_flood = sum(map(len, self._failures.values())) >= _MOST_OVERALL
        if len(theirs) < MOST_FAILURES and not is_flood:
            return
        first = theirs[0] if theirs else now
        wait = max(math.ceil(first + _MINUTE - now), 1)
        raise AgtmuxError(
            ErrorCode.LIMIT_RATE,
            f"too many wrong tokens or codes; try again in {wait} s",
            {"retry_after_seconds": wait},
        )

    def failed(self, address: str, now: float) -> None:
        while address not in self._failures and len(self._failures) >= _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures.setdefault(address, deque(maxlen=MOST_FAILURES)).append(now)

    def _forget(self, now: float) -> None:
        for address, failures in list(self._failures.items()):
            while failures and failures[0] <= now - _MINUTE:
                failures.popleft()
            if not failures:
                del self._failures[address]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text[:_LONGEST].encode("utf-8", "replace")).digest()
