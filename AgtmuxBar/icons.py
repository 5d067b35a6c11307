"""The icons, drawn by rule: four shapes that differ without their colours, at any size, and a count that can be read.

Shapes are distances to an edge in a square of 16 units, so that one description gives sharp pixels at every size.
Nothing here knows a toolkit. `python -m AgtmuxBar.icons FOLDER` writes them as PNG files.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

# How far a point is from a shape, in units; negative inside.
Distance = Callable[[float, float], float]
Colour = tuple[int, int, int]

UNITS: Final = 16.0
_WHITE: Final = (0xF6, 0xF6, 0xF6)
_DARK: Final = (0x1A, 0x1A, 0x1A)
_AMBER: Final = (0xFF, 0xB3, 0x1A)
_GREY: Final = (0xA8, 0xA8, 0xA8)
# A dark rim, so that a light shape is seen on a light panel too.
_RIM: Final = 0.9
_RIM_OPACITY: Final = 0.7

# Three columns and five rows a digit, from the top.
_DIGITS: Final = {
    "0": "111101101101111",
    "1": "010110010010111",
    "2": "111001111100111",
    "3": "111001111001111",
    "4": "101101111001001",
    "5": "111100111001111",
    "6": "111100111101111",
    "7": "111001001010010",
    "8": "111101111101111",
    "9": "111101111001111",
    "!": "010010010000010",
}
# Of more than this, nobody counts.
_MOST: Final = 99


def pixels(icon: str, size: int, count: int = 0) -> bytes:
    """Red, green, blue and opacity of each pixel, row by row, for a panel of any colour."""
    body, cut, colour = _shapes(icon, count)
    scale = UNITS / size
    drawn = bytearray()
    for x, y in _points(size):
        whole = _cover(body(x, y), scale)
        hole = _cover(cut(x, y), scale)
        rim = _cover(body(x, y) - _RIM, scale) * _RIM_OPACITY
        # The rim lies below, and what is cut out shows it in full.
        shade = max(rim, whole * hole)
        ink = whole * (1 - hole)
        opacity = ink + shade * (1 - ink)
        drawn += bytes(_mixed(colour[part], _DARK[part], ink, opacity) for part in range(3))
        drawn.append(round(opacity * 255))
    return bytes(drawn)


def template(icon: str, size: int) -> bytes:
    """The same shape as opacity alone, for a menu bar that colours it itself."""
    body, cut, _ = _shapes(icon, 0)
    scale = UNITS / size
    drawn = bytearray()
    for x, y in _points(size):
        opacity = _cover(body(x, y), scale) * (1 - _cover(cut(x, y), scale))
        drawn += bytes((0, 0, 0, round(opacity * 255)))
    return bytes(drawn)


@cache
def argb(icon: str, size: int, count: int = 0) -> bytes:
    """In the order that a tray takes them."""
    rgba = pixels(icon, size, min(count, _MOST))
    return b"".join(bytes((rgba[at + 3], *rgba[at : at + 3])) for at in range(0, len(rgba), 4))


def png(rgba: bytes, size: int) -> bytes:
    rows = b"".join(b"\0" + rgba[row * size * 4 : (row + 1) * size * 4] for row in range(size))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    chunks = (struct.pack(">I", len(body)) + name + body + _checksum(name + body) for name, body in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


ICONS: Final = ("idle", "running", "waiting", "down")


def _shapes(icon: str, count: int) -> tuple[Distance, Distance, Colour]:
    """What is filled, what is cut out of it, and in which colour."""
    pane = _box(8, 8, 6.4, 6.4, 2.4)
    frame = _ring(pane, 1.7)
    if icon == "waiting":
        return pane, _written(str(count) if count else "!"), _AMBER
    if icon == "running":
        return _either(frame, _triangle((6.3, 4.9), (6.3, 11.1), (11.5, 8.0))), _nothing, _WHITE
    if icon == "down":
        return _either(frame, _line(2.2, 13.8, 13.8, 2.2, 0.95)), _nothing, _GREY
    # A prompt at rest.
    return _either(frame, _line(5.2, 10.6, 10.8, 10.6, 0.8)), _nothing, _WHITE


def _written(text: str) -> Distance:
    columns = len(text) * 4 - 1
    cell = min(2.0, 10.6 / columns)
    left, top = 8 - columns * cell / 2, 8 - 2.5 * cell
    cells = [
        # A little larger than its cell, or a seam would show between two.
        _box(left + (number * 4 + place % 3 + 0.5) * cell, top + (place // 3 + 0.5) * cell, cell * 0.54, cell * 0.54, 0)
        for number, char in enumerate(text)
        for place, is_set in enumerate(_DIGITS[char])
        if is_set == "1"
    ]
    return _either(*cells)


def _nothing(x: float, y: float) -> float:
    return UNITS


def _box(x: float, y: float, half_width: float, half_height: float, radius: float) -> Distance:
    def distance(at_x: float, at_y: float) -> float:
        across, down = abs(at_x - x) - half_width + radius, abs(at_y - y) - half_height + radius
        return math.hypot(max(across, 0), max(down, 0)) + min(max(across, down), 0) - radius

    return distance


def _ring(shape: Distance, width: float) -> Distance:
    return lambda x, y: abs(shape(x, y) + width / 2) - width / 2


def _line(x: float, y: float, to_x: float, to_y: float, radius: float) -> Distance:
    def distance(at_x: float, at_y: float) -> float:
        along_x, along_y = to_x - x, to_y - y
        share = ((at_x - x) * along_x + (at_y - y) * along_y) / (along_x**2 + along_y**2)
        share = min(1.0, max(0.0, share))
        return math.hypot(at_x - x - share * along_x, at_y - y - share * along_y) - radius

    return distance


def _triangle(*corners: tuple[float, float]) -> Distance:
    edges = list(zip(corners, corners[1:] + corners[:1], strict=True))

    def distance(x: float, y: float) -> float:
        return max(
            ((x - a_x) * (b_y - a_y) - (y - a_y) * (b_x - a_x)) / -math.hypot(b_x - a_x, b_y - a_y)
            for (a_x, a_y), (b_x, b_y) in edges
        )

    return distance


def _either(*shapes: Distance) -> Distance:
    return lambda x, y: min(shape(x, y) for shape in shapes)


def _cover(distance: float, scale: float) -> float:
    """How much of a pixel lies within."""
    return min(1.0, max(0.0, 0.5 - distance / scale))


def _mixed(above: int, below: int, ink: float, opacity: float) -> int:
    return round((above * ink + below * (opacity - ink)) / opacity) if opacity else 0


def _points(size: int) -> Iterator[tuple[float, float]]:
    scale = UNITS / size
    return (((column + 0.5) * scale, (row + 0.5) * scale) for row in range(size) for column in range(size))


def _checksum(chunk: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(chunk))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for icon in ICONS:
        for size in (22, 32, 48):
            (folder / f"{icon}-{size}.png").write_bytes(png(pixels(icon, size), size))
        for size in (18, 36):
            (folder / f"{icon}-template-{size}.png").write_bytes(png(template(icon, size), size))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
