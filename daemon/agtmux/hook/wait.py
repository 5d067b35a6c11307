"""Waiting for a decision that is made elsewhere, and handing it to the agent on its standard output.

Only for agents that show their dialog beside the hook, so that nobody is held up: whoever answers first, decides.
Asleep until the daemon answers, the daemon goes, or the agent does. Whatever is not a decision ends in silence, and
the dialog stays as it is.
"""

import posix
import select

from agtmux.probe.owners import connected

MAX_ANSWER = 1024 * 1024
CONNECT_SECONDS = 5.0


def hand_back(socket_path: bytes, event_id: str, agent: int) -> None:
    """`agent` is the descriptor of what the agent reads."""
    answer = decided(socket_path, event_id, agent)
    while answer:
        answer = answer[posix.write(agent, answer) :]


def decided(socket_path: bytes, event_id: str, agent: int) -> bytes:
    """What the agent is to be told; empty if nobody has decided and nobody will."""
    body = b'{"event_id":"%s"}' % event_id.encode()
    head = (
        b"POST /v1/decisions/wait HTTP/1.1\r\nHost: agtmux\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n"
    )
    daemon = connected(socket_path, CONNECT_SECONDS)
    daemon.sendall(head % len(body) + body)
    answer = b""
    watched = select.poll()
    watched.register(daemon.fileno(), select.POLLIN)
    # That nobody reads there any more is told unasked. An agent that was killed says nothing else.
    watched.register(agent, 0)
    while len(answer) < MAX_ANSWER:
        if any(descriptor == agent for descriptor, _ in watched.poll()):
            return b""
        chunk = daemon.recv(65536)
        if not chunk:
            return said(answer)
        answer += chunk
    return b""


def said(answer: bytes) -> bytes:
    """The decision in the daemon's whole answer. One that was cut short is none: it might be half of another."""
    # Not before it is needed: a process that sleeps for a day should be a small one.
    import json

    head, _, body = answer.partition(b"\r\n\r\n")
    if head[:7] != b"HTTP/1." or head[9:12] != b"200":
        return b""
    told = json.loads(body)["answer"]
    return told.encode() if isinstance(told, str) else b""
