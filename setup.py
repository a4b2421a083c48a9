"""Packs the page of `irscope view` with the Python packages, where it has been built (npm run build)."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPage(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # a checkout serves extension/dist itself
        target = Path(self.build_lib) / "irscope_server" / "view" / "static"
        for pattern in ("*.js", "*.css", "*.txt"):
            for file in sorted(Path("extension/dist").glob(pattern)):
                if file.name != "extension.js":
                    target.mkdir(parents=True, exist_ok=True)
                    copy2(file, target / file.name)


setup(cmdclass={"build_py": BuildWithPage})
