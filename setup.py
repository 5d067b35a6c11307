"""What pyproject.toml cannot say: `agtmux-hook` is no entry point but a script, composed at build time."""

from pathlib import Path
from runpy import run_path

from setuptools import Command, setup


class BuildScripts(Command):
    user_options = ()

    def initialize_options(self):
        self.build_dir = None

    def finalize_options(self):
        self.set_undefined_options("build", ("build_scripts", "build_dir"))

    def run(self):
        # By its path: the package is not installed yet, and run_path leaves no __pycache__ behind.
        compose = run_path("daemon/agtmux/hook/compose.py")["compose"]
        script = Path(self.build_dir, "agtmux-hook")
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(compose(), "utf-8")
        script.chmod(0o755)

    def get_source_files(self):
        return []


setup(scripts=["agtmux-hook"], cmdclass={"build_scripts": BuildScripts})
