"""What pyproject.toml cannot say: the page of `irscope view` is packed with the Python packages where it has been built (npm
run build), and the README without its relative links."""

import re
from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class BuildWithPage(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # a checkout serves extension/dist itself
        target = Path(self.build_lib) / "irscope_server" / "view" / "static"
        for pattern in ("*.js", "*.css", "*.txt"):
            for file in sorted((HERE / "extension" / "dist").glob(pattern)):
                if file.name != "extension.js":
                    target.mkdir(parents=True, exist_ok=True)
                    copy2(file, target / file.name)


def readme() -> str:
    """The README without its pictures and with plain words for relative links: an index has no files beside it."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]+\)\n*", "", text)
    return re.sub(r"\[([^]]*)\]\((?!https?:|#)[^)]+\)", r"\1", text)


setup(
    cmdclass={"build_py": BuildWithPage},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
