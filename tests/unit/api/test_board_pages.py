"""The page's files: all that it asks for is there, and it asks for nothing else."""

import re
from importlib import resources

from starlette.datastructures import Headers

from agtmux.api.board.pages import Pages

FOLDER = resources.files("agtmux") / "board"
NOTHING = Headers({})


def test_whatever_the_page_names_is_served():
    pages = Pages()
    index = (FOLDER / "index.html").read_text("utf-8")
    manifest = (FOLDER / "manifest.webmanifest").read_text("utf-8")
    named = {*re.findall(r'(?:href|src)="(/[^"]+)"', index), *re.findall(r'"src": "(/[^"]+)"', manifest), "/"}
    modules = {path.name for path in (FOLDER / "js").iterdir()}
    named |= {f"/js/{name}" for name in modules}
    named |= {f"/icons/board-{icon}-32.png" for icon in ("idle", "running", "waiting", "down")}
    for path in named:
        page = pages.find(path, NOTHING)
        assert page is not None and page.body, path
    # All modules are asked for at once, and not each when another one names it.
    assert modules - {"boot.js"} == set(re.findall(r'modulepreload" href="/js/([^"]+)"', index))
    for name in modules:
        source = (FOLDER / "js" / name).read_text("utf-8")
        assert set(re.findall(r'(?:from |import\()"\./([^"]+)"', source)) <= modules, name


def test_nothing_is_asked_of_another_host_and_no_string_becomes_elements():
    files = [*FOLDER.iterdir(), *(FOLDER / "js").iterdir()]
    for file in files:
        if file.is_file() and not file.name.endswith(".py"):
            text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"https?://|url\(|@import", text), file.name
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


def test_what_is_no_page_is_not_served():
    pages = Pages()
    for path in ("/index.html", "/__init__.py", "/js", "/js/", "/icons", "/../config.py", ""):
        assert pages.find(path, NOTHING) is None
