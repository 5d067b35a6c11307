"""The scripts that a release takes, as far as they run without a Mac."""

import hashlib
import plistlib
import re
import struct
import subprocess
import sys
from pathlib import Path

import bundling
import pytest

MACOS = bundling.ROOT / "packaging" / "macos"
SCRIPTS = [path for path in (*MACOS.iterdir(), *(MACOS / "bin").iterdir()) if path.is_file() and not path.suffix]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sh_and_can_be_run(script):
    assert script.read_text().startswith("#!/bin/sh\n")
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True, timeout=20)


def test_every_program_of_the_bundle_is_signed_by_name():
    signed = re.search(r"^for name in (.*); do$", (MACOS / "sign").read_text(), re.M)[1].split()
    # The app's own program is signed with the bundle.
    assert sorted([*signed, "AgtmuxBar"]) == sorted([*bundling.PROGRAMS, "python"])


def test_the_property_lists_can_be_read():
    assert set(plistlib.loads((MACOS / "entitlements.plist").read_bytes()).values()) == {True}
    template = bundling.ROOT / "resources" / "launchd" / "dev.agtmux.daemon.plist"
    assert plistlib.loads(template.read_bytes())["Label"] == "dev.agtmux.daemon"


def test_the_cask_has_the_sums_of_both_images(tmp_path):
    for name in ("arm", "intel"):
        (tmp_path / f"{name}.dmg").write_text(name)
    made = subprocess.run(
        [MACOS / "cask", "1.2.3", tmp_path / "arm.dmg", tmp_path / "intel.dmg", "https://example.invalid/releases"],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    ).stdout
    assert 'version "1.2.3"' in made
    for name in ("arm", "intel"):
        assert hashlib.sha256(name.encode()).hexdigest() in made
    assert "@" not in made
    assert made.startswith('cask "agtmux" do\n')


def test_the_icon_has_every_size_that_macos_asks_for(tmp_path):
    file = tmp_path / "icon.icns"
    subprocess.run([sys.executable, MACOS / "icon.py", file], check=True, timeout=60, cwd=bundling.ROOT)
    content = file.read_bytes()
    assert content[:4] == b"icns" and struct.unpack(">I", content[4:8])[0] == len(content)
    sizes, at = {}, 8
    while at < len(content):
        kind, length = content[at : at + 4], struct.unpack(">I", content[at + 4 : at + 8])[0]
        picture = content[at + 8 : at + length]
        assert picture.startswith(b"\x89PNG")
        sizes[kind] = struct.unpack(">II", picture[16:24])
        at += length
    assert sizes[b"ic09"] == (512, 512) and sizes[b"ic11"] == (32, 32)
    assert len(sizes) == 8


def test_the_bundle_is_who_the_app_takes_itself_for():
    from AgtmuxBar.mac.bundle import IDENTIFIER

    assert f'IDENTIFIER = "{IDENTIFIER}"' in (MACOS / "bundle.py").read_text()
    for path in ("agtmux.rb.in", "sign"):
        assert IDENTIFIER in (MACOS / path).read_text()


def test_a_report_of_the_self_test_is_judged(tmp_path):
    import json

    checks = ("bundle", "environment of children", "tmux", "command line", "python", "symbols", "status item", "menu")
    report = tmp_path / "report.json"
    for bad, status in ((None, 0), ("menu", 1)):
        report.write_text(json.dumps([{"name": name, "is_ok": name != bad, "saw": ""} for name in checks]))
        done = subprocess.run([sys.executable, MACOS / "check_selftest.py", report], capture_output=True, timeout=20)
        assert done.returncode == status
    Path(report).write_text("[]")
    assert subprocess.run([sys.executable, MACOS / "check_selftest.py", report], capture_output=True).returncode == 1
