"""AgtmuxBar.app as the real py2app makes it: what is in it, that it starts, and what its children inherit."""

import fcntl
import json
import os
import plistlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import bundling
import fetched
import pytest

from agtmux import __version__
from agtmux.hook.compose import compose
from support.home import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="a Mac builds its own: .github/workflows/macos.yml"),
    # The tests themselves: what is fetched and built for all of them has limits of its own, and takes minutes on a
    # machine that has something else to do.
    pytest.mark.timeout(120, func_only=True),
]

# What a child of ours must never have.
FORBIDDEN = re.compile(
    r"^(PYTHON\w*|RESOURCEPATH|EXECUTABLEPATH|ARGVZERO|_PY2APP\w*|PYOBJC_BUNDLE\w*|SSL_CERT_\w+|__PYVENV\w*)=", re.M
)
# Modules of ours that the bundle has and a Mac never imports, and what they lack there.
OF_LINUX = {"jeepney": "AgtmuxBar.linux", "secretstorage": "AgtmuxBar.linux"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    try:
        fetched.py2app(), fetched.rumps()
    except fetched.Unavailable as reason:
        pytest.skip(f"py2app or rumps cannot be had: {reason}")
    # Below the folder of the whole run: the worker that comes first builds it for all.
    shared = tmp_path_factory.getbasetemp()
    shared = (shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared) / "AgtmuxBar"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log = shared / "py2app.log"
        if not log.exists():
            log.write_text(bundling.twin(shared)[1], "utf-8")
    return shared / "dist" / "AgtmuxBar.app", log.read_text("utf-8")


@pytest.fixture(scope="module")
def contents(built):
    return built[0] / "Contents"


@pytest.fixture
def home(short_tmp):
    """As launchd gives it: next to nothing. tmux is a program that notes what it inherits, and has no server."""
    folder = short_tmp / "bin"
    folder.mkdir()
    tmux = folder / "tmux"
    tmux.write_text(f"""#!/bin/sh
env >>'{short_tmp}/inherited'
[ "$1" = -V ] && echo 'tmux 3.4' && exit 0
echo 'no server running on {short_tmp}/none' >&2
exit 1
""")
    tmux.chmod(0o755)
    return {
        "HOME": str(short_tmp),
        "PATH": f"{folder}:/usr/bin:/bin",
        "AGTMUX_STATE_DIR": str(short_tmp / "state"),
        "AGTMUX_CONFIG_DIR": str(short_tmp / "config"),
    }


def run(program, *words, home, **more):
    return subprocess.run([str(program), *words], env=home, capture_output=True, text=True, timeout=60, **more)


def check_report(said):
    found = bundling.missing(said)
    assert len(found) > 10, "py2app's report reads differently now"
    ours = {
        f"{module} (imported by {importer})"
        for module, importers in found.items()
        for importer in importers
        if importer.split(".")[0] in ("agtmux", "AgtmuxBar", "rumps")
        and not importer.startswith(OF_LINUX.get(module.split(".")[0], "-"))
        # Python 2, which rumps still knows.
        and importer != "rumps.packages.ordereddict"
    }
    assert not ours
    assert not {"msgspec", "starlette", "uvicorn", "websockets", "asyncssh", "aiosqlite", "keyring"} & set(found)


def test_the_property_list_says_what_the_app_is(contents):
    told = plistlib.loads((contents / "Info.plist").read_bytes())
    expected = {
        "CFBundleIdentifier": "dev.agtmux.AgtmuxBar",
        "CFBundleExecutable": "AgtmuxBar",
        "CFBundleIconFile": "AgtmuxBar.icns",
        "CFBundleShortVersionString": __version__,
        "LSUIElement": True,
        "LSMinimumSystemVersion": "13.0",
        "LSMultipleInstancesProhibited": True,
        "NSSupportsSuddenTermination": False,
    }
    assert told | expected == told
    assert told["PyOptions"]["no_chdir"] is True
    assert told["PyOptions"]["argv_emulation"] is False
    assert (contents / "Resources" / "AgtmuxBar.icns").read_bytes()[:4] == b"icns"


def test_nothing_that_is_imported_is_missing(built):
    check_report(built[1])


def test_our_packages_are_files_with_their_resources_and_compiled(contents):
    (library,) = (contents / "Resources" / "lib").glob("python3.*/agtmux")
    with zipfile.ZipFile(next((contents / "Resources" / "lib").glob("python3*.zip"))) as archive:
        assert not [name for name in archive.namelist() if name.startswith(("agtmux/", "AgtmuxBar/"))]
    for name in (
        "resources/launchd/dev.agtmux.daemon.plist",
        "resources/demo.toml",
        "store/migrations/0001_initial.sql",
    ):
        assert (library / name).is_file()
    for package in (library, library.parent / "AgtmuxBar"):
        sources = {path.relative_to(package) for path in package.rglob("*.py")}
        compiled = {
            path.parents[1].relative_to(package) / f"{path.name.split('.')[0]}.py" for path in package.rglob("*.pyc")
        }
        assert sources == compiled


def test_the_hook_is_the_one_that_is_installed_elsewhere(contents):
    hook = contents / "Resources" / "bin" / "agtmux-hook"
    assert hook.read_text() == compose()
    assert os.access(hook, os.X_OK)


def test_agtmux_starts_through_links_of_all_kinds(contents, home, short_tmp):
    script = contents / "Resources" / "bin" / "agtmux"
    (short_tmp / "absolute").symlink_to(script)
    (short_tmp / "relative").symlink_to(os.path.relpath(script, short_tmp))
    (short_tmp / "chain").symlink_to("relative")
    for program in (script, short_tmp / "absolute", short_tmp / "relative", short_tmp / "chain"):
        done = run(program, "--version", home=home)
        assert (done.stdout, done.stderr, done.returncode) == (f"agtmux {__version__}\n", "", 0)


def test_a_command_runs_in_the_folder_it_was_called_in(contents, home, short_tmp):
    done = run(contents / "Resources" / "bin" / "agtmux", "status", home=home | {"AGTMUX_SOCKET": "./s"}, cwd=short_tmp)
    assert done.returncode in (0, 3), done.stderr
    run(contents / "Resources" / "bin" / "agtmux", "down", home=home, cwd=short_tmp)
    assert "Contents/Resources/s" not in done.stdout + done.stderr


def test_the_bridge_of_the_bundle_reaches_its_daemon(contents, home):
    """gwt FR-003. The server in the daemon is imported with the first bridge: all that it needs is there."""
    commands = contents / "Resources" / "bin"
    assert run(commands / "agtmux", "up", "--headless", home=home).returncode == 0
    try:
        greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        call = {"name": "list_agents", "arguments": {}}
        lines = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ]
        said = run(commands / "agtmux-mcp", home=home, input="".join(json.dumps(line) + "\n" for line in lines))
        answers = {answer.get("id"): answer for answer in map(json.loads, said.stdout.splitlines())}
        assert answers[2]["result"]["structuredContent"]["agents"] == [], (said, answers)
    finally:
        run(commands / "agtmux", "down", home=home)


@pytest.mark.parametrize("way", ["command", "launchd"])
def test_no_variable_of_py2apps_reaches_a_child_of_the_daemon(contents, home, short_tmp, way):
    agtmux = contents / "Resources" / "bin" / "agtmux"
    inherited = short_tmp / "inherited"
    process = None
    if way == "launchd":
        process = subprocess.Popen([contents / "MacOS" / "agtmuxd"], env=home, stderr=subprocess.PIPE)
    try:
        listed = run(agtmux, "list", "panes", "--json", home=home)
        assert json.loads(listed.stdout)["items"] == [], listed.stderr
        told = run(agtmux, "doctor", home=home)
        assert told.returncode in (0, 1), told.stderr
        assert inherited.stat().st_size > 0
        assert not FORBIDDEN.findall(inherited.read_text())
        assert f"HOME={short_tmp}\n" in inherited.read_text()
    finally:
        down = run(agtmux, "down", home=home)
        if process is not None:
            process.communicate(timeout=30)
    assert "has stopped" in down.stdout, down.stderr


def test_the_hook_runs_with_the_bundles_own_python_where_there_is_no_other(contents, home, short_tmp):
    """On a Mac without developer tools, what is called python3 in /usr/bin opens a dialog."""
    tools = short_tmp / "tools"
    tools.mkdir()
    for name in ("dirname", "readlink", "sh"):
        (tools / name).symlink_to(Path("/bin") / name if Path("/bin", name).exists() else Path("/usr/bin") / name)

    def is_spooled() -> bool:
        done = run(
            contents / "Resources" / "bin" / "agtmux-hook",
            *("claude", "Stop", '{"session_id": "s1"}'),
            home=home | {"PATH": str(tools), "TMUX_PANE": "%1", "TMUX": "/tmp/none,1,0"},
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        spooled = [path.read_bytes() for path in (short_tmp / "state").rglob("*") if path.is_file()]
        return any(b"s1" in content for content in spooled)

    # On a busy machine it gives up rather than keep its agent waiting.
    wait_until(is_spooled, "an event that is kept")


def test_the_self_test_runs_in_the_bundle(contents, home, short_tmp):
    report = short_tmp / "report.json"
    done = run(contents / "MacOS" / "AgtmuxBar", "--selftest", str(report), home=home)
    found = {each["name"]: each for each in json.loads(report.read_text())}
    # What needs no Mac.
    for name in ("environment of children", "command line", "python", "symbols", "status item", "menu", "tmux"):
        assert found[name]["is_ok"] is True, found[name]
    # There is no codesign and no Terminal here, and it says so.
    assert found["signature"]["is_ok"] is found["terminals"]["is_ok"] is False
    assert done.returncode == 1
    assert "environment of children: of py2app's: none" in done.stdout
    assert not (short_tmp / "state").exists()


@pytest.mark.soak
@pytest.mark.parametrize("architecture", ["arm64", "x86_64"])
def test_the_bundle_of_macos_wheels_has_all_that_is_imported(tmp_path, architecture):
    try:
        wheels = fetched.wheels(architecture)
    except fetched.Unavailable as reason:
        pytest.skip(f"wheels for macOS cannot be had: {reason}")
    bundle, said = bundling.build([wheels], tmp_path, architecture)
    check_report(said)
    found = bundling.missing(said)
    assert not {"AppKit", "Foundation", "objc", "UserNotifications", "ServiceManagement", "PyObjCTools"} & set(found)
    library = next((bundle / "Contents" / "Resources" / "lib").glob("python3.*"))
    extensions = {path.relative_to(library).as_posix() for path in library.rglob("*.so")}
    for part in ("msgspec/_core", "objc/_objc", "AppKit/_AppKit", "httptools/parser", "cryptography", "_cffi_backend"):
        names = [name for name in extensions if part in name]
        assert names, f"{part} has no extension in the bundle"
        for name in names:
            assert (library / name).read_bytes()[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"), name
