"""The app without a desktop: a screen and a system that write down what they are asked for."""

import threading

from AgtmuxBar.settings import Surroundings
from AgtmuxBar.tree import Menu
from support.home import PATIENCE, Home, event


class Screen:
    """A renderer that keeps what it is told, on a thread of its own."""

    def __init__(self):
        self.menu: Menu | None = None
        self.shown = {}
        self.told = []
        self.menus = 0
        self.is_ended = False
        self.threads = set()
        self._lock = threading.Lock()

    def call(self, function):
        # One at a time, as a real one would.
        with self._lock:
            self.threads.add(threading.current_thread().name)
            function()

    def show(self, menu):
        assert menu != self.menu
        self.menu = menu
        self.menus += 1

    def notify(self, notification):
        self.shown[notification.key] = notification

    def withdraw(self, key):
        del self.shown[key]

    def tell(self, title, text):
        self.told.append((title, text))

    def end(self):
        self.is_ended = True

    def item(self, start: str):
        return next((item for item in self.menu.walk() if item.key.startswith(start)), None) if self.menu else None


class Desktop:
    def __init__(self):
        self.opened = []
        self.copied = []
        self.fronted = ()
        # Whatever is asked of it waits for these.
        self.may_describe = threading.Event()
        self.may_look = threading.Event()
        self.may_describe.set()
        self.may_look.set()

    def surroundings(self):
        assert self.may_describe.wait(PATIENCE)
        return Surroundings()

    def command(self):
        return ["agtmux"]

    def start_daemon(self):
        return False

    def open_terminal(self, argv, settings, *, stays=False):
        self.opened.append(list(argv))

    def copy(self, text):
        self.copied.append(text)

    def looked_at(self, targets):
        assert self.may_look.wait(PATIENCE)
        return self.fronted


def report(home: Home, envelope: dict) -> None:
    assert home.ask("POST", "/v1/events", envelope).json["status"] == "applied"


def asks(home: Home, what: str = "make deploy") -> None:
    payload = {"reason_code": "gate", "attention": {"kind": "approval", "summary": what}}
    report(home, event("%0", "state.waiting_approval", raw_payload=payload))
