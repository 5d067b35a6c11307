"""What a pane shows: from a capture with its colours to a verdict, by structure and by each agent's own rules."""
