"""What a failed guard says, read from PyTorch's text of it."""

from __future__ import annotations

import ast
import dataclasses
import re

from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

_COMPILE = pattern(r"^!?\d+(?:/\d+)*: ")
_USER_FRAME = pattern(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_TENSOR = pattern(r"^tensor '(?P<source>.+?)' (?P<rest>.*)$", re.DOTALL)
_SIZE = pattern(
    r"^(?P<what>size|stride) mismatch at index (?P<index>\d+)\. expected (?P<expected>\S+), actual (?P<actual>[^\s.]+)"
)
_TYPE_BEHIND = pattern(r"\), type=<(?:class ')?(?P<type>[^\n]*?)'?>$")  # after a check of an object's identity
# "a tensor type" up to torch 2.13, from 2.15 on the class that it was
_NO_TENSOR = pattern(
    r"^expected type of '(?P<source>.+?)' to be (?:a tensor type|<class ).*but found <class '(?P<type>[^']+)'>"
)
_OWN_ATTRIBUTE = pattern(r"^not ___dict_contains\('(?P<name>\w+)', (?P<owner>.+)\.__dict__\)$")
_FREED = pattern(r"^Cache line invalidated because (?P<source>.+) got deallocated$")
"""What PyTorch says in place of a guard on an object's identity once that object is gone."""
_OF_OBJECT = pattern(r"^(?P<source>.+?) == <.+>$")  # an object without its own text
_NOT_FOUND = pattern(
    r"^(?:\w+: )?(?P<why>KeyError|IndexError|Not a function|getattr failed)(?: on)?(?: source)? (?P<source>.+)$"
)
_MISSING = "it was there when this was compiled and is missing now"
_ADDRESS = pattern(r" at 0x[0-9a-f]+")
_EXPECTED = pattern(r"expected (?P<expected>.+?)[,.] (?:actual|got) (?P<actual>.+?)\.?$", re.DOTALL)

_DUCK = pattern(r"# duck sizing added this equality because these variables had the same size (\d+)")


@dataclass(frozen=True)
class FailedGuard:
    """One guard that failed.

    Args:
        text: The guard as PyTorch words it, without the compile and the user line.
        source: The expression it watches, in terms of the function's locals: ``x``, ``self.drop.training``; empty if
            unknown.
        code: irscope's code of the finding: ``recompile-size``, ``recompile-value``, …
        what: What changed, as a phrase: ``size 8 → 5 in dimension 0``.
        frames: Files and lines of the user stack that made the guard, outermost first; empty if PyTorch does not tell.
        dimension: The dimension of a size or stride.
        was: The value or the type's name that the code was compiled for, as text; empty if PyTorch does not tell.
        other: The second thing that the guard compares, named as ``source``.
        sizes: For a guard on a size: the size of the compiled code, and that of the call; empty for other guards.
        state: For a guard on the state of PyTorch as a whole: the first one that changed, by PyTorch's name
            (``grad_mode``); empty if PyTorch does not tell.  Inference mode, which shows in the dispatch keys of
            tensors, is one, too.
        changes: How many things must be other ones for the guard to hold: the states, if there are several.
        shared_size: For two sizes that are one symbol (duck sizing): what both were; None for other guards.
    """

    text: str
    source: str
    code: str
    what: str
    frames: tuple[tuple[str, int], ...]
    dimension: int | None = None
    was: str = ""
    other: str = ""
    sizes: tuple[int, ...] = ()
    state: str = ""
    changes: int = 1
    shared_size: int | None = None

    @property
    def is_left_by_break(self) -> bool:
        """Whether it watches a value without a name that a graph break left for the code after it."""
        return "___" in self.source


def parse_failed_guard(reason: str) -> FailedGuard:
    """Reads one string of ``recompile_reasons``."""
    body = _COMPILE.sub("", reason.strip())
    head, _, stack = body.partition("\nUser stack trace:")
    frames = tuple((match["file"], int(match["line"])) for match in _USER_FRAME.finditer(stack))
    text = re.split(r"\s{2,}# ", head, maxsplit=1)[0].strip()
    compiled_type = match["type"] if (match := _TYPE_BEHIND.search(text)) else ""
    text = _ADDRESS.sub("", without_type(text))
    if match := _TENSOR.match(text):
        return _of_tensor(text, readable(match["source"]), match["rest"], frames)
    if match := _NO_TENSOR.match(text):
        what = f"it was a tensor when this was compiled and is a `{type_name(match['type'])}` now"
        return FailedGuard(text, readable(match["source"]), "recompile-type", what, frames, was="tensor")
    if match := _FREED.match(text):
        what = "it is another object now, and the first one was freed"
        return FailedGuard(text, readable(match["source"]), "recompile-object", what, frames)
    if text.startswith("Duplicate tensors found"):
        first, second = ([*map(readable, re.findall(r'"([^"]+)"', text)), "", ""])[:2]
        what = f"`{first}` and `{second}` are one tensor now" if second else "two arguments are one tensor now"
        return FailedGuard(text, first, "recompile-aliasing", what, frames, other=second)
    if text.startswith("BACKEND_MATCH"):
        what = "it is compiled with another backend or other options now"
        return FailedGuard(text.partition(" Cached backend")[0], "", "recompile-backend", what, frames)
    if "GLOBAL_STATE" in text or "global state" in text.lower():
        return _of_global_state(text, frames)
    if "torch_function_mode" in text or "TORCH_FUNCTION_MODE" in text:
        return FailedGuard(text, "", "recompile-global-state", "the stack of torch function modes changed", frames)
    guard, duck = _of_value(text, compiled_type, frames), _DUCK.search(head)
    return dataclasses.replace(guard, shared_size=int(duck[1])) if duck else guard


def type_name(name: str) -> str:
    """A type's name as users know it: ``torch.nn.modules.activation.ReLU`` is ``ReLU``."""
    return name.rpartition(".")[2] if name.startswith(("torch.", "__main__.", "builtins.")) else name


def about(subject: str, what: str) -> str:
    """A sentence from what a guard watches and ``FailedGuard.what``: ``x`` and ``it was 1`` give ``x was 1``."""
    if not subject:
        return what
    return f"{subject} {what.removeprefix('it ')}" if what.startswith("it ") else f"{subject}: {what}"


def since_made(failed: FailedGuard, now: str = "") -> str:
    """What changed since an artifact was made: ``x.shape[1]`` was 128 when it was made and is 130.

    Args:
        now: The value that the guard watches; empty if it is not known.
    """
    name = f"`{failed.source}`" if failed.source else ""
    if failed.sizes and failed.dimension is not None:
        was, new = failed.sizes
        return f"`{failed.source}.shape[{failed.dimension}]` was {was} when it was made and is {new}"
    if failed.was and now:
        return f"{name} was {failed.was} when it was made and is {now}"
    return about(name, failed.what.replace("when this was compiled", "when it was made"))


def without_type(check: str) -> str:
    """A check of an object's identity or type without the type's name that PyTorch prints after it."""
    return _TYPE_BEHIND.sub(")", check)


def _of_tensor(text: str, source: str, rest: str, frames: tuple[tuple[str, int], ...]) -> FailedGuard:
    if match := _SIZE.match(rest):
        index = int(match["index"])
        what = f"{match['what']} {match['expected']} → {match['actual']} in dimension {index}"
        both = (match["expected"], match["actual"])
        is_size = match["what"] == "size" and all(size.isdigit() for size in both)
        sizes = tuple(map(int, both)) if is_size else ()
        return FailedGuard(text, source, f"recompile-{match['what']}", what, frames, index, sizes=sizes)
    kind, _, values = rest.partition(" mismatch")
    codes = {
        "requires_grad": "requires-grad",
        "dispatch key set": "dispatch",
        "dtype": "dtype",
        "rank": "rank",
        "device index": "device",
    }
    code = f"recompile-{codes.get(kind, 'tensor')}"
    if kind == "requires_grad":
        now = "no longer" if "requires_grad=1" in values or "requires_grad=True" in values else "now"
        return FailedGuard(text, source, code, f"it {now} requires grad", frames)
    if kind == "dispatch key set" and (guard := _of_keys(text, source, values, frames)) is not None:
        return guard
    if match := _EXPECTED.search(values.strip(" .")):
        what = f"{kind} {match['expected']} → {match['actual']}"
        # Another number of dimensions is also another list of sizes.
        return FailedGuard(text, source, code, what, frames, changes=2 if kind == "rank" else 1)
    return FailedGuard(text, source, code, rest.rstrip("."), frames)


def _of_keys(text: str, source: str, values: str, frames: tuple[tuple[str, int], ...]) -> FailedGuard | None:
    """A guard on dispatch keys, which stand for a device, for inference mode, and for much else."""
    state, inference = _changed_inference(values)
    if devices := _changed_device(values):
        return FailedGuard(text, source, "recompile-device", devices, frames)
    changed = inference or _changed_keys(values)
    return FailedGuard(text, source, "recompile-dispatch", changed, frames, state=state) if changed else None


_DEVICE_KEYS = {"CPU": "cpu", "CUDA": "cuda", "MPS": "mps", "Meta": "meta", "XPU": "xpu"}
"""Dispatch keys that stand for a type of device.  They are compared before the device's index is."""


def _changed_device(values: str) -> str:
    """``it was on `cpu` and is on `cuda` now``; empty if the type of device is the same."""
    was, now = ([_DEVICE_KEYS[key] for key in one if key in _DEVICE_KEYS] for one in _key_sets(values) or ([], []))
    return f"it was on `{was[0]}` and is on `{now[0]}` now" if was and now and was != now else ""


def _key_sets(values: str) -> tuple[list[str], list[str]] | None:
    """The dispatch keys that were expected, and those that came."""
    sets = [re.findall(r"\w+", keys) for keys in re.findall(r"DispatchKeySet\(([^)]*)\)", values)]
    return (sets[0], sets[1]) if len(sets) == 2 else None


_INFERENCE = (
    ("ADInplaceOrView", "inference_tensor", "an inference tensor"),
    ("Autograd", "inference_mode", "used in inference mode"),
)
"""Dispatch keys that a tensor lacks if it was made, or is used, in ``torch.inference_mode``; a state, and words for it."""


def _changed_inference(values: str) -> tuple[str, str]:
    """The state of `_INFERENCE` that changed, and what changed; both empty if none did."""
    for key, state, what in _INFERENCE:
        was, is_now = (any(name.startswith(key) for name in names) for names in _key_sets(values) or ([], []))
        if was != is_now:
            return state, f"it is {what} now" if was else f"it was {what} when this was compiled"
    return "", ""


def _changed_keys(values: str) -> str:
    """Which dispatch keys came or went: ``dispatch keys: now Conjugate``."""
    sets = _key_sets(values)
    if sets is None:
        return ""
    new, gone = (", ".join(key for key in one if key not in other) for one, other in (sets[::-1], sets))
    parts = [f"now {new}" if new else "", f"no longer {gone}" if gone else ""]
    return "dispatch keys: " + ", ".join(part for part in parts if part)


def _of_value(text: str, compiled_type: str, frames: tuple[tuple[str, int], ...]) -> FailedGuard:
    tree = _expression(text)
    if match := _OF_OBJECT.match(text):
        return FailedGuard(text, readable(match["source"]), "recompile-object", "it is another object now", frames)
    if match := _NOT_FOUND.match(text):
        is_function = match["why"] == "Not a function"
        what = "it was a function when this was compiled and is not one now" if is_function else _MISSING
        source = readable(match["source"].removesuffix(".__code__") if is_function else match["source"])
        return FailedGuard(text, source, "recompile-type", what, frames)
    if match := _OWN_ATTRIBUTE.match(text):
        what = "it was that of the class when this was compiled, and the object has its own now"
        source = f"{readable(match['owner'])}.{match['name']}"
        return FailedGuard(text, source, "recompile-object", what, frames, was="of the class")
    if tree is not None and _is_condition(tree):
        what = f"`{readable(text)}` no longer holds"
        sizes = re.findall(r"\.size\(\)\[(\d+)\]", text)
        dimension = int(sizes[0]) if len(sizes) == 1 else None
        return FailedGuard(text, _first_read(readable(text)), "recompile-condition", what, frames, dimension)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _of_comparison(text, tree, frames)
    if isinstance(tree, ast.Call) and tree.args:
        return _of_check(text, tree, compiled_type, frames)
    return FailedGuard(text, readable(text) if tree is not None else "", "recompile-guard", text, frames)


def _of_comparison(text: str, tree: ast.Compare, frames: tuple[tuple[str, int], ...]) -> FailedGuard:
    """A guard that something has a value, or is an object."""
    operator, other = tree.ops[0], tree.comparators[0]
    left, right = readable(ast.unparse(tree.left)), ast.unparse(other)
    if isinstance(tree.left, ast.Call) and not left.startswith("len("):
        left = readable(ast.unparse(tree.left.args[0])) if tree.left.args else left
    if left.endswith(".training"):
        what = f"it was in {'train' if right == 'True' else 'eval'} mode when this was compiled"
        return FailedGuard(text, left, "recompile-training-mode", what, frames)
    if isinstance(operator, ast.Is) and not isinstance(other, ast.Constant):
        what = f"`{left}` and `{readable(right)}` were one object when this was compiled"
        return FailedGuard(text, left, "recompile-aliasing", what, frames, other=readable(right))
    # The length of a dictionary is printed as what is the case now, not as the guard.
    if isinstance(operator, (ast.Eq, ast.Is)) or (isinstance(operator, ast.NotEq) and left.startswith("len(")):
        return FailedGuard(text, left, "recompile-value", f"it was {right} when this was compiled", frames, was=right)
    return FailedGuard(text, left, "recompile-value", f"`{readable(text)}` no longer holds", frames)


def _of_check(text: str, call: ast.Call, compiled_type: str, frames: tuple[tuple[str, int], ...]) -> FailedGuard:
    """A guard that is a call, with what it watches as the first argument."""
    name = ast.unparse(call.func)
    source = readable(ast.unparse(call.args[0]))
    if "check_type_id" in name:
        was = type_name(compiled_type)
        what = f"it was a `{was}` when this was compiled" if was else "its type changed"
        return FailedGuard(text, source, "recompile-type", what, frames, was=was)
    if "check_obj_id" in name:
        return FailedGuard(text, source, "recompile-object", "it is another object now", frames)
    return FailedGuard(text, source, "recompile-value", f"`{readable(text)}` no longer holds", frames)


def _is_condition(tree: ast.expr) -> bool:
    """Whether a guard is more than *this thing has this value*: a range of sizes, two sizes that are equal, a ``not``."""
    if not isinstance(tree, ast.Compare):
        return isinstance(tree, (ast.BoolOp, ast.UnaryOp))
    sizes = any(isinstance(node, ast.Attribute) and node.attr in ("size", "stride") for node in ast.walk(tree))
    of_several = isinstance(tree.left, ast.Call) and len(tree.left.args) > 1  # min(50, k) >= 2
    return sizes or of_several or len(tree.ops) > 1 or isinstance(tree.left, ast.Constant)


def _first_read(expression: str) -> str:
    """The first variable that an expression reads, with its attributes and items: of ``2 <= x.size()[0]`` it is ``x``."""
    tree = _expression(expression)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)} if tree else set()
    chains = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        and id(node) not in called
        and not any(isinstance(part, ast.Call) for part in ast.walk(node))
    ]
    chains.sort(key=lambda node: (node.col_offset, -(node.end_col_offset or 0)))
    return ast.unparse(chains[0]) if chains else ""


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def readable(source: str) -> str:
    """A guard's source as the user would write it: ``L['self']._modules['drop'].training`` → ``self.drop.training``."""
    source = re.sub(r"\b[LG]\['([^']+)'\]", r"\1", source)
    if "._" in source:  # a large model has a hundred thousand guards
        source = re.sub(r"\._(?:modules|parameters|buffers)\['([^'\d][^']*)'\]", r".\1", source)
        source = re.sub(r"\._(?:modules|parameters|buffers)\['(\d+)'\]", r"[\1]", source)
    if "dict.keys" in source:
        source = re.sub(r"\blist\(dict\.keys\((.+)\)\)", r"list(\1)", source)
    if "__" not in source:
        return source
    source = re.sub(r"\b__import_(\w+)", lambda match: match[1].replace("_dot_", "."), source)
    return re.sub(r"\.__dict__\['([^']+)'\]", r".\1", source)


def readable_size(source: str) -> str:
    """``L['x'].size()[0]`` → ``x.shape[0]``, as people write it."""
    return re.sub(r"\.size\(\)\[(\d+)\]", r".shape[\1]", readable(source))


_NAMELESS = "__meta_utils_unknown_tensor"
"""What PyTorch calls a tensor that has no source, as one that a backend makes fake by itself (torch 2.11 to 2.14)."""


def is_nameless(source: str) -> bool:
    """Whether a source is of a tensor that nobody named: neither the user's code nor a guard knows it."""
    return source.startswith(_NAMELESS)


def _of_global_state(text: str, frames: tuple[tuple[str, int], ...]) -> FailedGuard:
    states = text.partition(":")[2].split()
    any_of_them = "global state of PyTorch changed (grad mode, autocast, default dtype, …)"
    what = f"global state changed: {', '.join(states)}" if states else any_of_them
    state, changes = states[0] if states else "", max(len(states), 1)
    return FailedGuard(text, "", "recompile-global-state", what, frames, state=state, changes=changes)
