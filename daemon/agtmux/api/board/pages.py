"""The page's own files: read when the door is opened, kept while it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


@dataclass(frozen=True, slots=True)
class _Page:
    content: bytes
    media_type: str
    tag: str


class Pages:
    def __init__(self) -> None:
        package = resources.files("agtmux")
        found = [*_files(package / "board", ""), *_files(package / "resources" / "icons", "/icons")]
        self._pages = {path: page for path, page in found}
        self._pages["/"] = self._pages.pop("/index.html")

    def find(self, path: str, headers: Headers) -> Response | None:
        page = self._pages.get(path)
        if page is None:
            return None
        # Asked for anew at every visit: after an update no half of the page is of before.
        about = {"etag": page.tag, "cache-control": "no-cache"}
        if headers.get("if-none-match") == page.tag:
            return Response(status_code=304, headers=about)
        return Response(page.content, headers=about, media_type=page.media_type)


def _files(folder: Traversable, at: str) -> Iterator[tuple[str, _Page]]:
    for entry in folder.iterdir():
        path = f"{at}/{entry.name}"
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            yield from _files(entry, path)
        elif suffix in _TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            yield path, _Page(content, _TYPES[suffix], tag)
