"""The candidates of `irscope tune`: one row for each, with what it may change in numerics.

To add one, add a row.  A candidate changes the text of a script, so what is tried is the patch that is shown.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable
from dataclasses import field

from irscope.fixing.compile_calls import compiling
from irscope.fixing.edits import argument
from irscope.fixing.source import Source, source_of
from irscope.vocabulary.records import dataclass

Change = Callable[[Source, "Facts"], str]
"""The changed text of a script.  Raises ValueError if it cannot be changed so."""


@dataclass(frozen=True)
class Facts:
    """What the script's process says about the program that is called first, as `irscope.runner.steps.facts_of` does.

    Args:
        compiled_again: Whether a function of the script was compiled for several sizes or values.
        breaks: Whether it has graph breaks.
    """

    device: str = "cpu"
    grad: bool = False
    convolutions: bool = False
    blocks: tuple[str, ...] = ()
    compiled_again: bool = False
    breaks: bool = False


@dataclass(frozen=True)
class Candidate:
    """One change that may pay.

    Args:
        name: As the table shows it.
        group: Of candidates of one group at most one is in a combination.
        numerics: What it may change in numbers beyond the order in which they are rounded; empty: nothing.  A candidate
            that changes numbers is never a part of a combination.
        applies: Whether it can pay in such a script.
        moves_compile: Whether other programs are compiled with it, so that they are compared with themselves without compile.
    """

    name: str
    group: str
    change: Change
    numerics: str = ""
    applies: Callable[[Facts], bool] = field(default=lambda facts: True)
    moves_compile: bool = False

    def text(self, text: str, facts: Facts) -> str:
        """The changed text; empty if the script has it already, or cannot be changed so."""
        try:
            changed = self.change(source_of(text), facts)
        except ValueError:
            return ""
        return changed if changed != text else ""


def candidates_for(facts: Facts) -> list[Candidate]:
    """The candidates that can pay in a script."""
    return [one for one in CANDIDATES if one.applies(facts)]


# --- changes ----------------------------------------------------------------------------------------------------------


def _passed(source: Source, facts: Facts, *, name: str, value: str) -> str:
    """Passes an argument to each ``torch.compile`` of the script."""
    calls = compiling(source)
    if not calls:
        raise ValueError("the script does not compile anything by itself")
    return source.changed({}, [argument(source, call, name, value) for call in calls])


def _set(source: Source, facts: Facts, *, line: str, module: str) -> str:
    if line.partition("=")[0].strip() in source.text:
        raise ValueError("the script sets it")
    return source.changed({}, [source.setting(line, module)])


def _compiled_modules(source: Source) -> Iterable[tuple[ast.Assign, ast.Call, str]]:
    """The statements ``name = torch.compile(module, …)``, their calls, and how the module is called."""
    for call in compiling(source):
        statement = source.parent(call)
        if isinstance(statement, ast.Assign) and isinstance(call, ast.Call) and len(statement.targets) == 1:
            module = ast.unparse(call.args[0]) if call.args else ""
            if module.replace(".", "").isidentifier() and not module.endswith(".step"):  # that is an optimizer's
                yield statement, call, module


def _one_module(source: Source) -> tuple[ast.Assign, ast.Call, str]:
    found = list(_compiled_modules(source))
    if len(found) != 1:
        raise ValueError("not one module is compiled")
    return found[0]


def _blocks(source: Source, facts: Facts) -> str:
    statement, call, module = _one_module(source)
    given = ", ".join([ast.unparse(one) for one in (*call.args[1:], *call.keywords)])
    block = source.fresh("block")
    loop = f"for {block} in {module}.{facts.blocks[0]}:\n    {block}.compile({given})"
    target = ast.unparse(statement.targets[0])
    return source.changed({statement: loop if target == module else f"{loop}\n{target} = {module}"})


def _channels_last(source: Source, facts: Facts) -> str:
    statement, _, module = _one_module(source)
    line = f"{module} = {module}.to(memory_format={source.torch}.channels_last)"
    return source.changed({}, [source.before(statement, line)])


def _optimizer(source: Source, facts: Facts) -> str:
    made = [
        statement
        for statement in source.all(ast.Assign)
        if isinstance(statement.value, ast.Call) and source.full_name(statement.value.func).startswith("torch.optim.")
        and "lr_scheduler" not in source.full_name(statement.value.func)
        and isinstance(statement.targets[0], (ast.Name, ast.Attribute))
    ]  # fmt: skip
    if len(made) != 1:
        raise ValueError("not one optimizer is made")
    name = ast.unparse(made[0].targets[0])
    return source.changed({}, [source.after(made[0], f"{name}.step = {source.torch}.compile({name}.step)")])


def _precision(source: Source, facts: Facts) -> str:
    if "matmul_precision" in source.text:
        raise ValueError("the script sets it")
    return source.changed({}, [source.setting(f'{source.torch}.set_float32_matmul_precision("high")', "torch")])


# --- the registry -----------------------------------------------------------------------------------------------------


def _argument(name: str, value: str, group: str, applies: Callable[[Facts], bool]) -> Candidate:
    return Candidate(
        f"{name}={value.strip(chr(34))}", group, functools.partial(_passed, name=name, value=value), "", applies
    )


def _inductor(name: str, numerics: str, applies: Callable[[Facts], bool]) -> Candidate:
    change = functools.partial(_set, line=f"torch._inductor.config.{name} = True", module="torch._inductor.config")
    return Candidate(f"{name}", name, change, numerics, applies)


def _always(facts: Facts) -> bool:
    return True


def _on_gpu(facts: Facts) -> bool:
    return facts.device == "cuda"


CANDIDATES = (
    _argument("mode", '"reduce-overhead"', "mode", _on_gpu),
    _argument("disable", "True", "mode", _always),  # what compiling itself is worth
    _argument("dynamic", "False", "sizes", _always),
    _argument("dynamic", "True", "sizes", lambda facts: facts.compiled_again),
    Candidate("compile the optimizer's step", "optimizer", _optimizer, applies=lambda facts: facts.grad),
    Candidate("compile each block", "where", _blocks, applies=lambda facts: bool(facts.blocks), moves_compile=True),
    Candidate("channels_last", "layout", _channels_last, applies=lambda facts: facts.convolutions),
    _inductor("freezing", "weights are constants: later changes of them have no effect", lambda facts: not facts.grad),
    _argument("mode", '"max-autotune-no-cudagraphs"', "mode", _always),
    _inductor("coordinate_descent_tuning", "", _on_gpu),
    _inductor("combo_kernels", "", _on_gpu),
    Candidate("float32 matmul precision high", "precision", _precision,
              "products of float32 matrices may be rounded to TF32 or bfloat16"),
    _argument("fullgraph", "True", "fullgraph", lambda facts: not facts.breaks),
)  # fmt: skip
"""In the order in which they are tried: what costs little to try, and often pays, comes first."""
