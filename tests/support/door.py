"""The board's door as a program finds it: HTTP over TCP by hand, so that a test can also say what no browser would."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

from support.home import Home
from support.http import Answer
from support.schemas import check, check_answer


class Door:
    """Open, with its token in a file: the usual one, or that of the settings."""

    def __init__(self, home: Home, *words: str, is_configured: bool = False) -> None:
        self.home = home
        self._token_file = () if is_configured else ("--token-file",)
        self.opened = self.open(*words)
        place = urlsplit(self.opened["url"])
        self.host, self.port = str(place.hostname), int(place.port or 0)
        self.token = home.run("board", "--print-token", *self._token_file).stdout.strip()

    def open(self, *words: str) -> dict[str, Any]:
        done = self.home.run("board", "--no-open", "--json", *self._token_file, *words)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def code(self) -> str:
        return str(self.open("--port", str(self.port))["login_url"].partition("#code=")[2])

    def ask(self, method: str, path: str, content: object = None, headers: dict[str, str] | None = None) -> Answer:
        """With the headers that are given and a `Host`; one that is given replaces it."""
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        sent = {"Host": f"{self.host}:{self.port}", "Connection": "close", **(headers or {})}
        if content is not None and not isinstance(content, bytes):
            sent.setdefault("Content-Type", "application/json")
        if body or method == "POST":
            sent["Content-Length"] = str(len(body))
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""])
        with socket.create_connection((self.host, self.port), 20) as connection:
            connection.sendall(head.encode("latin-1") + body)
            with connection.makefile("rb") as answer:
                said = answer.read()
        top, _, rest = said.partition(b"\r\n\r\n")
        status, *lines = top.decode("latin-1").split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        told = Answer(int(status.split()[1]), found, rest)
        if "json" in found.get("content-type", ""):
            if told.status < 400 and path.startswith("/v1/board/"):
                check(told.json, ("board-login",))
            elif path.startswith("/v1/"):
                check_answer(method, path, told.status, found["content-type"], rest)
        return told

    def signed_in(self) -> dict[str, str]:
        """The headers of a browser that has used a code."""
        answer = self.ask("POST", "/v1/board/login", {"code": self.code()}, {"Origin": self.origin})
        assert answer.status == 200, answer
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {"Cookie": cookie, "Agtmux-Key": answer.json["key"], "Origin": self.origin}
