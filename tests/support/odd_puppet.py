"""Puppets with habits that real agents have; the habit is the third word."""

import sys

from puppet import Puppet


class Odd(Puppet):
    habit = ""

    def press(self, key: bytes) -> None:
        if self.dialog is None and key == b"\r":
            if self.habit == "backslash" and self.draft.endswith("\\"):
                # A backslash before Enter makes it a new line.
                self.note("key", "\r")
                self.draft = self.draft[:-1] + "\n"
                return
            if self.habit == "mention" and "@READ" in self.draft and "@README.md" not in self.draft:
                # Enter takes what the menu of files proposes.
                self.note("key", "\r")
                self.draft = self.draft.replace("@READ", "@README.md ")
                return
        super().press(key)
        if self.habit == "asks" and self.dialog is None and key == b"y":
            self.dialog = ("d1", "touch label.txt")


if __name__ == "__main__":
    Odd.habit = sys.argv[3]
    Odd(*sys.argv[1:3]).run()
