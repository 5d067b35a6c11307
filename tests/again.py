"""The tests that failed in the last run, each alone: `make again`.

A run of everything shares two cores among hundreds of daemons, browsers and agents, and a machine that stands still
for seconds fails what is right. So a few failures get a second hearing, alone and three times over, with the same
seeds and the examples that hypothesis has kept. Whoever passes is named all the same: it is a bug to be found, in the
test if not in the product.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TIMES = 3
# More than these were not the machine's fault.
MOST = 4

CACHE = Path(".pytest_cache/v")
FAILED = CACHE / "cache/lastfailed"
STATUS = CACHE / "agtmux/exitstatus"
SEED = CACHE / "agtmux/seed"


def main() -> int:
    if read(STATUS) != 1:
        print("the last run did not come to its end, or failed in nothing")
        return 1
    names = sorted(read(FAILED) or ())
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} tests failed; from 1 to {MOST} are tried again")
        return 1
    print(f"tried again, alone, {TIMES} times: ", *names, sep="\n  ", flush=True)
    env = os.environ | {"AGTMUX_TEST_SEED": str(read(SEED))}
    for _ in range(TIMES):
        # Without the cache: what failed beside others stays written down.
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
        if subprocess.run(words, env=env).returncode != 0:
            return 1
    # Once more at the end of all output, which is what is read.
    print(f"{len(names)} failed beside others and passed alone, each a bug to be found: ", *names, sep="\n  ")
    return 0


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8")) if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
