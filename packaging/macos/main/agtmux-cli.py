"""`agtmux` in the bundle. What starts it is bin/agtmux."""

from AgtmuxBar.mac import inside

inside.run("agtmux.cli.main", "main")
