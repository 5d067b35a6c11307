"""An agent ends with its session, however that ends."""

from __future__ import annotations

import subprocess
import sys

from agtmux.chat.leash import Leash

HOLDS = """
import os, sys, time
from agtmux.chat.leash import Leash
Leash(int(sys.argv[1]))
print(flush=True)
time.sleep(60)
"""


def test_who_holds_it_is_killed_and_the_other_ends():
    agent = subprocess.Popen(["sleep", "60"])
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(agent.pid)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    assert agent.poll() is None
    holder.kill()
    holder.communicate()
    assert agent.wait(10) == -15


def test_who_is_released_lives_on():
    agent = subprocess.Popen(["sleep", "60"])
    leash = Leash(agent.pid)
    leash.release()
    assert leash._process.returncode == 0 and agent.poll() is None
    agent.kill()
    agent.wait()
