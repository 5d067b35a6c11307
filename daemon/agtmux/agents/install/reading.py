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
        before = state.data[: error.start].decode("latin-1")
        raise refusal(path, "it is not UTF-8", *state.place(before)) from None


def not_understood(path: str, state: FileState | None, error: JsoncError) -> AgtmuxError:
    if state is not None and not state.data.decode("utf-8-sig").strip(" \t\r\n"):
        return AgtmuxError(
            ErrorCode.CONFIG, f"{path} is empty; write {{}} into it or remove it, and try again", {"path": path}
        )
    place = (error.line, error.column) if state is None else state.place(error.before)
    return refusal(path, error.problem, *place)


def refusal(path: str, problem: str, line: int, column: int) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.CONFIG,
        f"{path} cannot be read as settings: {problem} (line {line}, column {column}); it was left as it is, "
        "so mend it and try again",
        {"path": path, "line": line, "column": column},
    )


def link_note(path: str, state: FileState | None) -> list[str]:
    return [f"{path} is a symbolic link; the file is {state.target}."] if state and state.target else []
