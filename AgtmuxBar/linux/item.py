"""The icon in the panel: a StatusNotifierItem, announced again whenever the panel that shows it comes anew."""

from __future__ import annotations

import os
from typing import Any, Final

from jeepney import DBusAddress

from AgtmuxBar.icons import argb
from AgtmuxBar.linux import dbusmenu
from AgtmuxBar.linux.bus import Bus, Reply
from AgtmuxBar.tree import Menu

PATH: Final = "/StatusNotifierItem"
INTERFACE: Final = "org.kde.StatusNotifierItem"
WATCHER: Final = "org.kde.StatusNotifierWatcher"
_WATCHER: Final = DBusAddress("/StatusNotifierWatcher", WATCHER, WATCHER)
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_INTROSPECTABLE: Final = "org.freedesktop.DBus.Introspectable"
# What panels draw at one and two times their usual height.
_SIZES: Final = (22, 32, 44)
# Some panels ask first what there is. Methods are few, and their clicks open the menu by themselves.
_XML: Final = f"""<node><interface name="{INTERFACE}">
<property name="Status" type="s" access="read"/><property name="Menu" type="o" access="read"/>
<property name="IconPixmap" type="a(iiay)" access="read"/><property name="ToolTip" type="(sa(iiay)ss)" access="read"/>
<signal name="NewIcon"/><signal name="NewAttentionIcon"/><signal name="NewToolTip"/>
<signal name="NewStatus"><arg type="s"/></signal></interface></node>"""


class TrayItem:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._name = f"org.kde.StatusNotifierItem-{os.getpid()}-1"
        self._icon: tuple[str, int] = ("down", 0)
        self._status = "Active"
        self._tip = ""
        bus.serve(PATH, INTERFACE, lambda *_: ("", ()))
        bus.serve(PATH, _PROPERTIES, self._answer_property)
        bus.serve(PATH, _INTROSPECTABLE, lambda *_: ("s", (_XML,)))

    def announce(self) -> None:
        self._bus.own(self._name)
        self._bus.follow_owner(WATCHER, self._register)

    def _register(self, owner: str) -> None:
        if owner:
            self._bus.call(_WATCHER, "RegisterStatusNotifierItem", "s", self._name)

    def show(self, menu: Menu) -> None:
        icon = menu.icon, int(menu.title) if menu.title.isdecimal() else 0
        status = "NeedsAttention" if menu.icon == "waiting" else "Active"
        # Panels write the title above it.
        tip = menu.description.removeprefix("agtmux: ")
        signals: list[tuple[str, str, tuple[str, ...]]] = []
        if icon != self._icon:
            signals += [("NewIcon", "", ()), ("NewAttentionIcon", "", ())]
        if status != self._status:
            signals.append(("NewStatus", "s", (status,)))
        if tip != self._tip:
            signals.append(("NewToolTip", "", ()))
        self._icon, self._status, self._tip = icon, status, tip
        for name, signature, values in signals:
            self._bus.emit(PATH, INTERFACE, name, signature, *values)

    def _answer_property(self, method: str, arguments: tuple[Any, ...]) -> Reply:
        properties = self._properties()
        match method, arguments:
            case "GetAll", (_,):
                return "a{sv}", (properties,)
            case "Get", (_, name) if name in properties:
                return "v", (properties[name],)
            case _:
                return None

    def _properties(self) -> dict[str, tuple[str, Any]]:
        icon, count = self._icon
        drawn = [(size, size, argb(icon, size, count)) for size in _SIZES]
        return {
            "Category": ("s", "ApplicationStatus"),
            "Id": ("s", "agtmux"),
            "Title": ("s", "agtmux"),
            "Status": ("s", self._status),
            "WindowId": ("i", 0),
            "IconName": ("s", ""),
            "IconPixmap": ("a(iiay)", drawn),
            "OverlayIconName": ("s", ""),
            "OverlayIconPixmap": ("a(iiay)", []),
            "AttentionIconName": ("s", ""),
            "AttentionIconPixmap": ("a(iiay)", drawn),
            "AttentionMovieName": ("s", ""),
            "IconThemePath": ("s", ""),
            "ToolTip": ("(sa(iiay)ss)", ("", [], "agtmux", self._tip)),
            "ItemIsMenu": ("b", True),
            "Menu": ("o", dbusmenu.PATH),
        }
