"""What Cocoa's stand-in is made of: objects with selectors, one main thread, a run loop with a clock of its own.

It is stricter than Cocoa. What a Mac would answer with a crash, a warning in a log or nothing at all is an error here:
a selector that nobody has, one called before `init` or off the main thread, a delegate that was collected, a Python
method whose arguments do not fit its selector, an attribute set on what is not ours.
"""

from __future__ import annotations

import functools
import heapq
import inspect
import itertools
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ObjCError(Exception):
    """PyObjC's `objc.error`: what Cocoa threw."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} - {reason}")
        self.name = name


class BadPrototypeError(Exception):
    """A Python method with more or fewer arguments than its selector has colons."""


class World:
    """All that a process has one of. A test begins with a new one."""

    def __init__(self) -> None:
        self.main_thread = threading.current_thread()
        self.singletons: dict[type, object] = {}
        # Class and selector of each call that changed something on the screen.
        self.changes: list[tuple[str, str]] = []
        # What was called where it must not be: an error that someone caught is still one.
        self.offences: list[str] = []
        self.loop = RunLoop()
        # Runs in place of Cocoa's event loop.
        self.script: Callable[[], object] | None = None
        self.bundle_identifier: str | None = "dev.agtmux.AgtmuxBar"
        self.bundle_path = "/Applications/AgtmuxBar.app"
        self.missing_symbols: set[str] = set()
        self.may_notify = True
        self.is_signed = True
        self.alert_answers: list[Callable[[object], int] | int] = []
        self.alerts: list[object] = []
        self.opened: list[str] = []
        self.login_status = 0
        self.login_refusal: str | None = None

    def offend(self, what: str, name: str = "NSInternalInconsistencyException") -> ObjCError:
        self.offences.append(what)
        return ObjCError(name, what)


class RunLoop:
    """Main-thread work in order, and timers by a clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.mode = "kCFRunLoopDefaultMode"
        self.is_stopped = False
        self._order = itertools.count()
        self._timers: list[tuple[float, int, object, str]] = []
        self._work: list[Callable[[], object]] = []
        self._changed = threading.Condition()

    def post(self, work: Callable[[], object]) -> None:
        with self._changed:
            self._work.append(work)
            self._changed.notify_all()

    def drain(self) -> int:
        """Does what was posted, on the thread that is the main one. How much that was."""
        done = 0
        while True:
            with self._changed:
                waiting, self._work = self._work, []
            if not waiting:
                return done
            for work in waiting:
                work()
                done += 1

    def until(self, condition: Callable[[], bool], limit: float = 10.0) -> None:
        """Drains, in real time, until what other threads post has made the condition true."""
        end = time.monotonic() + limit
        while True:
            self.drain()
            if condition():
                return
            assert time.monotonic() < end, "the condition did not come true"
            with self._changed:
                self._changed.wait_for(lambda: bool(self._work), 0.05)

    def add(self, timer: object, when: float, mode: str) -> None:
        heapq.heappush(self._timers, (when, next(self._order), timer, mode))

    def advance(self, seconds: float) -> None:
        """Lets the time pass. While a menu is open, only timers in the common modes fire."""
        end = self.now + seconds
        held = []
        self.drain()
        while self._timers and self._timers[0][0] <= end and not self.is_stopped:
            when, order, timer, mode = heapq.heappop(self._timers)
            if not timer.isValid():
                continue
            if mode not in (self.mode, "kCFRunLoopCommonModes"):
                held.append((when, order, timer, mode))
                continue
            self.now = max(self.now, when)
            if (again := timer.fired()) is not None:
                self.add(timer, self.now + again, mode)
            self.drain()
        for each in held:
            heapq.heappush(self._timers, each)
        self.now = max(self.now, end)


class DeadLoop:
    """The run loop of a thread that runs none: what is added to it never happens."""

    def __getattr__(self, name: str) -> object:
        raise world().offend(f"a run loop off the main thread, which never runs, was asked for {name}")


_current: list[World] = []


def world() -> World:
    if not _current:
        _current.append(World())
    return _current[-1]


@contextmanager
def new_world() -> Iterator[World]:
    """Whatever offended in it is an error at its end, whoever swallowed it before."""
    made = World()
    _current.append(made)
    try:
        yield made
    finally:
        _current.remove(made)
    assert not made.offences, f"Cocoa was used wrongly: {made.offences}"


def method_name(selector: object) -> str:
    """`callback:` is callback_; PyObjC takes bound methods and bytes too."""
    if isinstance(selector, bytes):
        selector = selector.decode()
    return selector.replace(":", "_") if isinstance(selector, str) else selector.__name__


def _is_selector(name: str, value: object) -> bool:
    return isinstance(value, types.FunctionType) and not name.startswith("_")


def _strict(owner: str, name: str, function: Callable[..., object], on_main: bool) -> Callable[..., object]:
    arity = name.count("_")

    @functools.wraps(function)
    def checked(self: object, *arguments: object) -> object:
        if on_main and threading.current_thread() is not world().main_thread:
            raise world().offend(f"-[{owner} {name}] off the main thread")
        if len(arguments) != arity:
            raise TypeError(f"Need {arity} arguments, got {len(arguments)}: {owner}.{name}")
        starts = name.startswith("init")
        if not starts and isinstance(self, _Object) and not self.__dict__.get("_is_initialised"):
            raise world().offend(f"-[{owner} {name}] before init")
        result = function(self, *arguments)
        if starts and result is not None:
            result.__dict__["_is_initialised"] = True
        return result

    return checked


def _check_prototype(owner: str, name: str, function: Callable[..., object]) -> None:
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    needed = sum(each.default is each.empty for each in parameters) - 1
    wanted = name.count("_")
    if not needed <= wanted <= len(parameters) - 1:
        raise BadPrototypeError(
            f"Objective-C expects {wanted} arguments, Python argument has {needed} arguments for {owner}.{name}"
        )


_classes: dict[str, type] = {}


class Meta(type):
    """Cocoa's own classes say `is_native` and get their checks here; all others are the app's."""

    def __new__(meta, name, bases, content, is_native=False, on_main=False, properties="", weak=""):
        if is_native:
            for each in properties.split():
                _property(content, each, is_weak=False)
            for each in weak.split():
                _property(content, each, is_weak=True)
            # A class's main thread is that of what it is made from.
            on_main = on_main or any(getattr(base, "_on_main", False) for base in bases)
            content["_on_main"] = on_main
            for key, value in list(content.items()):
                if _is_selector(key, value):
                    content[key] = _strict(name, key, value, on_main)
                elif isinstance(value, classmethod) and not key.startswith("_"):
                    content[key] = classmethod(_strict(name, key, value.__func__, on_main))
        else:
            if name in _classes:
                raise ObjCError("objc.error", f"{name} is overriding existing Objective-C class")
            for key, value in content.items():
                value = value.__func__ if isinstance(value, classmethod) else value
                if _is_selector(key, value) and key.endswith("_") and not hasattr(value, "is_python_method"):
                    _check_prototype(name, key, value)
        made = super().__new__(meta, name, bases, content)
        made._is_native = is_native
        _classes[name] = made
        return made

    def __init__(cls, name, bases, content, **_):
        super().__init__(name, bases, content)

    def __call__(cls, *arguments, **named):
        if arguments or named:
            raise TypeError(f"{cls.__name__}() takes no arguments; use alloc().init…")
        return cls.alloc().init()


def _property(content: dict[str, object], spec: str, *, is_weak: bool) -> None:
    """`title`, `hidden:isHidden` where the getter has another name, `size!` where there is only a getter."""
    spec, only_read = spec.removesuffix("!"), spec.endswith("!")
    name, _, getter = spec.partition(":")
    setter = f"set{name[0].upper()}{name[1:]}_"

    def get(self):
        value = self._values.get(name)
        if not is_weak or value is None:
            return value
        if (alive := value()) is None:
            raise world().offend(f"the {name} of a {type(self).__name__} was collected: Cocoa keeps it weakly")
        return alive

    def put(self, value):
        self._values[name] = weakref.ref(value) if is_weak and value is not None else value
        world().changes.append((type(self).__name__, setter))

    get.__name__, put.__name__ = getter or name, setter
    content.setdefault(getter or name, get)
    if not only_read:
        content.setdefault(setter, put)


class _Object:
    def __setattr__(self, name, value):
        if type(self)._is_native and name not in ("__class__",):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}': no such selector")


class NSObject(_Object, metaclass=Meta, is_native=True):
    @classmethod
    def alloc(cls):
        self = object.__new__(cls)
        self.__dict__.update(_values={}, _is_initialised=False)
        return self

    def init(self):
        return self

    @classmethod
    def new(cls):
        return cls.alloc().init()

    def respondsToSelector_(self, selector):
        return callable(getattr(type(self), method_name(selector), None))

    def performSelectorOnMainThread_withObject_waitUntilDone_(self, selector, argument, must_wait):
        work = functools.partial(getattr(self, method_name(selector)), argument)
        if must_wait:
            raise world().offend("a thread that waits for the main one can wait for ever")
        world().loop.post(work)

    @classmethod
    def _shared(cls):
        """The one object of this class."""
        there = world().singletons
        if cls not in there:
            there[cls] = cls.alloc().init()
        return there[cls]


def class_named(name: str) -> type:
    return _classes[name]
