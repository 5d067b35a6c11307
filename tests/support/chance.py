"""What random tests draw from: the seed that AGTMUX_TEST_SEED names, or any, and always printed."""

import os
import random


def any_seed() -> str:
    seed = os.environ.get("AGTMUX_TEST_SEED") or new_seed()
    print(f"AGTMUX_TEST_SEED={seed}")
    return seed


def new_seed() -> str:
    return f"{random.SystemRandom().getrandbits(32):08x}"
