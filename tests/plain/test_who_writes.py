"""One function writes files of the user's (`irscope.usercode.writing`): every other module that writes at all is listed
here, with where it writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from sources import ROOT, Nodes, found_by, name_of, rule

ONE_FUNCTION = "the function that writes files of the user's"
DESCRIPTOR = "a pipe, a socket or the null device"
EVIDENCE = "a folder that a run gets for its results, and that is removed after it"
TEMPORARY = "a temporary folder"
WRITERS = {
    "compiler/irscope/usercode/beside.py": ONE_FUNCTION,
    "compiler/irscope/usercode/writing.py": ONE_FUNCTION,
    "compiler/irscope/driver/availability.py": "irscope's cache",
    "compiler/irscope/driver/environments.py": "an environment that irscope makes",
    "compiler/irscope/driver/trials/proving.py": EVIDENCE,
    "compiler/irscope/driver/launch.py": DESCRIPTOR,
    "compiler/irscope/driver/region_trials.py": EVIDENCE,
    "compiler/irscope/driver/rounds.py": EVIDENCE,
    "compiler/irscope/driver/stub_libraries.py": "an environment that irscope makes",
    "compiler/irscope/driver/versions.py": EVIDENCE,
    "compiler/irscope/internals/environment_facts.py": DESCRIPTOR,
    "compiler/irscope/internals/saved_guards.py": DESCRIPTOR,
    "compiler/irscope/internals/start_times.py": TEMPORARY,
    "compiler/irscope/lowering/cpp.py": TEMPORARY,
    "compiler/irscope/lowering/resources.py": TEMPORARY,
    "compiler/irscope/lowering/passes.py": TEMPORARY,
    "compiler/irscope/lowering/sass.py": TEMPORARY,
    "compiler/irscope/pipeline_captures/inductor/target_child.py": DESCRIPTOR,
    "compiler/irscope/pipeline_captures/inductor/triton_passes.py": TEMPORARY,
    "compiler/irscope/pipeline_captures/tvm/beside.py": DESCRIPTOR,
    "compiler/irscope/runner/descriptors.py": DESCRIPTOR,
    "compiler/irscope/runner/evidence.py": EVIDENCE,
    "compiler/irscope/runner/region_script.py": EVIDENCE,
    "compiler/irscope/runner/rounds.py": EVIDENCE,
    "compiler/irscope/runner/trial.py": EVIDENCE,
    "compiler/irscope/system/scratch.py": "the mapping of users of a process, in /proc",
    "compiler/irscope/system/warden.py": DESCRIPTOR,
    "compiler/irscope/store/file.py": "the run store",
    "compiler/irscope/store/recovery.py": "the run store",
    "compiler/irscope/store/value_file.py": "the run store",
    "compiler/irscope/system/streams.py": DESCRIPTOR,
    "compiler/irscope/values/kernel/process.py": TEMPORARY,
    "compiler/irscope/values/kernel/running.py": TEMPORARY,
    "compiler/irscope/values/run/process.py": DESCRIPTOR,
    "compiler/irscope/worker/errand.py": "the name of a process, in /proc",
    "server/irscope_server/base/transport.py": DESCRIPTOR,
    "server/irscope_server/view/address.py": "the folder of `irscope view`, beside the run store",
}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}
OPENERS = {"open", "fdopen", "FileIO", "ZipFile", "GzipFile", "NamedTemporaryFile"}
PATH = {"write_text", "write_bytes", "touch", "hardlink_to", "symlink_to"}
OS = {"replace", "rename", "renames", "link", "symlink", "truncate", "mkfifo", "mknod"}
SHUTIL = {"copy", "copy2", "copyfile", "copytree", "move", "make_archive", "unpack_archive"}
NAMES = OPENERS | PATH | OS | SHUTIL


@rule
def writes(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Line and text of the calls that write a file, or move one to where another may be."""
    for node in nodes.of(ast.Call):
        if name_of(node.func) in NAMES and _writes(node):
            yield node.lineno, ast.unparse(node)


def _writes(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if owner == "os" and name == "open":
        return _has_writing_flags(call.args[1])
    if name in OPENERS:
        return any(_is_writing_mode(given) for given in _modes(call))
    if owner in ("os", "shutil"):
        return name in (OS if owner == "os" else SHUTIL)
    if name in ("replace", "rename"):  # of a path; those of texts and dataclasses have two arguments or keywords
        return bool(owner) and len(call.args) == 1 and not call.keywords
    return name in PATH


def _has_writing_flags(flags: ast.expr) -> bool:
    """Whether it names one; a variable may have any."""
    names = {node.attr for node in ast.walk(flags) if isinstance(node, ast.Attribute)}
    return bool(names & WRITING_FLAGS) or not any(name.startswith("O_") for name in names)


def _modes(call: ast.Call) -> Iterator[ast.expr]:
    """What may be the mode: a method of a path has it first, the function second."""
    yield from call.args[:2]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "mode")


def _is_writing_mode(given: ast.expr) -> bool:
    text = given.value if isinstance(given, ast.Constant) else None
    return isinstance(text, str) and re.fullmatch(r"[rwaxbt+]{1,4}", text) is not None and bool(set(text) & set("wax+"))


def test_every_module_that_writes_says_where() -> None:
    unknown: list[str] = []
    seen: set[str] = set()
    for path, calls in found_by(writes).items():
        name = path.relative_to(ROOT).as_posix()
        for line, call in calls:
            seen.add(name)
            if name not in WRITERS:
                unknown.append(f"{name}:{line}: {call}")
    assert not unknown, "A file of the user's is written by irscope.usercode.writing; see WRITERS for others."
    assert seen == WRITERS.keys(), "WRITERS has modules that write nothing."


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("open(path, 'w')", True),
        ("open(path, mode='ab')", True),
        ("open(path)", False),
        ("open(path, 'rb')", False),
        ("path.open('x')", True),
        ("gzip.open(path, 'wt')", True),
        ("io.FileIO(fd, 'r+')", True),
        ("os.open(path, os.O_RDONLY | os.O_CLOEXEC)", False),
        ("os.open(path, os.O_CREAT | os.O_EXCL)", True),
        ("os.open(path, flags)", True),
        ("os.replace(a, b)", True),
        ("shutil.copyfile(a, b)", True),
        ("path.write_bytes(data)", True),
        ("path.rename(other)", True),
        ("text.replace('a', 'b')", False),
        ("dataclasses.replace(one, a=1)", False),
    ],
)
def test_what_counts_as_writing(code: str, is_one: bool) -> None:
    assert bool(list(writes(Nodes(code)))) is is_one


_OF_NODE = re.compile(r"\b(?<!workspace\.)fs\.(?:writeFile|appendFile|copyFile|rename|cp|truncate|open|createWrite)")
_IMPORTED = re.compile(r"import \{[^}]*\b(?:write|append|copy|rename|truncate|open)\w*[^}]*\} from \"(?:node:)?fs")


def writes_with_node(text: str) -> bool:
    return bool(_OF_NODE.search(text) or _IMPORTED.search(text))


def test_the_extension_writes_with_the_editor_only() -> None:
    """What goes through `vscode.workspace.fs` is saved as the editor saves, also where the files are elsewhere."""
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "extension" / "src").rglob("*.ts")}
    assert "extension.ts" in texts and any("workspace.fs.writeFile" in text for text in texts.values())
    assert [name for name, text in texts.items() if writes_with_node(text)] == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("await fs.promises.readFile(path);\nfs.writeFileSync(path, text);", True),
        ('import { readFile, writeFile } from "node:fs/promises";', True),
        ("await vscode.workspace.fs.writeFile(uri, bytes);", False),
        ('import { existsSync } from "node:fs";', False),
    ],
)
def test_what_counts_as_writing_with_node(text: str, is_one: bool) -> None:
    assert writes_with_node(text) is is_one
