"""Records screens of real agents into tests/corpus, with what a reader should say of each.

    python tests/agents/record.py --agent claude --version 2.1.197 --size 80x24 --scene bash-approval

The agents get a network of their own with nothing but loopback in it, where the system allows that (Linux, root).

With --then, each screen is taken again after the pane was given that size.

Without --scene it records all scenes, without --version all versions that tests start. A screen is written only if the
model server and the processes say, before and after it was taken, that the agent is where the scene wants it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # In place of this folder: `model` and the agents' names are modules of `agents`.
    sys.path[0] = str(TESTS)

from agents.bench import AgentPane  # noqa: E402
from agents.install import PINNED, install  # noqa: E402
from agents.scenes import Scene  # noqa: E402

CORPUS = TESTS / "corpus"
PATIENCE = 10.0
# Agents wait for the end of a resize before they draw.
REDRAW = 1.5
CLONE_NEWNET = 0x40000000


class NotThere(Exception):
    """The agent did not come to the scene's state."""


def record(
    agent: ModuleType,
    version: str,
    scene: Scene,
    width: int,
    height: int,
    corpus: Path = CORPUS,
    then: tuple[int, int] | None = None,
) -> Path:
    """Drives one agent to one scene and writes the case, and another if its pane is resized then."""
    executable = install(agent.NAME, version)
    folder = corpus / agent.NAME / version / f"{scene.name}-{width}x{height}"
    with AgentPane(agent, executable, version, width=width, height=height, wishes=scene.wishes) as pane:
        try:
            if scene.ready:
                agent.ready(pane)
            scene.drive(pane)
        except AssertionError as error:
            raise NotThere(str(error)) from error
        write(folder, scene, take(scene, pane))
        if then is not None:
            pane.resize(*then)
            time.sleep(REDRAW)
            write(folder.with_name(f"{folder.name}-to-{then[0]}x{then[1]}"), scene, take(scene, pane))
    return folder


def take(scene: Scene, pane: AgentPane) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if scene.holds(pane) and not pane.server.failures:
            taken = pane.snapshot()
            if scene.holds(pane):
                return taken
        time.sleep(0.2)
    raise NotThere(f"not {scene.state}: {pane.server.steps[-3:]}\n{pane.screen()}")


def write(folder: Path, scene: Scene, taken: dict[str, Any]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case = scene.expected(taken) | taken | {"did": scene.did}
    (folder / "screen.ansi").write_text(case.pop("screen"), "utf-8")
    (folder / "case.json").write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n", "utf-8")


def cut_off() -> bool:
    """Leaves this process and its children with loopback as their only network. False if that may not be."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)
    if unshare is None or unshare(CLONE_NEWNET) != 0:
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=PATIENCE)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--version", action="append", help="again for more; all that tests start if not given")
    parser.add_argument("--size", action="append", help="as 80x24, again for more")
    parser.add_argument("--then", help="as 60x20: resize, and take each again")
    parser.add_argument("--scene", action="append", help="a regular expression for names, again for more")
    parser.add_argument("--missing", action="store_true", help="only what is not there yet")
    parser.add_argument("--show", action="store_true", help="print each screen")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    chosen = parser.parse_args()

    agent = importlib.import_module(f"agents.{chosen.agent}")
    scenes = [
        scene
        for scene in agent.SCENES
        if not chosen.scene or any(re.fullmatch(pattern, scene.name) for pattern in chosen.scene)
    ]
    # As a failing test would, a stopped recording ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    versions = chosen.version or PINNED[chosen.agent]
    for version in versions:
        install(agent.NAME, version)
    if not cut_off():
        print("not cut off from the network: agents may look for more than the model server", flush=True)
    failed = 0
    then = tuple(map(int, chosen.then.split("x"))) if chosen.then else None
    for version in versions:
        for size in chosen.size or ["80x24"]:
            width, height = map(int, size.split("x"))
            for scene in scenes:
                name = f"{agent.NAME} {version} {scene.name} {size}"
                if chosen.missing and (chosen.corpus / agent.NAME / version / f"{scene.name}-{size}").exists():
                    continue
                started = time.monotonic()
                try:
                    folder = record(agent, version, scene, width, height, chosen.corpus, then)
                except NotThere as error:
                    failed += 1
                    print(f"FAILED {name}: {error}", flush=True)
                else:
                    print(f"{name} ({time.monotonic() - started:.1f} s)", flush=True)
                    if chosen.show:
                        print((folder / "screen.ansi").read_text("utf-8"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
