"""`agtmuxd` in the bundle: what launchd starts."""

from AgtmuxBar.mac import inside

inside.run("agtmux.cli.main", "agtmuxd")
