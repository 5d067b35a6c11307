"""The tray of Linux desktops: StatusNotifierItem, dbusmenu and notifications over the session's D-Bus."""
