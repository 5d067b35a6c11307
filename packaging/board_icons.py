"""The board's icons, drawn by the same rules as those in the menu bar: `python packaging/board_icons.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "resources" / "icons"
sys.path[:0] = [str(ROOT), str(ROOT / "packaging" / "macos")]


def square(size: int) -> bytes:
    """To the edges and without round corners: phones cut their own."""
    import icon

    from AgtmuxBar import icons

    inner = round(size * icon.INNER)
    mask = icons.template("waiting", inner)
    offset = (size - inner) // 2
    drawn = bytearray()
    for row in range(size):
        ground = [round(a + (b - a) * row / size) for a, b in zip(icon.TOP, icon.BOTTOM, strict=True)]
        for column in range(size):
            at_x, at_y = column - offset, row - offset
            inside = 0 <= at_x < inner and 0 <= at_y < inner
            ink = mask[(at_y * inner + at_x) * 4 + 3] / 255 if inside else 0.0
            drawn += bytes(round(g + (i - g) * ink) for g, i in zip(ground, icon.INK, strict=True))
            drawn.append(255)
    return bytes(drawn)


def main() -> None:
    import icon

    from AgtmuxBar import icons

    pictures = {f"board-{size}": (icon.picture(size), size) for size in (192, 512)}
    pictures |= {"board-maskable-512": (square(512), 512), "board-touch-180": (square(180), 180)}
    pictures |= {f"board-{name}-32": (icons.pixels(name, 32), 32) for name in icons.ICONS}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (drawn, size) in pictures.items():
        (FOLDER / f"{name}.png").write_bytes(icons.png(drawn, size))


if __name__ == "__main__":
    main()
