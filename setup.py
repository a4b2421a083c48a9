"""What pyproject.toml cannot say: the page of `irscope view` is packed with the Python packages where it has been built (npm
run build), and the addresses are those of package.json."""

import json
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


def readme(home: str) -> str:
    """The README with absolute links: an index of packages shows it without the files beside it."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\])\((?!https?:)([^)#]+)\)", rf"\1({home}/raw/HEAD/\2)", text)
    return re.sub(r"(?<!!)(\[[^]]*\])\((?!https?:|#)([^)]+)\)", rf"\1({home}/blob/HEAD/\2)", text)


manifest = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
home = manifest["repository"]["url"].removesuffix(".git")
setup(
    cmdclass={"build_py": BuildWithPage},
    long_description=readme(home),
    long_description_content_type="text/markdown",
    project_urls={
        "Homepage": manifest["homepage"],
        "Source": home,
        "Issues": manifest["bugs"]["url"],
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
    },
)
