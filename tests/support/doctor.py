"""What `agtmux doctor` finds in a home, and its mends, carried out as they are printed."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from support.home import COMMANDS, PATIENCE, Home

Item = dict[str, Any]


class Examined:
    def __init__(self, status: int, report: dict[str, Any]) -> None:
        self.status = status
        self.report = report
        self.items: list[Item] = report["items"]

    @property
    def codes(self) -> set[str]:
        return {item["code"] for item in self.items}

    @property
    def troubles(self) -> set[str]:
        """What keeps it from being a good day."""
        return {item["code"] for item in self.items if item["level"] in ("warning", "problem")}

    def find(self, code: str, **fields: str) -> Item:
        """The one finding of that code, with these fields."""
        found = [
            item for item in self.items if item["code"] == code and all(item[key] == fields[key] for key in fields)
        ]
        assert len(found) == 1, (code, fields, self.items)
        return found[0]

    def level(self, code: str, **fields: str) -> str:
        return str(self.find(code, **fields)["level"])


def examine(home: Home, *words: str, env: dict[str, str] | None = None) -> Examined:
    done = home.run("doctor", "--json", *words, env=env)
    assert done.stderr == "", done
    return Examined(done.returncode, json.loads(done.stdout))


def carry_out(home: Home, item: Item) -> None:
    """Type what it says, as a user would."""
    env = home.env | {"PATH": f"{COMMANDS}:{home.env['PATH']}"}
    done = subprocess.run(["sh", "-c", item["mend"]], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, (item, done)
