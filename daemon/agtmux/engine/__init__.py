"""What an event does to a state: pure functions of (state, event, clock), replayable in any order."""
