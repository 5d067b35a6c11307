"""The resident app on macOS: a menu in the menu bar, notifications, and what only a Mac has to be asked for.

Only `rendering`, `menu`, `status`, `notifications`, `dialogs`, `loginitem` and `selftest` know Cocoa, and all but the
last two of those are for the main thread alone.
"""
