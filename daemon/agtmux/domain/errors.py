"""Every error agtmux reports to anyone.

One class, one code, one sentence that says what happened and what to do, and optional details. The code decides
the exit status of a command, the HTTP status of a response and the JSON-RPC number of a refused MCP tool call:

AgtmuxError
├── exit 1, failed                      E_INTERNAL, E_STORE, E_TIMEOUT, E_UNSUPPORTED, E_TOO_LARGE, E_EVENT_INVALID,
│                                       E_ALREADY_RUNNING, E_DELIVERY_UNCERTAIN, E_AGENT_FAILED
├── exit 2, asked for wrongly           E_USAGE, E_CONFIG, E_REF_INVALID, E_REF_INVALID_ENCODING, E_CURSOR_INVALID
├── exit 3, the daemon is not there     E_DAEMON_UNAVAILABLE
├── exit 4, refused by a guard          E_RUNTIME_STALE, E_PRECONDITION_FAILED, E_SNAPSHOT_EXPIRED,
│                                       E_IDEMPOTENCY_CONFLICT, E_CURSOR_EXPIRED, E_PID_UNAVAILABLE,
│                                       E_UNAUTHORIZED, E_FORBIDDEN, E_LIMIT_PANES, E_LIMIT_RATE, E_DIALOG_OPEN,
│                                       E_DRAFT_PRESENT, E_TARGET_EXISTS
├── exit 5, not found or ambiguous      E_NOT_FOUND, E_REF_NOT_FOUND, E_REF_AMBIGUOUS, E_TARGET_NOT_FOUND
└── exit 6, target unreachable          E_TARGET_UNREACHABLE

Nothing heavy is imported here: the command line pays for it on every call.
"""

from __future__ import annotations

from enum import StrEnum

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class ErrorCode(StrEnum):
    INTERNAL = "E_INTERNAL"
    STORE = "E_STORE"
    TIMEOUT = "E_TIMEOUT"
    UNSUPPORTED = "E_UNSUPPORTED"
    TOO_LARGE = "E_TOO_LARGE"
    EVENT_INVALID = "E_EVENT_INVALID"
    ALREADY_RUNNING = "E_ALREADY_RUNNING"
    DELIVERY_UNCERTAIN = "E_DELIVERY_UNCERTAIN"
    AGENT_FAILED = "E_AGENT_FAILED"
    USAGE = "E_USAGE"
    CONFIG = "E_CONFIG"
    REF_INVALID = "E_REF_INVALID"
    REF_INVALID_ENCODING = "E_REF_INVALID_ENCODING"
    CURSOR_INVALID = "E_CURSOR_INVALID"
    DAEMON_UNAVAILABLE = "E_DAEMON_UNAVAILABLE"
    RUNTIME_STALE = "E_RUNTIME_STALE"
    PRECONDITION_FAILED = "E_PRECONDITION_FAILED"
    SNAPSHOT_EXPIRED = "E_SNAPSHOT_EXPIRED"
    IDEMPOTENCY_CONFLICT = "E_IDEMPOTENCY_CONFLICT"
    CURSOR_EXPIRED = "E_CURSOR_EXPIRED"
    PID_UNAVAILABLE = "E_PID_UNAVAILABLE"
    UNAUTHORIZED = "E_UNAUTHORIZED"
    FORBIDDEN = "E_FORBIDDEN"
    LIMIT_PANES = "E_LIMIT_PANES"
    LIMIT_RATE = "E_LIMIT_RATE"
    DIALOG_OPEN = "E_DIALOG_OPEN"
    DRAFT_PRESENT = "E_DRAFT_PRESENT"
    TARGET_EXISTS = "E_TARGET_EXISTS"
    NOT_FOUND = "E_NOT_FOUND"
    REF_NOT_FOUND = "E_REF_NOT_FOUND"
    REF_AMBIGUOUS = "E_REF_AMBIGUOUS"
    TARGET_NOT_FOUND = "E_TARGET_NOT_FOUND"
    TARGET_UNREACHABLE = "E_TARGET_UNREACHABLE"


# code → (exit status of a command, HTTP status)
STATUSES: Final[dict[ErrorCode, tuple[int, int]]] = {
    ErrorCode.INTERNAL: (1, 500),
    ErrorCode.STORE: (1, 503),
    ErrorCode.TIMEOUT: (1, 503),
    ErrorCode.UNSUPPORTED: (1, 400),
    ErrorCode.TOO_LARGE: (1, 413),
    ErrorCode.EVENT_INVALID: (1, 400),
    ErrorCode.ALREADY_RUNNING: (1, 409),
    ErrorCode.DELIVERY_UNCERTAIN: (1, 409),
    ErrorCode.AGENT_FAILED: (1, 503),
    ErrorCode.USAGE: (2, 400),
    ErrorCode.CONFIG: (2, 400),
    ErrorCode.REF_INVALID: (2, 400),
    ErrorCode.REF_INVALID_ENCODING: (2, 400),
    ErrorCode.CURSOR_INVALID: (2, 400),
    ErrorCode.DAEMON_UNAVAILABLE: (3, 503),
    ErrorCode.RUNTIME_STALE: (4, 409),
    ErrorCode.PRECONDITION_FAILED: (4, 412),
    ErrorCode.SNAPSHOT_EXPIRED: (4, 410),
    ErrorCode.IDEMPOTENCY_CONFLICT: (4, 409),
    ErrorCode.CURSOR_EXPIRED: (4, 410),
    ErrorCode.PID_UNAVAILABLE: (4, 409),
    ErrorCode.UNAUTHORIZED: (4, 401),
    ErrorCode.FORBIDDEN: (4, 403),
    ErrorCode.LIMIT_PANES: (4, 429),
    ErrorCode.LIMIT_RATE: (4, 429),
    ErrorCode.DIALOG_OPEN: (4, 409),
    ErrorCode.DRAFT_PRESENT: (4, 409),
    ErrorCode.TARGET_EXISTS: (4, 409),
    ErrorCode.NOT_FOUND: (5, 404),
    ErrorCode.REF_NOT_FOUND: (5, 404),
    ErrorCode.REF_AMBIGUOUS: (5, 409),
    ErrorCode.TARGET_NOT_FOUND: (5, 404),
    ErrorCode.TARGET_UNREACHABLE: (6, 503),
}


# code → (JSON-RPC number, its name), as a refused MCP tool call carries it in its `_meta`. The orchestrator protocol
# names -32602 and -32000 to -32002; every other code has a number of its own in the range that JSON-RPC reserves for
# servers. Programs sort by these numbers: none is given to another code. -32603 is for faults of agtmux itself alone.
JSONRPC_ERRORS: Final[dict[ErrorCode, tuple[int, str]]] = {
    ErrorCode.INTERNAL: (-32603, "Internal error"),
    ErrorCode.USAGE: (-32602, "Invalid params"),
    ErrorCode.REF_INVALID: (-32602, "Invalid params"),
    ErrorCode.REF_INVALID_ENCODING: (-32602, "Invalid params"),
    ErrorCode.TOO_LARGE: (-32602, "Invalid params"),
    ErrorCode.NOT_FOUND: (-32602, "Invalid params"),
    ErrorCode.REF_NOT_FOUND: (-32000, "Agent not found"),
    ErrorCode.REF_AMBIGUOUS: (-32000, "Agent not found"),
    ErrorCode.RUNTIME_STALE: (-32000, "Agent not found"),
    ErrorCode.TIMEOUT: (-32001, "Timeout"),
    ErrorCode.TARGET_UNREACHABLE: (-32001, "Timeout"),
    ErrorCode.LIMIT_RATE: (-32002, "Rate limit"),
    ErrorCode.LIMIT_PANES: (-32002, "Rate limit"),
    ErrorCode.FORBIDDEN: (-32003, "Forbidden"),
    ErrorCode.UNAUTHORIZED: (-32004, "Unauthorized"),
    ErrorCode.UNSUPPORTED: (-32005, "Unsupported"),
    ErrorCode.PRECONDITION_FAILED: (-32006, "Precondition failed"),
    ErrorCode.SNAPSHOT_EXPIRED: (-32007, "Snapshot expired"),
    ErrorCode.IDEMPOTENCY_CONFLICT: (-32008, "Idempotency conflict"),
    ErrorCode.PID_UNAVAILABLE: (-32009, "Process unknown"),
    ErrorCode.DIALOG_OPEN: (-32010, "Dialog open"),
    ErrorCode.DRAFT_PRESENT: (-32011, "Draft present"),
    ErrorCode.DELIVERY_UNCERTAIN: (-32012, "Delivery uncertain"),
    ErrorCode.AGENT_FAILED: (-32013, "Agent failed"),
    ErrorCode.TARGET_NOT_FOUND: (-32014, "Target not found"),
    ErrorCode.TARGET_EXISTS: (-32015, "Target exists"),
    ErrorCode.CURSOR_INVALID: (-32016, "Cursor invalid"),
    ErrorCode.CURSOR_EXPIRED: (-32017, "Cursor expired"),
    ErrorCode.EVENT_INVALID: (-32018, "Event invalid"),
    ErrorCode.CONFIG: (-32019, "Settings invalid"),
    ErrorCode.STORE: (-32020, "Database failed"),
    ErrorCode.ALREADY_RUNNING: (-32021, "Already running"),
    ErrorCode.DAEMON_UNAVAILABLE: (-32022, "Daemon unavailable"),
}


class AgtmuxError(Exception):
    """Something that was asked for did not happen; says which thing, why, and what to do."""

    def __init__(self, code: ErrorCode, message: str, details: dict[str, object] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details or {}

    @property
    def exit_status(self) -> int:
        return STATUSES[self.code][0]

    @property
    def http_status(self) -> int:
        return STATUSES[self.code][1]

    @property
    def jsonrpc(self) -> tuple[int, str]:
        """The number and the name that it has as a JSON-RPC error."""
        return JSONRPC_ERRORS[self.code]

    def as_json(self) -> dict[str, object]:
        """The one error shape, the same over HTTP and on standard output."""
        return {"error": {"code": str(self.code), "message": self.message, "details": self.details}}

    @classmethod
    def from_json(cls, body: object) -> AgtmuxError | None:
        """The error a response carries, or None if it carries none that we know."""
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict):
            return None
        try:
            code = ErrorCode(str(error.get("code")))
        except ValueError:
            code = ErrorCode.INTERNAL
        details = error.get("details")
        return cls(code, str(error.get("message", "")), details if isinstance(details, dict) else None)
