"""Git work trees, and the agents that are started and stopped in them, on whichever target they are."""
