"""Windows that wait for an answer. They open only for what the user has asked for, so they may come to the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from AppKit import (
    NSAlert,
    NSAlertFirstButtonReturn,
    NSApplication,
    NSButton,
    NSControlStateValueOff,
    NSControlStateValueOn,
    NSStackView,
)

from AgtmuxBar.mac.menu import encodable


@dataclass(frozen=True, slots=True)
class Choice:
    key: str
    label: str
    # What it changes and how to undo it, below the label.
    changes: str
    is_on: bool = True


def tell(title: str, text: str) -> None:
    _alert(title, text).runModal()


def choose(title: str, text: str, choices: Sequence[Choice], accept: str, decline: str) -> list[str] | None:
    """The keys of what was ticked, or None if it was declined."""
    alert = _alert(title, "\n\n".join([text, *(f"{choice.label}: {choice.changes}" for choice in choices)]))
    alert.addButtonWithTitle_(accept)
    alert.addButtonWithTitle_(decline)
    boxes = []
    for choice in choices:
        box = NSButton.checkboxWithTitle_target_action_(encodable(choice.label), None, None)
        box.setToolTip_(encodable(choice.changes))
        box.setState_(NSControlStateValueOn if choice.is_on else NSControlStateValueOff)
        boxes.append(box)
    stack = NSStackView.stackViewWithViews_(boxes)
    # 1 is vertical, and 5 the leading edge.
    stack.setOrientation_(1)
    stack.setAlignment_(5)
    # An alert leaves no room for a view without a frame.
    stack.setFrameSize_(stack.fittingSize())
    alert.setAccessoryView_(stack)
    if alert.runModal() != NSAlertFirstButtonReturn:
        return None
    return [choice.key for choice, box in zip(choices, boxes, strict=True) if box.state() == NSControlStateValueOn]


def _alert(title: str, text: str) -> NSAlert:
    # Without it, an app that is not in the Dock opens its windows behind all others.
    NSApplication.sharedApplication().activateIgnoringOtherApps_(True)
    alert = NSAlert.alloc().init()
    alert.setMessageText_(encodable(title))
    alert.setInformativeText_(encodable(text))
    return alert
