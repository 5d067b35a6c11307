"""A conversation as a Markdown file. Pure: what was said is quoted as it is, so that nothing in it is taken for the
document's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agtmux.conversations.archive import Conversation
from agtmux.conversations.message import Message
from agtmux.domain.legible import printable
from agtmux.domain.timestamps import format_timestamp

_RUN: Final = re.compile(r"`{3,}")
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


def file_name(conversation: Conversation) -> str:
    """The same for the same conversation; by name in the order in which they began."""
    began = format_timestamp(conversation.started_at)[:19].replace(":", "").replace("-", "").replace("T", "-")
    agent = _NO_NAME.sub("-", conversation.agent_type)
    return f"{began}-{agent}-{conversation.conversation_id[:8]}.md"


def document(conversation: Conversation, messages: Sequence[Message], *, is_whole: bool = True) -> str:
    facts = {
        "Agent": conversation.agent_type,
        "Session": conversation.session_id,
        "Branch": conversation.branch,
        "Began": format_timestamp(conversation.started_at),
        "Taken from": conversation.source,
    }
    head = [f"- {name}: {_plain(printable(str(value)))}" for name, value in facts.items() if value]
    if not is_whole:
        head += ["", "What was said before is left out."]
    title = _plain(conversation.title) or "A conversation"
    return "\n".join([f"# {title}", "", *head, *map(_told, messages), ""])


def _told(message: Message) -> str:
    who = "You" if message.role == "user" else message.agent_type
    fence = "`" * max([3, *(len(run) + 1 for run in _RUN.findall(message.content))])
    more = "\n\n(It was longer than what is kept.)" if message.is_cut else ""
    return f"\n## {who}, {format_timestamp(message.at)[:19]}Z\n\n{fence}markdown\n{message.content}\n{fence}{more}"


def _plain(text: str) -> str:
    """A line with nothing in it that means something else in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&])", r"\\\1", text)
