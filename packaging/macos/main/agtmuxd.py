"""`agtmuxd` in the bundle: what launchd starts."""

import sys

from AgtmuxBar.mac import inside

inside.enter()

from agtmux.cli.main import agtmuxd  # noqa: E402

sys.exit(agtmuxd())
