"""Where another machine says that a pane is: nothing is taken from which another command could be made."""

import msgspec
import pytest

from agtmux.domain.errors import AgtmuxError
from agtmux.targets.messages import Placed, answer

TRUE = {
    "tmux": "/usr/bin/tmux",
    "socket": "/tmp/a b/default",
    "session_id": "$1",
    "window_id": "@2",
    "client": "/dev/pts/3",
}


def said(**lies: object) -> Placed:
    return answer(msgspec.Raw(msgspec.json.encode({**TRUE, **lies})), Placed)


def test_the_truth_is_taken():
    assert said().session_id == "$1"
    assert said(client="").client == ""


@pytest.mark.parametrize(
    "lie",
    [
        {"session_id": "$1' ; kill-server ; '"},
        {"session_id": "work"},
        {"session_id": "$1\n"},
        {"window_id": "@2.%9"},
        {"window_id": ""},
        {"client": "/dev/pts/3' ; kill-server ; '"},
        {"client": "/dev/\x1b[2J"},
        {"tmux": "-oProxyCommand=x"},
        {"tmux": "tmux"},
        {"tmux": "/usr/bin/tmux\x1b[2J"},
        {"socket": "relative"},
        {"socket": "/tmp/\r\nx"},
        {"socket": None},
    ],
)
def test_lies_are_not(lie: dict[str, object]):
    with pytest.raises(AgtmuxError):
        said(**lie)
