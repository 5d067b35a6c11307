"""What rumps and the app use of AppKit, over the stand-in. All of it is for the main thread alone."""

from __future__ import annotations

from Foundation import NSNotificationCenter
from standin import NSObject, method_name, world

NSKeyDown = 10
NSCommandKeyMask = 1 << 20
NSEventModifierFlagCommand = 1 << 20
NSEventModifierFlagOption = 1 << 19
NSVariableStatusItemLength = -1.0
NSImageLeading = 7
NSControlStateValueOn = 1
NSControlStateValueOff = 0
NSApplicationActivationPolicyAccessory = 1
NSAlertFirstButtonReturn = 1000
NSAlertSecondButtonReturn = 1001
NSAlertThirdButtonReturn = 1002
NSPasteboardTypeString = "public.utf8-plain-text"
NSWorkspaceWillSleepNotification = "NSWorkspaceWillSleepNotification"
NSWorkspaceDidWakeNotification = "NSWorkspaceDidWakeNotification"


def NSSize(width, height):
    return (width, height)


def _text(value, what):
    if not isinstance(value, str):
        raise world().offend(f"{what} is {value!r}, which is no string", "NSInvalidArgumentException")
    # As PyObjC does on the way to an NSString.
    value.encode("utf-8")
    return value


class NSImage(
    NSObject, is_native=True, properties="size scalesWhenResized template:isTemplate accessibilityDescription"
):
    def initByReferencingFile_(self, path):
        self._values["source"] = str(path)
        return self

    def initWithData_(self, content):
        # nil for what is no image.
        self._values["source"] = content
        return self if content.startswith(b"\x89PNG\r\n\x1a\n") else None

    @classmethod
    def imageWithSystemSymbolName_accessibilityDescription_(cls, name, description):
        if name in world().missing_symbols:
            return None
        made = cls.alloc().init()
        made._values.update(source=f"symbol:{name}", accessibilityDescription=description)
        return made


class NSMenu(NSObject, is_native=True, on_main=True, properties="title autoenablesItems", weak="delegate supermenu"):
    def init(self):
        self._values.update(items=[], title="", autoenablesItems=True)
        return self

    def addItem_(self, item):
        self.insertItem_atIndex_(item, len(self._values["items"]))

    def insertItem_atIndex_(self, item, index):
        if not isinstance(item, NSMenuItem):
            raise world().offend(f"{item!r} is no menu item", "NSInvalidArgumentException")
        if item._values["menu"] is not None:
            raise world().offend("Item to be inserted into menu already is in another menu")
        if not 0 <= index <= len(self._values["items"]):
            raise world().offend(f"index {index} is beyond the menu's end", "NSRangeException")
        self._values["items"].insert(index, item)
        item._values["menu"] = self
        world().changes.append(("NSMenu", "insertItem_atIndex_"))

    def removeItem_(self, item):
        if item not in self._values["items"]:
            raise world().offend("Removing an item that is not in the menu")
        self._values["items"].remove(item)
        item._values["menu"] = None
        world().changes.append(("NSMenu", "removeItem_"))

    def removeAllItems(self):
        for item in list(self._values["items"]):
            self.removeItem_(item)

    def indexOfItem_(self, item):
        items = self._values["items"]
        return items.index(item) if item in items else -1

    def itemArray(self):
        return list(self._values["items"])

    def numberOfItems(self):
        return len(self._values["items"])


class NSMenuItem(
    NSObject,
    is_native=True,
    on_main=True,
    properties="title! action keyEquivalent keyEquivalentModifierMask image state toolTip view menu! submenu!"
    " hidden:isHidden alternate:isAlternate enabled:isEnabled",
    weak="target",
):
    def init(self):
        self._values.update(title="NSMenuItem", keyEquivalent="", state=0, menu=None, submenu=None, toolTip=None)
        self._values.update(hidden=False, enabled=True, alternate=False, is_separator=False)
        self._values["keyEquivalentModifierMask"] = NSEventModifierFlagCommand
        return self

    def initWithTitle_action_keyEquivalent_(self, title, action, key):
        self.init()
        self._values.update(title=_text(title, "a title"), action=action, keyEquivalent=_text(key, "a key"))
        return self

    @classmethod
    def separatorItem(cls):
        made = cls.alloc().init()
        made._values.update(is_separator=True, title="")
        return made

    def isSeparatorItem(self):
        return self._values["is_separator"]

    def isEnabled(self):
        menu = self._values["menu"]
        if menu is None or not menu.autoenablesItems():
            return self._values["enabled"]
        # What AppKit makes of it by itself, whatever was set.
        action, target = self._values.get("action"), self._values.get("target")
        return self.hasSubmenu() or bool(action and target and hasattr(target(), method_name(action)))

    def hasSubmenu(self):
        return self._values["submenu"] is not None

    def setTitle_(self, title):
        self._values["title"] = _text(title, "a title")
        world().changes.append(("NSMenuItem", "setTitle_"))

    def setSubmenu_(self, menu):
        before = self._values["submenu"]
        if menu is not None and menu._values.get("owner") not in (None, self):
            raise world().offend("menu is already the submenu of another item")
        if before is not None:
            before._values["owner"] = None
        self._values["submenu"] = menu
        if menu is not None:
            menu._values["owner"] = self
        world().changes.append(("NSMenuItem", "setSubmenu_"))


class NSStatusBarButton(
    NSObject,
    is_native=True,
    on_main=True,
    properties="title! image imagePosition toolTip accessibilityLabel",
):
    def setTitle_(self, title):
        self._values["title"] = _text(title, "a title")
        world().changes.append(("NSStatusBarButton", "setTitle_"))


class NSStatusItem(
    NSObject, is_native=True, on_main=True, properties="menu length highlightMode autosaveName visible:isVisible"
):
    def init(self):
        self._values.update(button=NSStatusBarButton.alloc().init(), visible=True)
        self._values["button"].setTitle_("")
        return self

    def button(self):
        return self._values["button"]

    # Deprecated, and still what rumps calls.
    def setTitle_(self, title):
        self.button().setTitle_(title or "")

    def title(self):
        return self.button().title()

    def setImage_(self, image):
        self.button().setImage_(image)

    def image(self):
        return self.button().image()


class NSStatusBar(NSObject, is_native=True, on_main=True):
    @classmethod
    def systemStatusBar(cls):
        return cls._shared()

    def statusItemWithLength_(self, length):
        made = NSStatusItem.alloc().init()
        self._values.setdefault("items", []).append(made)
        return made

    def removeStatusItem_(self, item):
        self._values["items"].remove(item)


class NSTextField(NSObject, is_native=True, on_main=True, properties="stringValue placeholderString"):
    pass


class NSSecureTextField(NSTextField, is_native=True):
    pass


class NSSlider(NSObject, is_native=True, on_main=True, properties="minValue maxValue doubleValue"):
    pass


class NSButton(NSObject, is_native=True, on_main=True, properties="title toolTip state frame"):
    @classmethod
    def checkboxWithTitle_target_action_(cls, title, target, action):
        made = cls.alloc().init()
        made._values.update(title=_text(title, "a title"), state=0)
        return made


class NSStackView(NSObject, is_native=True, on_main=True, properties="orientation alignment spacing frame"):
    @classmethod
    def stackViewWithViews_(cls, views):
        made = cls.alloc().init()
        made._values["views"] = list(views)
        return made

    def fittingSize(self):
        return (320.0, 24.0 * len(self._values["views"]))

    def setFrameSize_(self, size):
        self._values["frame"] = size


class NSWindow(NSObject, is_native=True, on_main=True, properties="level"):
    pass


class NSAlert(
    NSObject,
    is_native=True,
    on_main=True,
    properties="messageText informativeText alertStyle icon accessoryView showsSuppressionButton",
):
    def init(self):
        self._values.update(buttons=[], window=NSWindow.alloc().init())
        return self

    def addButtonWithTitle_(self, title):
        made = NSButton.alloc().init()
        made.setTitle_(_text(title, "a title"))
        self._values["buttons"].append(made)
        return made

    def buttons(self):
        return list(self._values["buttons"])

    def window(self):
        return self._values["window"]

    def layout(self):
        pass

    def runModal(self):
        world().alerts.append(self)
        assert world().alert_answers, "an alert that nobody answers would stay for ever"
        answer = world().alert_answers.pop(0)
        return answer(self) if callable(answer) else answer


class NSPasteboard(NSObject, is_native=True, on_main=True):
    @classmethod
    def generalPasteboard(cls):
        return cls._shared()

    def clearContents(self):
        self._values.clear()
        return 1

    def setString_forType_(self, text, kind):
        self._values[kind] = _text(text, "what is copied")
        return True

    def stringForType_(self, kind):
        return self._values.get(kind)


class NSWorkspace(NSObject, is_native=True):
    @classmethod
    def sharedWorkspace(cls):
        return cls._shared()

    def notificationCenter(self):
        return self._values.setdefault("center", NSNotificationCenter.alloc().init())

    def openURL_(self, url):
        world().opened.append(url.absoluteString())
        return True


class NSApplication(NSObject, is_native=True, on_main=True, weak="delegate"):
    @classmethod
    def sharedApplication(cls):
        return cls._shared()

    def activateIgnoringOtherApps_(self, flag):
        world().changes.append(("NSApplication", "activateIgnoringOtherApps_"))

    def setActivationPolicy_(self, policy):
        self._values["policy"] = policy
        return True

    def activationPolicy(self):
        return self._values.get("policy", 0)

    def sendAction_to_from_(self, action, target, sender):
        return True

    def finishLaunching(self):
        self._tell("applicationDidFinishLaunching:")

    def terminate_(self, sender):
        self._tell("applicationWillTerminate:")
        world().loop.is_stopped = True

    def _tell(self, selector):
        delegate = self.delegate()
        if delegate is not None and delegate.respondsToSelector_(selector):
            getattr(delegate, method_name(selector))(None)
