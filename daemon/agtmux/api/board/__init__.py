"""The door of the web page: a TCP listener that is there when somebody has asked for it, and who may come in."""
