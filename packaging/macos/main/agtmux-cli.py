"""`agtmux` in the bundle. What starts it is bin/agtmux."""

import sys

from AgtmuxBar.mac import inside

inside.enter()

from agtmux.cli.main import main  # noqa: E402

sys.exit(main())
