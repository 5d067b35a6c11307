"""Registering agtmux-hook in the agents' own settings files, and taking it out again to the byte."""
