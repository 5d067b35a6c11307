"""`python -m AgtmuxBar.linux`: the tray, until it is left."""

from __future__ import annotations

import sys

from AgtmuxBar.linux.tray import main

sys.exit(main())
