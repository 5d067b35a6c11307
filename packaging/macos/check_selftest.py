"""Whether a report of `AgtmuxBar --selftest` is that of a good bundle: `python check_selftest.py REPORT.json`."""

import json
import sys
from pathlib import Path

# What no bundle may fail at, wherever it runs. Signatures and permissions differ from machine to machine.
MUST_BE_OK = ("bundle", "environment of children", "tmux", "command line", "python", "symbols", "status item", "menu")

found = {each["name"]: each for each in json.loads(Path(sys.argv[1]).read_text("utf-8"))}
bad = [name for name in MUST_BE_OK if not (found.get(name) or {}).get("is_ok")]
for name in bad:
    print(f"{name}: {(found.get(name) or {}).get('saw', 'not in the report')}", file=sys.stderr)
sys.exit(1 if bad else 0)
