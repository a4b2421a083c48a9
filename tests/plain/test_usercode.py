"""Which files are the user's."""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import irscope
import pytest
from irscope.usercode import user_files as usercode
from irscope.usercode.user_files import is_package_file, is_user_file, set_torch_folder, treat_as_user_code


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    usercode._own.clear()
    usercode._torch.clear()
    usercode._forget()


def test_files_of_the_user(tmp_path: Path) -> None:
    assert is_user_file(str(tmp_path / "model.py"))
    assert is_user_file(os.path.relpath(tmp_path / "model.py"))
    assert not is_package_file(str(tmp_path / "model.py"))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "<string>",
        "<frozen importlib._bootstrap>",
        "<eval_with_key>.3",
        json.__file__,
        os.path.join(sysconfig.get_paths()["purelib"], "transformers", "models", "bert.py"),
        "/usr/lib/python3/dist-packages/torch/__init__.py",
        os.path.join(site.getsitepackages()[0], "thing.py"),
        os.path.join(os.path.dirname(irscope.__file__), "runner", "script.py"),
        r"C:\Python\Lib\site-packages\transformers\bert.py",
    ],
)
def test_files_that_are_not_the_user_s(path: str) -> None:
    assert not is_user_file(path)


def test_torch_may_be_a_source_checkout(tmp_path: Path) -> None:
    checkout, near = tmp_path / "pytorch" / "torch", tmp_path / "pytorch" / "torch_models" / "m.py"
    assert is_user_file(str(checkout / "nn" / "functional.py"))
    set_torch_folder(str(checkout))
    assert not is_user_file(str(checkout / "nn" / "functional.py"))
    assert not is_package_file(str(checkout / "nn" / "functional.py"))
    assert is_user_file(str(near))


def test_triton_may_be_a_build_from_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "build" / "python" / "triton"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    jit, near = str(package / "runtime" / "jit.py"), str(tmp_path / "build" / "python" / "kernels.py")
    assert is_user_file(jit) and is_user_file(near)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.syspath_prepend(str(package.parent))
    usercode._forget()
    assert not is_user_file(jit) and is_user_file(near)
    (tmp_path / "triton.py").write_text("")  # a file of the user's own
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    usercode._forget()
    assert is_user_file(str(tmp_path / "model.py"))


def test_installed_packages_other_than_torch(tmp_path: Path) -> None:
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    set_torch_folder(str(packages / "torch"))
    assert is_package_file(str(packages / "transformers" / "bert.py"))
    assert not is_package_file(str(packages / "torch" / "nn" / "functional.py"))
    assert not is_package_file(json.__file__)
    assert not is_package_file("<string>")


def test_the_open_file_is_the_user_s_wherever_it_lies(tmp_path: Path) -> None:
    mine = tmp_path / "site-packages" / "thing" / "mine.py"
    assert not is_user_file(str(mine))
    treat_as_user_code(str(mine))
    assert is_user_file(str(mine))
    assert not is_package_file(str(mine))
    assert not is_user_file(str(mine.with_name("other.py")))


def test_links_are_followed(tmp_path: Path) -> None:
    """`pip install -e` and virtual environments put links in between."""
    real = tmp_path / "site-packages" / "thing.py"
    real.parent.mkdir()
    real.write_text("")
    link = tmp_path / "link.py"
    link.symlink_to(real)
    assert not is_user_file(str(link))
