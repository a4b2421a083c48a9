"""Where irscope's fixes put new lines at the top level of a file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from irscope.fixing import top_level
from irscope.fixing.source import Source, source_of_file
from irscope.protocol import Edit
from irscope.usercode.source import parse

SETTING = "torch._dynamo.config.a = True"


def edited(source: str, change: Edit) -> str:
    lines = source.split("\n")
    at, column = change.range.start.line - 1, change.range.start.column
    if at >= len(lines):
        lines.append("")
    lines[at] = lines[at][:column] + change.text + lines[at][column:]
    text = "\n".join(lines)
    ast.parse(text)
    assert "\n\n\n\n" not in text
    return text


def source_of(path: Path) -> Source:
    source = source_of_file(str(path))
    assert source is not None
    return source


def target(path: Path) -> ast.stmt:
    """The statement of the file that defines ``f``."""
    tree = parse(str(path))
    assert tree is not None
    return next(s for s in tree.body if getattr(s, "name", "") in ("f", "M") or isinstance(s, ast.Assign))


SETTINGS = {
    "before a function": (
        "import torch\n\n\ndef f(x):\n    pass\n",
        f"import torch\n\n{SETTING}\n\n\ndef f(x):\n    pass\n",
    ),
    "below the last import, far above the class": (
        '"""A model."""\n\nimport math\nfrom torch import nn\nimport torch\n\n\ndef g():\n    pass\n\n\nclass M:\n    pass\n',
        f'"""A model."""\n\nimport math\nfrom torch import nn\nimport torch\n\n{SETTING}\n\n\ndef g():\n    pass\n\n\n'
        "class M:\n    pass\n",
    ),
    "too few blank lines": (
        "import torch\n\ndef f(x):\n    pass\n",
        f"import torch\n\n{SETTING}\n\n\ndef f(x):\n    pass\n",
    ),
    "no blank line": (
        "import torch\ndef f(x):\n    pass\n",
        f"import torch\n\n{SETTING}\n\n\ndef f(x):\n    pass\n",
    ),
    "below the setting that is there": (
        "import torch\n\ntorch._dynamo.config.b = 1\n\n\n@torch.compile\ndef f(x):\n    pass\n",
        f"import torch\n\ntorch._dynamo.config.b = 1\n{SETTING}\n\n\n@torch.compile\ndef f(x):\n    pass\n",
    ),
    "before other statements": (
        "import torch\n\nN = 3\n\n\ndef f(x):\n    pass\n",
        f"import torch\n\n{SETTING}\n\nN = 3\n\n\ndef f(x):\n    pass\n",
    ),
    "an import that may fail": (
        "import torch\n\ntry:\n    import triton\nexcept ImportError:\n    triton = None\n\n\ndef f(x):\n    pass\n",
        "import torch\n\ntry:\n    import triton\nexcept ImportError:\n    triton = None\n\n"
        f"{SETTING}\n\n\ndef f(x):\n    pass\n",
    ),
    "imports for type checkers": (
        "from typing import TYPE_CHECKING\n\nimport torch\n\nif TYPE_CHECKING:\n    import io\n\n\ndef f(x):\n    pass\n",
        "from typing import TYPE_CHECKING\n\nimport torch\n\nif TYPE_CHECKING:\n    import io\n\n"
        f"{SETTING}\n\n\ndef f(x):\n    pass\n",
    ),
    "an import below the code does not count": (
        "import torch\n\n\ndef f(x):\n    pass\n\n\nif __name__ == '__main__':\n    import sys\n",
        f"import torch\n\n{SETTING}\n\n\ndef f(x):\n    pass\n\n\nif __name__ == '__main__':\n    import sys\n",
    ),
    "a comment that belongs to the function": (
        "import torch  # the library\n\n# What f does.\ndef f(x):\n    pass\n",
        f"import torch  # the library\n\n{SETTING}\n\n\n# What f does.\ndef f(x):\n    pass\n",
    ),
    "a comment of its own": (
        "import torch\n\n# --- models ---\n\n\ndef f(x):\n    pass\n",
        f"import torch\n\n{SETTING}\n\n# --- models ---\n\n\ndef f(x):\n    pass\n",
    ),
    "two statements on one line": ("import torch; f = 1\n", f"import torch; {SETTING}; f = 1\n"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_setting(name: str, tmp_path: Path) -> None:
    source, expected = SETTINGS[name]
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    assert edited(source, top_level.setting_change(source_of(path), SETTING, (), target(path))) == expected


def test_setting_with_a_missing_import(tmp_path: Path) -> None:
    source = "from torch import nn\n\n\ndef f(x):\n    pass\n"
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    text = edited(source, top_level.setting_change(source_of(path), SETTING, ("torch",), target(path)))
    assert text == f"from torch import nn\nimport torch\n\n{SETTING}\n\n\ndef f(x):\n    pass\n"


IMPORTS = {
    "below the others": (
        "import math\nfrom torch import nn\n\n\ndef f(x):\n    pass\n",
        "import math\nfrom torch import nn\nimport torch\n\n\ndef f(x):\n    pass\n",
    ),
    "after __future__": (
        "from __future__ import annotations\n\n\ndef f(x):\n    pass\n",
        "from __future__ import annotations\n\nimport torch\n\n\ndef f(x):\n    pass\n",
    ),
    "after the docstring": (
        '"""What it does."""\n\n\ndef f(x):\n    pass\n',
        '"""What it does."""\n\nimport torch\n\n\ndef f(x):\n    pass\n',
    ),
    "after a shebang": (
        "#!/usr/bin/env python\n# A licence.\n\ndef f(x):\n    pass\n",
        "#!/usr/bin/env python\n# A licence.\n\nimport torch\n\n\ndef f(x):\n    pass\n",
    ),
    "in a file that begins with the function": ("def f(x):\n    pass\n", "import torch\n\n\ndef f(x):\n    pass\n"),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_import(name: str, tmp_path: Path) -> None:
    source, expected = IMPORTS[name]
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    assert edited(source, top_level.import_change(source_of(path), "import torch", target(path))) == expected


CONSTANTS = {
    "after the names that it may read": (
        "import os\n\nNAME = 'A'\n\n\ndef g():\n    pass\n\n\ndef f(x):\n    pass\n",
        "import os\n\nNAME = 'A'\n\n\ndef g():\n    pass\n\n\n_B = 1\n\n\ndef f(x):\n    pass\n",
    ),
    "below an import": (
        "import os\n\n\ndef f(x):\n    pass\n",
        "import os\n\n_B = 1\n\n\ndef f(x):\n    pass\n",
    ),
    "below another constant": (
        "import os\n\n_A = 1\n\n\ndef f(x):\n    pass\n",
        "import os\n\n_A = 1\n_B = 1\n\n\ndef f(x):\n    pass\n",
    ),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant(name: str, tmp_path: Path) -> None:
    source, expected = CONSTANTS[name]
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    tree = parse(str(path))
    assert tree is not None
    assert edited(source, top_level.change_above(source_of(path), "_B = 1", tree.body[-1])) == expected


def test_class_moved_above(tmp_path: Path) -> None:
    source = "import torch\n\n\ndef f(x):\n    pass\n"
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    text = edited(source, top_level.change_above(source_of(path), "class A:\n    pass", target(path)))
    assert text == "import torch\n\n\nclass A:\n    pass\n\n\ndef f(x):\n    pass\n"
