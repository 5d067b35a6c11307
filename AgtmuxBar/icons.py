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
from dataclasses import dataclass
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
    blank = _blank(icon, size)
    drawn = bytearray(blank.drawn)
    # A count changes while somebody waits to see it: only what is written is drawn then.
    for at, hole in _holes(icon, size, count).items():
        drawn[at * 4 : at * 4 + 4] = _pixel(blank.colour, blank.covers[at], blank.rims[at], hole)
    return bytes(drawn)


def template(icon: str, size: int) -> bytes:
    """The same shape as opacity alone, for a menu bar that colours it itself."""
    holes = _holes(icon, size, 0)
    opacities = (cover * (1 - holes.get(at, 0.0)) for at, cover in enumerate(_blank(icon, size).covers))
    return b"".join(bytes((0, 0, 0, round(opacity * 255))) for opacity in opacities)


@cache
def argb(icon: str, size: int, count: int = 0) -> bytes:
    """In the order that a tray takes them."""
    rgba = pixels(icon, size, min(count, _MOST))
    drawn = bytearray(len(rgba))
    for part in range(4):
        drawn[part::4] = rgba[(part + 3) % 4 :: 4]
    return bytes(drawn)


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


@dataclass(frozen=True, slots=True)
class _Blank:
    """An icon with nothing on it: how much of each pixel it covers, and its rim below it; and as it is drawn."""

    colour: Colour
    covers: tuple[float, ...]
    rims: tuple[float, ...]
    drawn: bytes


@cache
def _blank(icon: str, size: int) -> _Blank:
    shape, colour = _shape(icon)
    scale = UNITS / size
    distances = [shape(x, y) for x, y in _points(size)]
    covers = tuple(_cover(distance, scale) for distance in distances)
    rims = tuple(_cover(distance - _RIM, scale) * _RIM_OPACITY for distance in distances)
    drawn = b"".join(_pixel(colour, cover, rim, 0.0) for cover, rim in zip(covers, rims, strict=True))
    return _Blank(colour, covers, rims, drawn)


def _pixel(colour: Colour, cover: float, rim: float, hole: float) -> bytes:
    # The rim lies below, and what is cut out shows it in full.
    shade = max(rim, cover * hole)
    ink = cover * (1 - hole)
    opacity = ink + shade * (1 - ink)
    return bytes((*(_mixed(colour[part], _DARK[part], ink, opacity) for part in range(3)), round(opacity * 255)))


def _shape(icon: str) -> tuple[Distance, Colour]:
    """What is filled, and in which colour."""
    pane = _box(8, 8, 6.4, 6.4, 2.4)
    frame = _ring(pane, 1.7)
    if icon == "waiting":
        return pane, _AMBER
    if icon == "running":
        return _either(frame, _triangle((6.3, 4.9), (6.3, 11.1), (11.5, 8.0))), _WHITE
    if icon == "down":
        return _either(frame, _line(2.2, 13.8, 13.8, 2.2, 0.95)), _GREY
    # A prompt at rest.
    return _either(frame, _line(5.2, 10.6, 10.8, 10.6, 0.8)), _WHITE


def _holes(icon: str, size: int, count: int) -> dict[int, float]:
    """How much of which pixels is cut out: whoever waits is counted."""
    if icon != "waiting":
        return {}
    text = str(count) if count else "!"
    scale = UNITS / size
    columns = len(text) * 4 - 1
    cell = min(2.0, 10.6 / columns)
    left, top = 8 - columns * cell / 2, 8 - 2.5 * cell
    # A little larger than its cell, or a seam would show between two.
    half = cell * 0.54
    holes: dict[int, float] = {}
    for number, char in enumerate(text):
        for place, is_set in enumerate(_DIGITS[char]):
            if is_set == "0":
                continue
            x, y = left + (number * 4 + place % 3 + 0.5) * cell, top + (place // 3 + 0.5) * cell
            box = _box(x, y, half, half, 0)
            for row in _reach(y, half, scale):
                for column in _reach(x, half, scale):
                    hole = _cover(box((column + 0.5) * scale, (row + 0.5) * scale), scale)
                    at = row * size + column
                    if hole > holes.get(at, 0.0):
                        holes[at] = hole
    return holes


def _reach(middle: float, half: float, scale: float) -> range:
    """The pixels of a row or column that such a box may touch."""
    return range(int((middle - half) / scale - 1), int((middle + half) / scale + 2))


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
