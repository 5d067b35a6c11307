"""Folders that are made for somebody's settings can be entered, whatever is done beside it."""

import os
from pathlib import Path

from agtmux.probe import files


def test_a_folder_can_be_entered_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o177)
    try:
        made = files.replace(str(tmp_path / "a" / "b" / "settings.json"), b"{}", None, 5.0)
    finally:
        os.umask(before)
    assert made == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert [Path(folder).stat().st_mode & 0o777 for folder in made] == [0o700, 0o700]
