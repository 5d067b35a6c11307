"""Scripted agents in a tmux server of their own: paint like an agent, report through the real hook, need no account."""
