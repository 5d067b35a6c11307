"""What Apple's SDK and PyObjC declare, read from their packages: classes with their selectors, and constants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FRAMEWORKS = ("AppKit", "Foundation", "UserNotifications", "ServiceManagement")
_CLASS = re.compile(
    r"(?:export )?(?:declare )?(?:class|interface) (\w+)(?:<[^{]*?>)?(?: extends ([\w, ]+?))?(?:<[^{]*?>)?"
    r"(?: implements ([\w, ]+))?\s*\{"
)
_MEMBER = re.compile(r"  (?P<words>(?:static |readonly |get |set )*)(?P<name>\w+)\??(?:<.*?>)?\s*(?P<kind>[(:])")


@dataclass
class Declared:
    parents: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    # Whether each may be set.
    properties: dict[str, bool] = field(default_factory=dict)


class Sdk:
    def __init__(self, package: Path) -> None:
        self.classes: dict[str, Declared] = {"NSObject": Declared()}
        for framework in FRAMEWORKS:
            self._read((package / "types" / f"{framework}.d.ts").read_text("utf-8"))
        # Of the runtime rather than of a framework.
        self.classes["NSObject"].methods |= {"alloc", "init", "new", "respondsToSelector"}
        self.classes["NSObject"].methods |= {"performSelectorOnMainThreadWithObjectWaitUntilDone"}

    def _read(self, text: str) -> None:
        current: Declared | None = None
        for line in text.splitlines():
            if match := _CLASS.match(line):
                current = self.classes.setdefault(match[1], Declared())
                current.parents |= {name.strip() for part in match.group(2, 3) if part for name in part.split(",")}
            elif line.startswith("}"):
                current = None
            elif current is not None and (match := _MEMBER.match(line)):
                if match["kind"] == "(":
                    current.methods.add(match["name"])
                else:
                    current.properties[match["name"]] = "readonly" not in match["words"]

    def has(self, name: str, method: str) -> bool:
        """Whether a class, or one that it is made from, has the selector that PyObjC calls by that name."""
        found = [self.classes[each] for each in self._lineage(name)]
        javascript = joined(method)
        if any(javascript in each.methods for each in found):
            return True
        if method.startswith("set") and method.endswith("_") and method.count("_") == 1:
            property = method[3].lower() + method[4:-1]
            return any(each.properties.get(property, False) for each in found)
        getters = {method, method[2:3].lower() + method[3:]} if method.startswith("is") else {method}
        return any(getters & set(each.properties) for each in found)

    def anywhere(self, method: str) -> bool:
        return any(self.has(name, method) for name in self.classes)

    def _lineage(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each in self.classes and each not in found:
                found.add(each)
                waiting += self.classes[each].parents
        return found


def joined(method: str) -> str:
    """`initWithTitle_action_keyEquivalent_` as those declarations have it: initWithTitleActionKeyEquivalent."""
    first, *rest = method.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def constants(wheels: Path) -> dict[str, int | None]:
    """Every constant that PyObjC knows, with its number where it has one."""
    found: dict[str, int | None] = {}
    for framework in FRAMEWORKS:
        text = (wheels / framework / "_metadata.py").read_text("utf-8")
        for name, number in re.findall(r"\$(\w+)@(-?\d+)(?=\$)", text):
            found[name] = int(number)
        for name in re.findall(r"\$([A-Za-z]\w+)(?:@[^$]*)?(?=\$)", text):
            found.setdefault(name, None)
        # Functions, and what is written out by itself.
        for name in re.findall(r'"(\w+)": ', text):
            found.setdefault(name, None)
        for name, number in re.findall(r'"(\w+)": (-?\d+)', text):
            found[name] = int(number)
    return found
