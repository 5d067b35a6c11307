"""What rumps and the app use of Foundation, over the stand-in."""

from __future__ import annotations

import threading

from standin import DeadLoop, NSObject, method_name, world

NSDefaultRunLoopMode = "kCFRunLoopDefaultMode"
NSRunLoopCommonModes = "kCFRunLoopCommonModes"
# The same number in two names, as in Foundation.
NSApplicationSupportDirectory = 14


def NSMakeRect(x, y, width, height):
    return ((x, y), (width, height))


def NSLog(text, *arguments):
    print(text % arguments if arguments else text)


def NSSearchPathForDirectoriesInDomains(directory, mask, expand):
    raise world().offend("the folder Application Support was asked for, where nothing of ours belongs")


class NSString(NSObject, is_native=True):
    def initWithString_(self, text):
        return text


class NSData(NSObject, is_native=True):
    def initWithData_(self, content):
        return content


class NSMutableDictionary(NSObject, is_native=True):
    def setDictionary_(self, content):
        self._values.clear()
        self._values.update(content)


class NSSet(NSObject, is_native=True):
    @classmethod
    def setWithArray_(cls, members):
        return frozenset(members)


class NSURL(NSObject, is_native=True, properties="absoluteString!"):
    @classmethod
    def URLWithString_(cls, text):
        made = cls.alloc().init()
        made._values["absoluteString"] = text
        return made

    @classmethod
    def fileURLWithPath_(cls, path):
        return cls.URLWithString_(f"file://{path}")


class NSUserDefaults(NSObject, is_native=True):
    @classmethod
    def standardUserDefaults(cls):
        return cls._shared()

    def stringForKey_(self, key):
        return self._values.get(key)

    def boolForKey_(self, key):
        return bool(self._values.get(key))

    def setBool_forKey_(self, value, key):
        self._values[key] = bool(value)


class NSBundle(NSObject, is_native=True):
    @classmethod
    def mainBundle(cls):
        return cls._shared()

    def bundleIdentifier(self):
        return world().bundle_identifier

    def bundlePath(self):
        return world().bundle_path


class NSError(NSObject, is_native=True, properties="localizedDescription! code!"):
    @classmethod
    def _saying(cls, text, code=1):
        made = cls.alloc().init()
        made._values.update(localizedDescription=text, code=code)
        return made


class NSDate(NSObject, is_native=True):
    @classmethod
    def date(cls):
        return cls.dateWithTimeIntervalSinceNow_(0)

    @classmethod
    def dateWithTimeIntervalSinceNow_(cls, seconds):
        made = cls.alloc().init()
        made._values["at"] = world().loop.now + seconds
        return made

    def timeIntervalSinceNow(self):
        return self._values["at"] - world().loop.now


class NSTimer(NSObject, is_native=True, properties="timeInterval! tolerance"):
    # Cocoa's timers keep their target alive until they are invalidated.
    def initWithFireDate_interval_target_selector_userInfo_repeats_(self, date, every, target, selector, info, again):
        self._values.update(at=date._values["at"], timeInterval=every, target=target, again=again, valid=True)
        self._values["selector"] = method_name(selector)
        return self

    def isValid(self):
        return self._values["valid"]

    def invalidate(self):
        self._values.update(valid=False, target=None)

    def fired(self):
        """For the run loop: when it wants to fire again, in seconds."""
        getattr(self._values["target"], self._values["selector"])(self)
        if not self._values["again"]:
            self.invalidate()
        return self._values["timeInterval"] if self._values["valid"] else None


class NSRunLoop(NSObject, is_native=True):
    @classmethod
    def mainRunLoop(cls):
        return cls._shared()

    @classmethod
    def currentRunLoop(cls):
        return cls._shared() if threading.current_thread() is world().main_thread else DeadLoop()

    def addTimer_forMode_(self, timer, mode):
        world().loop.add(timer, timer._values["at"], mode)


class NSNotification(NSObject, is_native=True, properties="name! object! userInfo!"):
    pass


class NSNotificationCenter(NSObject, is_native=True):
    def addObserver_selector_name_object_(self, observer, selector, name, source):
        # Kept weakly since 10.11.
        import weakref

        self._values.setdefault("observers", []).append((weakref.ref(observer), method_name(selector), name))

    def removeObserver_(self, observer):
        kept = [each for each in self._values.get("observers", []) if each[0]() not in (None, observer)]
        self._values["observers"] = kept

    def postNotificationName_object_(self, name, source):
        note = NSNotification.alloc().init()
        note._values.update(name=name, object=source)
        for observer, selector, wanted in self._values.get("observers", []):
            if wanted != name:
                continue
            if (alive := observer()) is None:
                raise world().offend(f"the observer of {name} was collected")
            getattr(alive, selector)(note)
