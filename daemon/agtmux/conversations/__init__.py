"""What was asked and answered, per pane and worktree."""
