"""The app as a process of its own, over the stand-in: `python process.py BUNDLE LAUNCHD HOME [WORD]`.

It says `up` when its menu is. A line on standard input is the text of a menu item to choose.
"""

import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "cocoa"), str(HERE)]

import fetched  # noqa: E402

sys.path.append(str(fetched.rumps()))

from AppKit import NSStatusBar  # noqa: E402
from standin import world  # noqa: E402

from AgtmuxBar import single  # noqa: E402
from AgtmuxBar.mac.__main__ import run  # noqa: E402
from AgtmuxBar.mac.bundle import Bundle  # noqa: E402
from AgtmuxBar.mac.launchd import Launchd  # noqa: E402

bundle, launchd, home = map(Path, sys.argv[1:])


def launchctl(argv):
    command = [sys.executable, str(HERE / "launchctl.py"), *argv[1:]]
    return subprocess.run(
        command, env={"LAUNCHD": str(launchd), "HOME": str(home)}, capture_output=True, text=True, timeout=30
    )


def find(menu, text):
    for item in menu.itemArray():
        if text in item.title():
            return item
    return None


def script():
    (status,) = NSStatusBar.systemStatusBar()._values["items"]
    menu = status.menu()
    world().loop.until(lambda: find(menu, "Daemon") is not None and find(menu, "Start the daemon") is None, 60)
    print("up", flush=True)

    def choose(text):
        item = find(menu, text)
        item.target().callback_(item)

    def listen():
        for line in sys.stdin:
            world().loop.post(lambda line=line: choose(line.strip()))

    threading.Thread(target=listen, daemon=True).start()
    world().loop.until(lambda: world().loop.is_stopped, 60)


world().script = script
with single.only_one() as is_ours:
    if not is_ours:
        sys.exit("another one has the menu bar")
    run(Bundle(bundle), Launchd(home, launchctl))
