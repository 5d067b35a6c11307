"""The menu as text, held to files that the tests of every renderer share.

`WRITE_GOLDEN=1 pytest tests/desktop/test_text.py` writes them anew; look at what has changed.
"""

import json
import os

import pytest

from AgtmuxBar.text import as_json, as_text
from desktop.menus import GOLDEN, menus
from support.schemas import check


@pytest.mark.parametrize("name", menus())
def test_the_menu_is_as_written_down(name):
    file = GOLDEN / f"{name}.txt"
    text = as_text(menus()[name])
    if os.environ.get("WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def test_nothing_else_is_written_down():
    assert {file.stem for file in GOLDEN.iterdir()} == set(menus())


@pytest.mark.parametrize("name", menus())
def test_json_is_as_its_document_says(name):
    check(json.loads(json.dumps(as_json(menus()[name]))), ("menu",))
