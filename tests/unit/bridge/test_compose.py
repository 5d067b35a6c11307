"""The one-file bridge: valid for the oldest Python, one text for sh and Python, made of what the installed one is."""

import ast
import json
import subprocess
from pathlib import Path

import agtmux.bridge
from agtmux.bridge.compose import compose
from agtmux.bridge.local import AWAY, OUT_OF_REACH, too_long, uncertain
from agtmux.domain.errors import ErrorCode

FOLDER = Path(agtmux.bridge.__file__).parent


def constants() -> dict[str, object]:
    nodes = [node for node in ast.parse(compose()).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in nodes if isinstance(node.targets[0], ast.Name)}


def test_everything_is_python_3_8() -> None:
    ast.parse(compose(), feature_version=(3, 8))
    sources = constants()["SOURCES"]
    assert isinstance(sources, tuple)
    for name, source in sources:
        assert source == (FOLDER.parent / f"{name.replace('.', '/')}.py").read_text("utf-8")
        ast.parse(source, feature_version=(3, 8))


def test_it_is_one_file_and_not_a_large_one() -> None:
    """gwt FR-003, NFR-003: 5 MB are asked for."""
    assert len(compose().encode()) < 200_000


def test_it_knows_by_heart_what_the_installed_one_does() -> None:
    tools = FOLDER.parent / "resources" / "mcp" / "tools.json"
    assert json.loads(str(constants()["TOOLS"])) == json.loads(tools.read_text("utf-8"))


def test_launcher_is_a_string_to_python_and_a_program_to_sh() -> None:
    launcher = compose().split("'''")[1]
    assert "\\" not in launcher
    checked = subprocess.run(["sh", "-n"], input=launcher.partition("\n")[2], text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_it_says_what_is_wrong_with_its_words_and_its_machine(tmp_path: Path) -> None:
    program = tmp_path / "agtmux-mcp"
    program.write_text(compose())
    program.chmod(0o700)
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "usage: agtmux-mcp --socket PATH\n")


def test_its_codes_are_codes() -> None:
    request = {"id": 1, "method": "tools/call"}
    answers = [each["result"]["content"][0]["text"] for each in (uncertain(request), too_long(request, 5))]
    for text in (AWAY, OUT_OF_REACH, *answers):
        assert ErrorCode(text.partition(":")[0])
