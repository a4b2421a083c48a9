"""Functions of an installed library that the user's file leaves to Python, so that only what they call is compiled.

It is the last thing that is tried for a break or a recompilation in a library: the library is not changed, and what
broke is not repaired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from irscope.fixing.places import is_of_library
from irscope.fixing.source import Source, source_of
from irscope.fixing.workarounds import after_imports, function_at, module_of
from irscope.protocol import Compile, Edit, Finding, Fix, FixMethod, Position, Range
from irscope.usercode.user_files import is_package_file

_CAVEAT = (
    "These run as plain Python: {}. Their own operations are not compiled, and each function that they call is compiled "
    "by itself. That can be slower: `irscope fix --measure` compares. `skip_code` is not a public name of PyTorch."
)
_MOST_FUNCTIONS = 16
_HELPER = "leave_to_python"
_CALL = re.compile(rf"^{_HELPER}\(\w+\.([\w.]+)\)$", re.MULTILINE)
_DEFINITION = f'''

def {_HELPER}(function):
    """Lets a function and what is defined in it run as plain Python; what they call is compiled."""
    codes = [inspect.unwrap(function).__code__]
    for code in codes:
        skip_code(code)
        codes += [one for one in code.co_consts if inspect.iscode(one)]


'''
_IMPORTS = ("import inspect", "from torch._dynamo.eval_frame import skip_code")


def plain_functions(
    finding: Finding, text: str, compiles: Sequence[Compile], text_of: Callable[[str], str]
) -> Iterator[Fix]:
    """The change of the user's text; none if a function of the user's would have to be left to Python, too.

    Args:
        text: The user's file.
        compiles: The compiles of the run in which the finding was found.
        text_of: Reads a file of a library.  May raise OSError.
    """
    places = _functions_of(finding, compiles)
    try:
        functions = dict.fromkeys((module_of(file), function_at(text_of(file), line)[0]) for file, line in places)
        source = source_of(text)
    except (OSError, ValueError):
        return
    # Where the text has such calls, after them.
    calls = [node for node in source.tree.body if source.code(node).startswith(f"{_HELPER}(")]
    place = Position(source.last_line(calls[-1]) + 1, 0) if calls else after_imports(source)
    if place is None or not 0 < len(functions) <= _MOST_FUNCTIONS or not all(name for _, name in functions):
        return
    edits = tuple(Edit(Range(place, place), made) for made in _pieces(source, list(functions)))
    if edits:
        caveat = caveat_of("".join(edit.text for edit in edits))
        yield Fix(FixMethod.LIBRARY_TO_PYTHON.title, caveat, edits, method=FixMethod.LIBRARY_TO_PYTHON)


def caveat_of(text: str) -> str:
    """What a text costs that leaves functions to Python: which ones they are."""
    names = dict.fromkeys(one[1] for one in _CALL.finditer(text))
    return _CAVEAT.format(", ".join(f"`{name.removesuffix('.fget')}`" for name in names))


def _functions_of(finding: Finding, compiles: Sequence[Compile]) -> list[tuple[str, int]]:
    """The library's functions from the user's call to a break, each of which would break where it calls the next;
    or the function that was compiled again."""
    own = [compiled for compiled in compiles if compiled.id in finding.compiles]
    places: list[tuple[str, int]] = []
    if finding.kind == "recompilation":
        places = [(compiled.file, compiled.line) for compiled in own]
    elif finding.kind == "graph-break" and all(is_package_file(compiled.file) for compiled in own):
        # else a function of the user's is compiled, and calls them
        places = [(place.file, place.range.start.line) for place in finding.related]
    return [place for place in places if is_of_library(place[0])]


def _pieces(source: Source, functions: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What is put into the text.  In pieces, so that two such changes have the same ones in common."""
    yield from (f"{line}\n" for line in _IMPORTS if line not in source.lines)
    aliases: dict[str, str] = {}
    for module in dict.fromkeys(module for module, _ in functions):
        package, _, name = module.rpartition(".")
        line, alias = f"from {package} import {name}" if package else f"import {name}", name
        if line not in source.lines:
            alias = source.fresh(name)
            if alias == name and name in aliases.values():
                alias = f"{package.rpartition('.')[2]}_{name}"
            yield f"{line}\n" if alias == name else f"{line} as {alias}\n"
        aliases[module] = alias
    if f"def {_HELPER}(function):" not in source.lines:
        yield _DEFINITION
    for module, name in functions:
        call = f"{_HELPER}({aliases[module]}.{name})"
        if call not in source.lines:
            yield f"{call}\n"
