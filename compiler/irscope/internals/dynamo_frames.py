"""What Dynamo's functions hold in their local variables while they write a record or call a hook."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from irscope.internals import ahead_of_time
from irscope.internals.frames import FrameLook, callers, is_in
from irscope.internals.graph_calls import Lines, asking_line, calling_lines
from irscope.usercode.user_files import is_irscope_file, is_user_file
from irscope.vocabulary.function_names import qualified_name

_CONVERT_FRAME = "torch/_dynamo/convert_frame.py"
_SYMBOLIC_CONVERT = "torch/_dynamo/symbolic_convert.py"
_POLYFILLS = "torch/_dynamo/polyfills/"
_MODULE = "torch/nn/modules/module.py"
_TRANSFORMS = "torch/_functorch/"


def _is_code(value: object) -> bool:
    return isinstance(value, types.CodeType)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


# --- the function that is compiled ------------------------------------------------------------------------------------

COMPILED_CODE = FrameLook(
    what="the bytecode of the functions that are compiled",
    function="_compile",
    file=_CONVERT_FRAME,
    local="code",
    fits=_is_code,
    versions="2.9 to 2.13",
)
FRAME_TO_COMPILE = FrameLook(
    what="the arguments of a call that is compiled, and what changed at a recompilation",
    function="_compile",
    file=_CONVERT_FRAME,
    local="frame",
    fits=lambda value: isinstance(getattr(value, "f_locals", None), Mapping),
    versions="2.9 to 2.15",
)
TRACED_FUNCTION = FrameLook(
    what="which argument of a compiled function is which input of its graph",
    function="compile_and_call_fx_graph",
    file="torch/_dynamo/output_graph.py",
    local="tx.f_code",
    fits=_is_code,
    versions="2.11 and 2.13",
)


def code_being_compiled() -> types.CodeType | None:
    """The function that is about to be compiled, at the record ``dynamo_start``."""
    if (ahead := ahead_of_time.going_on()) is not None:
        return ahead.code
    code: types.CodeType | None = COMPILED_CODE.find()
    return code


def call_to_compile() -> tuple[types.CodeType, Mapping[str, Any]] | None:
    """The function that is about to be compiled and its local variables, at the record ``dynamo_start``; None if they
    cannot be found."""
    if ahead_of_time.going_on() is not None:
        return None  # of the example inputs alone
    frame = FRAME_TO_COMPILE.find()
    code = getattr(frame, "f_code", None)
    return (code, frame.f_locals) if isinstance(code, types.CodeType) else None


def resumed_code() -> types.CodeType | None:
    """With nested graph breaks: of the functions that go on where the resume function that is about to be compiled
    begins, the innermost; None if that is itself the only one."""
    call = call_to_compile()
    functions = call[1].get(RESUMED_INSIDE) if call is not None else None
    code = getattr(functions[0], "__code__", None) if isinstance(functions, list) and functions else None
    return code if isinstance(code, types.CodeType) else None


RESUMED_INSIDE = "__nested_resume_fns"
"""An argument of each resume function: those that it calls first, the innermost first (2.11 to 2.14)."""


def variables_of_the_call() -> list[Mapping[str, Any]]:
    """The local and the global variables of the call that is about to be compiled again, at the record
    ``recompile_reasons``; empty if they cannot be found."""
    frame = FRAME_TO_COMPILE.find()
    found = [] if frame is None else [frame.f_locals, getattr(frame, "f_globals", None)]
    return [names for names in found if isinstance(names, Mapping)]


def arguments_traced() -> tuple[str, ...] | None:
    """The names of the arguments of the function whose graph Dynamo is about to compile; None if the stack does not
    show them."""
    code: types.CodeType | None = TRACED_FUNCTION.find()
    if code is None:
        return None
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


# --- calls of compiled functions --------------------------------------------------------------------------------------

COMPILED_CALL = FrameLook(
    what="the call that triggered a recompilation",
    function="",  # the wrapper that `torch.compile` puts around a function; its name changes
    file="torch/_dynamo/eval_frame.py",
    local="",
    fits=lambda frame: isinstance(frame, types.FrameType),
    versions="2.13",
)


def callers_of_compiled_code() -> Iterator[types.FrameType]:
    """The frames below the innermost call of a compiled function, innermost first, at a record of its compile."""
    wrapper: types.FrameType | None = COMPILED_CALL.find()
    frame = wrapper and wrapper.f_back
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_called_by_transform() -> bool:
    """Whether ``vmap``, ``grad``, ``jvp`` or another transform of ``torch.func`` runs, as plain Python, a function that
    was compiled: the code that is being compiled is that function, or below it, and not a part of a function around the
    transform that could not be compiled."""
    is_entered = False
    for frame in callers():
        if is_in(frame.f_code, _TRANSFORMS):
            return is_entered
        is_entered = is_entered or COMPILED_CALL.is_at(frame)
    return False


class Entry(NamedTuple):
    """How the code that is about to be compiled was reached.

    Args:
        program: The name of what was passed to ``torch.compile``, if it is that which is compiled: the class of a
            module, or a function without its decorators.
        callers: The lines that called the compiled function, innermost first, and the line that called
            ``torch.compile``.
        module_class: The class of the module whose method the code is, or else of the innermost one whose method called
            it inside the program.
    """

    program: str = ""
    callers: Lines = ()
    module_class: str = ""


def entry_being_compiled() -> Entry:
    """How the code that is about to be compiled was reached, at the record ``dynamo_start``."""
    if (ahead := ahead_of_time.going_on()) is not None:
        owner = getattr(ahead.program, "__self__", ahead.program)
        return Entry(name_of_program(ahead.program), calling_lines(callers()), _class_of_module({"self": owner}))
    inside, between = False, False
    call = call_to_compile()
    module_class = _class_of_module(call[1]) if call is not None else ""
    for frame in callers():
        code = frame.f_code
        if not inside:
            inside = is_in(code, _CONVERT_FRAME)
        elif COMPILED_CALL.is_at(frame):
            program = "" if between else name_of_program(frame.f_locals.get("fn"), frame.f_locals.get("args"))
            lines = (*calling_lines(callers_of_compiled_code()), *asking_line(frame.f_locals.get("self")))
            return Entry(program, lines, module_class)
        else:
            between = between or not (is_in(code, _MODULE) or is_in(code, "torch/_dynamo/"))
            module_class = module_class or _class_of_module(frame.f_locals)
    return Entry()


def _class_of_module(names: Mapping[str, Any]) -> str:
    """The class of the module whose method has these local variables; empty if it is not the method of a module."""
    owner = names.get("self")
    return type(owner).__name__ if isinstance(owner, sys.modules["torch"].nn.Module) else ""


def name_of_program(program: Any, arguments: Any = ()) -> str:
    """What was passed to ``torch.compile``: the class of a module, or a function without its decorators; empty if it has no
    name.

    Args:
        arguments: The arguments of its call, which tell the class of the object if the methods of a class were passed.
    """
    if not callable(program):
        return ""
    program, owner = _undecorated(program)
    if not hasattr(program, "__qualname__"):
        return type(program).__name__  # a module, or another object that can be called
    function = str(getattr(program, "__name__", ""))
    if owner is None and function in _CALLS_OF_MODULES and arguments:
        owner = arguments[0]  # a class was passed
    if isinstance(owner, sys.modules["torch"].nn.Module) and (function.startswith("_") or function == "forward"):
        return type(owner).__name__
    is_method = owner is not None and not isinstance(owner, (type, types.ModuleType))
    name = f"{type(owner).__name__}.{function}" if is_method else qualified_name(program.__qualname__)
    return name if name.rpartition(".")[2].isidentifier() else ""


def _undecorated(program: Any) -> tuple[Any, Any]:
    """A program without its decorators, and the object that it is a method of; None for a plain function."""
    owner = getattr(program, "__self__", None)
    for _ in range(_MOST_DECORATORS):
        if isinstance(program, functools.partial):
            program = program.func
        elif isinstance(program, (types.FunctionType, types.MethodType)) and hasattr(program, "__wrapped__"):
            program = program.__wrapped__
        else:
            break
        owner = owner if owner is not None else getattr(program, "__self__", None)
    return program, owner


_MOST_DECORATORS = 100
_CALLS_OF_MODULES = ("_wrapped_call_impl", "_call_impl")


class Entrance(enum.Enum):
    """How the user's call of compiled code came to the function that is about to be compiled."""

    FUNCTION = "function"
    """It called the function itself."""
    MODULE = "module"
    """It called a module, whose ``forward`` the function is."""
    INDIRECT = "indirect"
    """Other functions are between: the function goes on after a graph break, or a library calls it."""


def entrance() -> Entrance:
    """How the function that is about to be compiled was entered, at the record ``dynamo_start``."""
    inside, wrapper = False, False
    found = Entrance.FUNCTION
    for frame in callers():
        code = frame.f_code
        if not inside:
            inside = is_in(code, _CONVERT_FRAME)
        elif is_in(code, _MODULE):
            found = Entrance.MODULE
        elif not is_in(code, "torch/_dynamo/") and not is_irscope_file(code.co_filename):  # a trial sees each call
            # The function that called it: the user's where `torch.compile`'s wrapper was passed on the way.
            return found if wrapper and is_user_file(code.co_filename) else Entrance.INDIRECT
        wrapper = wrapper or COMPILED_CALL.is_at(frame)
    return Entrance.INDIRECT


# --- graph breaks -----------------------------------------------------------------------------------------------------

BREAK_ERROR = FrameLook(
    what="the exact place of a graph break",
    function="log_graph_break",
    file=_SYMBOLIC_CONVERT,
    local="exc",
    fits=lambda value: value is None or isinstance(value, BaseException),  # torch 2.9 writes some without an exception
    versions="2.13",
    required=False,  # other functions write graph breaks, too, while the exception is being handled
)
FULLGRAPH = FrameLook(
    what="whether fullgraph=True makes a graph break an error",
    function="_compile",
    file=_CONVERT_FRAME,
    local="one_graph",
    fits=_is_bool,
    versions="2.13",
    required=False,  # events that come outside of a compile are findings, too
)
ASKED_FULLGRAPH = FrameLook(
    what="whether fullgraph=True makes a generator function an error",
    function="__call__",
    file=_CONVERT_FRAME,
    local="self._one_graph",
    fits=_is_bool,
    versions="2.13",
)


def break_error() -> BaseException | None:
    """The exception of the graph break that is being written, or else the one that is being handled.

    Dynamo sometimes writes a graph break after its exception was caught.
    """
    error: BaseException | None = BREAK_ERROR.find()
    return error if error is not None else sys.exc_info()[1]


def is_polyfill(file: str) -> bool:
    """Whether a file has Dynamo's own versions of builtins in Python: what breaks there breaks in the builtin's call."""
    return _POLYFILLS in file.replace("\\", "/")


def is_fullgraph() -> bool:
    """Whether the compile that is going on must be one graph; False outside of a compile."""
    return bool(FULLGRAPH.find()) or ahead_of_time.going_on() is not None


def generator_asked() -> bool | None:
    """Whether ``fullgraph`` is asked of a generator function that Dynamo is about to refuse.

    None if ``torch.compile`` was asked for a function above it.
    """
    inside = False
    for frame in callers():
        if is_in(frame.f_code, _CONVERT_FRAME):
            inside = True
        elif inside:
            return bool(ASKED_FULLGRAPH.find()) if COMPILED_CALL.is_at(frame) else None
    return None


# --- where Dynamo is in the user's code -------------------------------------------------------------------------------

TRANSLATOR = FrameLook(
    what="the columns of what Dynamo was tracing",
    function="step",
    file=_SYMBOLIC_CONVERT,
    local="self",
    fits=lambda value: (
        hasattr(getattr(value, "current_instruction", None), "positions") and _is_code(getattr(value, "f_code", None))
    ),
    versions="2.13",
    required=False,  # no trace is running, or the exception came from elsewhere
)


def live_translators() -> list[Any]:
    """Dynamo's translators that are at work in this thread, one per function that is traced, innermost first.

    A translator has ``f_code``, ``lineno`` and ``current_instruction.positions``, which may be None.
    """
    found: list[Any] = []
    for frame in callers():
        if TRANSLATOR.is_at(frame):
            found.append(TRANSLATOR.read(frame))
        else:
            found += _translator_in(frame)
    return [each for each in found if each is not None]


def jump_tests(translator: Any) -> Any:
    """The instruction that gave what the translator's conditional jump tests; None if it is at no jump."""
    current = translator.current_instruction
    if "JUMP" not in getattr(current, "opname", ""):
        return None
    before = None
    for instruction in getattr(translator, "instructions", ()):
        if instruction is current:
            return before
        before = instruction
    return None


def translators_passed(error: BaseException) -> list[Any]:
    """The translators that an exception passed through, outermost first."""
    found: list[Any] = []
    traceback = error.__traceback__
    while traceback is not None:
        found += _translator_in(traceback.tb_frame)
        traceback = traceback.tb_next
    return found


def _translator_in(frame: types.FrameType) -> Iterator[Any]:
    """The translator in a frame of any of Dynamo's methods; of some that have ended the variables are gone."""
    if is_in(frame.f_code, _SYMBOLIC_CONVERT) and TRANSLATOR.fits(translator := frame.f_locals.get("self")):
        yield translator


# --- guards on shapes -------------------------------------------------------------------------------------------------

SHAPE_GUARD = FrameLook(
    what="which guards on sizes are checked at each call",
    function="_log_guard",
    file="torch/fx/experimental/symbolic_shapes.py",
    local="prefix",
    fits=lambda value: isinstance(value, str),
    versions="2.9 to 2.15",
)


def shape_guard_is_checked() -> bool:
    """Whether the guard of a record ``guard_added_fast`` is one that is checked from then on.

    PyTorch writes what it only looks up, while its guards are suppressed, in the same way.  In lowering, where sizes
    that happen to be equal are compared, that is most of what it writes.
    """
    return "suppressed" not in (SHAPE_GUARD.find() or "")
