"""Plain values and the rules that hold for each alone: states, events, refs, runtimes, errors. No I/O."""
