"""The resident app: a menu in the menu bar or the tray, and notifications, over the daemon's API."""
