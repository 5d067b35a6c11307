"""What pyproject.toml cannot say: `agtmux-hook` is no entry point but a script, composed at build time, and
`python setup.py py2app` builds AgtmuxBar.app."""

import sys
from pathlib import Path
from runpy import run_path

from setuptools import Command, setup


def compose_hook(script):
    # By its path: the package is not installed yet, and run_path leaves no __pycache__ behind.
    compose = run_path("daemon/agtmux/hook/compose.py")["compose"]
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(compose(), "utf-8")
    script.chmod(0o755)


class BuildScripts(Command):
    user_options = ()

    def initialize_options(self):
        self.build_dir = None

    def finalize_options(self):
        self.set_undefined_options("build", ("build_scripts", "build_dir"))

    def run(self):
        compose_hook(Path(self.build_dir, "agtmux-hook"))

    def get_source_files(self):
        return []


if "py2app" in sys.argv[1:]:
    bundle = run_path("packaging/macos/bundle.py")
    setup(**bundle["arguments"](compose_hook))
else:
    setup(scripts=["agtmux-hook"], cmdclass={"build_scripts": BuildScripts})
