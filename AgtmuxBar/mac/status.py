"""The item in the menu bar: a shape for each state of things, and how many wait."""

from __future__ import annotations

from typing import Any, Final

from AppKit import NSImage, NSImageLeading

from AgtmuxBar import icons
from AgtmuxBar.mac.menu import encodable
from AgtmuxBar.tree import Menu

# By `Menu.icon`: Apple's symbol, each in macOS 11 and newer and of another shape. Without it, our own drawing.
SYMBOLS: Final = {
    "idle": "terminal",
    "running": "ellipsis.circle",
    "waiting": "exclamationmark.bubble.fill",
    "down": "bolt.slash",
}
# Points, in which the menu bar is 22 high.
_SIZE: Final = (18.0, 18.0)


class StatusItem:
    def __init__(self, item: Any) -> None:
        """`item` is rumps' NSStatusItem."""
        self._button = item.button()
        self._button.setImagePosition_(NSImageLeading)
        # So that the place that the user has dragged it to is remembered.
        item.setAutosaveName_("agtmux")
        self._shown: tuple[str, str, str] | None = None

    def show(self, menu: Menu) -> None:
        wanted = (menu.icon, menu.title, menu.description)
        if wanted == self._shown:
            return
        if self._shown is None or self._shown[0] != menu.icon:
            self._button.setImage_(image(menu.icon))
        # Some room, since the title is right beside the image.
        self._button.setTitle_(encodable(f" {menu.title}" if menu.title else ""))
        self._button.setToolTip_(encodable(menu.description))
        self._button.setAccessibilityLabel_(encodable(menu.description))
        self._shown = wanted


def image(icon: str) -> Any:
    """A template: macOS paints it in the colour that the menu bar needs."""
    # How things are is told by the button's label. Of an image it would be told for as long as the image stays.
    made = NSImage.imageWithSystemSymbolName_accessibilityDescription_(SYMBOLS[icon], "agtmux")
    if made is None:
        made = drawing(icon)
    made.setTemplate_(True)
    return made


def drawing(icon: str) -> Any:
    """Our own, twice as fine as points are, for screens that show it."""
    pixels = round(_SIZE[0] * 2)
    made = NSImage.alloc().initWithData_(icons.png(icons.template(icon, pixels), pixels))
    made.setSize_(_SIZE)
    return made
