"""PyObjCTools.AppHelper, over the stand-in: the test's script runs where Cocoa would wait for events."""

from AppKit import NSApplication
from standin import world


def callAfter(function, *arguments, **named):
    world().loop.post(lambda: function(*arguments, **named))


def runEventLoop():
    NSApplication.sharedApplication().finishLaunching()
    world().loop.drain()
    if world().script is not None:
        world().script()


def stopEventLoop():
    NSApplication.sharedApplication().terminate_(None)
