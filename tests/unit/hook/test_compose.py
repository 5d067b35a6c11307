"""The one-file script: valid for the oldest Python, one text for sh and Python, nothing of agtmux needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.hook import compose as compose_module
from agtmux.hook.compose import compose, script

HOOK = Path(compose_module.__file__).parent


def embedded(text: str) -> dict[str, str]:
    """The sources that the script keeps as text, by the name it keeps them under."""
    return {
        node.targets[0].id: node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def test_everything_is_python_3_8():
    text = compose()
    for source in (text, *embedded(text).values()):
        ast.parse(source, feature_version=(3, 8))


def test_what_is_rarely_needed_is_embedded_to_the_letter():
    sources = embedded(compose())
    assert sources["SPOOL"] == (HOOK / "spool.py").read_text("utf-8")
    assert sources["WAITING"] == (HOOK / "wait.py").read_text("utf-8")
    assert sources["REDACT"] == (HOOK.parent / "domain" / "redact.py").read_text("utf-8")


@given(st.text(alphabet=st.sampled_from("'\"\\\nax{}é")))
def test_any_source_can_be_embedded(source):
    sources = embedded(script(send="", spool=source, wait=source, redact=source, owners="import sys\n"))
    assert sources == {"SPOOL": source, "WAITING": source, "REDACT": source}


def test_launcher_is_a_string_to_python_and_a_program_to_sh():
    text = compose()
    assert text.startswith("#!/bin/sh\n''':'\n")
    launcher = text.split("'''")[1]
    # Python would warn about an escape it does not know, at every run.
    assert "\\" not in launcher
    checked = subprocess.run(["sh", "-n"], input=launcher.partition("\n")[2], text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("module", ["agtmux", "setuptools"])
def test_compose_runs_by_its_path_without(module):
    # setup.py has nothing installed yet.
    code = f"import sys; sys.modules[{module!r}] = None; import runpy; runpy.run_path(sys.argv[1])['compose']()"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, HOOK / "compose.py"], check=True)
