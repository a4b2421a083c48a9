"""Torch-TensorRT's own functions, in the order in which its ``dryrun`` calls them.

What it prints then has no line of the user's and no reason, so irscope calls the same functions and looks at what they
make.  No engine is built.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.exporting import silence
from irscope.internals.hooks import replace_attribute, undo_all
from irscope.internals.names import PrivateName
from irscope.vocabulary.records import dataclass

_VERSIONS = "torch_tensorrt 2.11 and 2.13"
_DYNAMO = "torch_tensorrt.dynamo"
_MODULES = ("torch_tensorrt", f"{_DYNAMO}.conversion", f"{_DYNAMO}.partitioning", f"{_DYNAMO}.lowering")
_REGISTRY = f"{_DYNAMO}.conversion._ConverterRegistry"
_RUN, _WHY = "the dry run of Torch-TensorRT", "why converters of Torch-TensorRT refuse operators"

_SETTINGS = PrivateName(_RUN, f"{_DYNAMO}._settings", "CompilationSettings", _VERSIONS)
_LOWER_FIRST = PrivateName(_RUN, f"{_DYNAMO}.lowering", "pre_export_lowering", _VERSIONS)
_DECOMPOSITIONS = PrivateName(_RUN, f"{_DYNAMO}.lowering", "get_decompositions", _VERSIONS)
_LOWER = PrivateName(_RUN, f"{_DYNAMO}.lowering", "post_lowering", _VERSIONS)
_PASSES = PrivateName(
    "the lowering passes of Torch-TensorRT",
    f"{_DYNAMO}.lowering.passes._aten_lowering_pass",
    "ATEN_POST_LOWERING_PASSES.passes",
    _VERSIONS,
)
_CONVERTERS = PrivateName(_RUN, _REGISTRY, "DYNAMO_CONVERTERS", _VERSIONS)
_FAST = PrivateName(_RUN, f"{_DYNAMO}.partitioning", "fast_partition", _VERSIONS)
_GLOBAL = PrivateName(_RUN, f"{_DYNAMO}.partitioning", "global_partition", _VERSIONS)
_SUPPORT = PrivateName(_RUN, f"{_DYNAMO}.partitioning._adjacency_partitioner", "OpSupportTester", _VERSIONS)
_CANDIDATES = PrivateName(_WHY, _REGISTRY, "DYNAMO_ATEN_CONVERTERS", _VERSIONS)

CAPABILITY = (8, 0)
"""The compute capability that Torch-TensorRT sees if there is no GPU: that of an A100.  It looks for Jetson boards by it."""


@dataclass(frozen=True)
class Refusal:
    """Why the partitioner leaves a node to PyTorch.

    Args:
        has_converter: Whether Torch-TensorRT has a converter for the operator at all.
        validators: The names of the functions that refused this node, of its converters.
        said: What Torch-TensorRT logged meanwhile.
        is_dynamic: A converter takes the node, but for sizes that are symbols.
        is_complex: It computes with complex numbers.
    """

    has_converter: bool = False
    validators: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    is_dynamic: bool = False
    is_complex: bool = False


class TorchTensorRt:
    """The package, imported.  Raises ImportError with one line if that is not possible."""

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        with self._working() as has_gpu:
            try:
                with _printing_to_stderr():
                    for name in _MODULES:
                        importlib.import_module(name)
                    self.version = str(sys.modules["torch_tensorrt"].__version__)
            except Exception as error:
                told = " ".join(f"{type(error).__name__}: {error}".split())
                raise ImportError(f"torch_tensorrt cannot be imported: {told}") from error
            self._settings = _SETTINGS.get()()
        self.has_gpu: bool = has_gpu
        self.smallest: int = self._settings.min_block_size
        """How many operators an engine has at least."""

    @contextlib.contextmanager
    def _working(self) -> Iterator[bool]:
        """Keeps what it prints and logs away from the script's output, and gives whether there is a GPU.

        It asks for the GPU while it is imported, and for its defaults; lowering and partitioning need none.
        """
        cuda = self._torch.cuda
        has_gpu = bool(cuda.is_available())
        told = {"current_device": lambda: 0, "get_device_capability": lambda *_: CAPABILITY}
        undo = undo_all([replace_attribute(cuda, name, one) for name, one in told.items()]) if not has_gpu else None
        try:
            with silence(), warnings.catch_warnings(), _logging_kept(), _heard(logging.CRITICAL):
                warnings.simplefilter("ignore")
                with self._torch.no_grad():
                    yield has_gpu
        finally:
            if undo is not None:
                undo()

    def decomposed(self, exported: Any) -> Any:
        """The module of an exported program in the operators that Torch-TensorRT wants; the program is changed."""
        with self._working():
            first = _LOWER_FIRST.get()(exported, self._settings)
            return first.run_decompositions(_DECOMPOSITIONS.get()()).module()

    def lowered(self, module: Any, on_pass: Callable[[str, Any], None]) -> Any:
        """The module after the lowering passes, which may change it in place.

        Args:
            on_pass: Called after each pass with its name and the module.
        """

        def seen(one: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any) -> Any:
                made = one(*args)
                on_pass(getattr(one, "__name__", "pass"), made)
                return made

            return called

        with self._working():
            passes = _PASSES.find()
            before = list(passes or ())
            try:
                if passes is not None:
                    passes[:] = map(seen, before)
                return _LOWER.get()(module, self._settings)
            finally:
                if passes is not None:
                    passes[:] = before

    def partitioned(self, module: Any, smallest: int) -> Any:
        """A copy of the module, cut into modules; those for TensorRT have ``_run_on_acc`` in their names.

        Args:
            smallest: How many operators an engine has at least.
        """
        fx = self._torch.fx
        cut: Any = importlib.import_module("torch.fx.passes.splitter_base").FxNetSplitterInternalError

        def copied() -> Any:
            return fx.GraphModule(module, copy.deepcopy(module.graph))

        with self._working():
            self._configure()
            calls = [node for node in module.graph.nodes if node.op == "call_function"]
            tester = _SUPPORT.get()()
            all_of_it = all(tester.is_node_supported({}, node) for node in calls)
            try:
                return _FAST.get()(copied(), min_block_size=smallest, skip_fusion=all_of_it)[0]
            except cut:  # Torch-TensorRT then takes the other one, too
                return _GLOBAL.get()(copied(), min_block_size=smallest)[0]

    def refusals(self, module: Any) -> dict[str, Refusal]:
        """By the name of each operation that the partitioner does not give to TensorRT why not."""
        with self._working():
            self._configure()
            tester, table = _SUPPORT.get()(), _CANDIDATES.find() or {}
            calls = [node for node in module.graph.nodes if node.op == "call_function"]
            return {
                node.name: self._refusal(node, table.get(node.target, ()))
                for node in calls
                if not tester.is_node_supported({}, node)
            }

    def _refusal(self, node: Any, candidates: Any) -> Refusal:
        validators, said = [], []
        for one in candidates:
            validate = one.capability_validator
            with _heard(logging.DEBUG) as told:
                takes = bool(validate(node, self._settings))
            if takes:
                is_complex = any(_is_complex(each) for each in (node, *node.all_input_nodes))
                return Refusal(True, is_dynamic=not is_complex, is_complex=is_complex)
            validators.append(str(getattr(validate, "__name__", type(validate).__name__)))
            said += told
        return Refusal(bool(candidates), tuple(dict.fromkeys(validators)), tuple(dict.fromkeys(said)))

    def _configure(self) -> None:
        _CONVERTERS.get().set_compilation_settings(self._settings)


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """It has Python's warnings logged when it is imported, and its passes log by functions that give the root logger a
    handler, whose stream is not the script's."""
    root, show = logging.getLogger(), warnings.showwarning
    before = list(root.handlers)
    try:
        yield
    finally:
        for added in [one for one in root.handlers if one not in before]:
            root.removeHandler(added)
        if warnings.showwarning is not show:
            logging.captureWarnings(False)


@contextlib.contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """TensorRT's C++ prints a warning to standard output when it is imported, among what the script prints."""
    try:
        kept = os.dup(1)
    except OSError:  # the script has closed it
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _is_complex(node: Any) -> bool:
    return bool(getattr(getattr(node.meta.get("val"), "dtype", None), "is_complex", False))


@contextlib.contextmanager
def _heard(least: int) -> Iterator[list[str]]:
    """What Torch-TensorRT logs from a level on.  Nothing of what it logs goes elsewhere meanwhile."""
    logger = logging.getLogger("torch_tensorrt")
    told: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name != _REGISTRY:  # which tells its own steps
                told.append(" ".join(record.getMessage().split()))

    handler, level, propagates = Handler(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(least)
    logger.propagate = False
    try:
        yield told
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
