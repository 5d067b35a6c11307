"""The text of a settings file, or the error that says why it is none."""

from __future__ import annotations

from agtmux.agents.install.jsonc import JsoncError
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import FileState


def text_of(path: str, state: FileState | None) -> str | None:
    if state is None:
        return None
    try:
        return state.data.decode()
    except UnicodeDecodeError as error:
        line = state.data.count(b"\n", 0, error.start) + 1
        column = error.start - state.data.rfind(b"\n", 0, error.start)
        raise refusal(path, "it is not UTF-8", line, column) from None


def not_understood(path: str, text: str | None, error: JsoncError) -> AgtmuxError:
    if text is not None and not text.strip("\ufeff \t\r\n"):
        return AgtmuxError(
            ErrorCode.CONFIG, f"{path} is empty; write {{}} into it or remove it, and try again", {"path": path}
        )
    return refusal(path, error.problem, error.line, error.column)


def refusal(path: str, problem: str, line: int, column: int) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.CONFIG,
        f"{path} cannot be read as settings: {problem} (line {line}, column {column}); it was left as it is, "
        "so mend it and try again",
        {"path": path, "line": line, "column": column},
    )


def link_note(path: str, state: FileState | None) -> list[str]:
    return [f"{path} is a symbolic link; the file is {state.target}."] if state and state.target else []
