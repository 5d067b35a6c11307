"""The app's own program in the bundle."""

import sys

from AgtmuxBar.mac.__main__ import main

sys.exit(main())
