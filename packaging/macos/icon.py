"""The app's icon, drawn by the same rules as those in the menu bar: `python packaging/macos/icon.py FILE.icns`."""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path

from AgtmuxBar import icons

# Apple's names for PNG pictures of so many pixels.
KINDS = {b"icp4": 16, b"icp5": 32, b"ic11": 32, b"ic12": 64, b"ic07": 128, b"ic08": 256, b"ic13": 256, b"ic09": 512}
# Of a side: the margin that Apple's grid leaves, the roundness of the corners, and what is drawn inside.
MARGIN, RADIUS, INNER = 100 / 1024, 185 / 1024, 0.5
TOP, BOTTOM, INK = (0x3A, 0x45, 0x57), (0x16, 0x1B, 0x24), (0xFF, 0xB3, 0x1A)


def picture(size: int) -> bytes:
    inner = round(size * INNER)
    mask = icons.template("waiting", inner)
    offset = (size - inner) // 2
    drawn = bytearray()
    for row in range(size):
        share = row / size
        ground = [round(a + (b - a) * share) for a, b in zip(TOP, BOTTOM, strict=True)]
        for column in range(size):
            at_x, at_y = column - offset, row - offset
            inside = 0 <= at_x < inner and 0 <= at_y < inner
            ink = mask[(at_y * inner + at_x) * 4 + 3] / 255 if inside else 0.0
            drawn += bytes(round(g + (i - g) * ink) for g, i in zip(ground, INK, strict=True))
            drawn.append(round(255 * _covered(column + 0.5, row + 0.5, size)))
    return bytes(drawn)


def _covered(x: float, y: float, size: int) -> float:
    half, radius = size * (0.5 - MARGIN), size * RADIUS
    across = max(abs(x - size / 2) - half + radius, 0)
    down = max(abs(y - size / 2) - half + radius, 0)
    return min(1.0, max(0.0, 0.5 - (math.hypot(across, down) - radius)))


def write(file: Path) -> None:
    pictures = {size: icons.png(picture(size), size) for size in set(KINDS.values())}
    body = b"".join(kind + struct.pack(">I", len(pictures[size]) + 8) + pictures[size] for kind, size in KINDS.items())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"icns" + struct.pack(">I", len(body) + 8) + body)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
