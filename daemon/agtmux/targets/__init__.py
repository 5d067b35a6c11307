"""The executor contract: how a target is looked at, wherever it is."""
