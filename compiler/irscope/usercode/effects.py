"""What code does beside giving a value: nothing, only output, or something else.

Both answers are allow lists, and a name counts only for what it is bound to in its file.  What is not resolved, such as a
method of an argument, may do anything.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Sequence

from irscope.usercode.bindings import Bindings, Function, asked_once, dotted, last_word
from irscope.usercode.source import parse_text
from irscope.usercode.special_methods import SPECIAL, operands


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BUILTINS = _words("""
abs all any bin bool bytes callable chr complex dict divmod enumerate float format frozenset getattr hasattr hash hex id
int isinstance issubclass len list max min oct ord pow range repr reversed round set slice sorted str sum tuple type zip
""")
_ITERATING = _words("all any dict enumerate frozenset list math.fsum math.prod max min set sorted sum tuple zip")
"""Functions that use up an iterator."""
_ITERATORS = _words("enumerate filter iter map reversed zip")
"""Builtins that give one."""
_TENSOR = _words("""
abs absolute acos acosh add addbmm addcdiv addcmul addmm all allclose amax amin aminmax angle any argmax argmin argsort
argwhere asin asinh atan atan2 atanh baddbmm bfloat16 bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm bool
broadcast_to byte ceil chunk clamp clamp_max clamp_min clip clone contiguous cos cosh count_nonzero cpu cross cuda cummax
cummin cumprod cumsum data_ptr det detach diag diag_embed diagonal diff dim dist div divide dot double element_size eq equal
erf exp expand expand_as expm1 flatten flip float floor floor_divide fmod frac gather ge get_device greater greater_equal gt
half histc hypot index_add index_copy index_fill index_select inner int inverse is_complex is_contiguous is_floating_point
isclose isfinite isinf isnan isreal item kron kthvalue le lerp less less_equal lgamma log log10 log1p log2 log_softmax
logaddexp logical_and logical_not logical_or logical_xor logit logsumexp long lt masked_fill masked_scatter masked_select
matmul max maximum mean median min minimum mm movedim mul multiply mv nan_to_num nanmean nanmedian nansum narrow ndimension ne
neg negative nelement new_empty new_full new_ones new_tensor new_zeros nonzero norm numel numpy outer permute pin_memory pow
prod quantile ravel reciprocal relu remainder repeat repeat_interleave reshape reshape_as roll rot90 round rsqrt scatter
scatter_add select sgn sigmoid sign signbit sin sinc sinh size slogdet softmax sort split split_with_sizes sqrt square squeeze
std storage_offset stride sub subtract sum swapaxes t take take_along_dim tan tanh tensor_split tile to tolist topk trace
transpose tril triu true_divide trunc type type_as unbind unflatten unfold unique unique_consecutive unsqueeze untyped_storage
var view view_as where xlogy
""")
"""Methods of tensors that change none of them, and draw nothing.  Functions of torch and NumPy have their names, too."""
_FUNCTIONS = _TENSOR | _words("""
arange as_tensor atleast_1d atleast_2d avg_pool1d avg_pool2d binary_cross_entropy binary_cross_entropy_with_logits
broadcast_tensors bucketize cat cdist celu complex concat concatenate conv1d conv2d conv3d cosine_similarity cross_entropy
einsum elu embedding empty empty_like eye finfo from_numpy full full_like gelu group_norm hstack iinfo imag interpolate
is_grad_enabled is_tensor isin kl_div l1_loss layer_norm leaky_relu linear linspace logspace max_pool1d max_pool2d meshgrid
mse_loss nll_loss normalize one_hot ones ones_like pad real scalar_tensor scaled_dot_product_attention searchsorted silu
smooth_l1_loss softplus stack std_mean tensor tensordot var_mean vstack zeros zeros_like
""")
_OF_MODULES = frozenset(["bfloat16", "cpu", "cuda", "double", "float", "half", "to", "type"])
"""Methods that change a module in place."""
_OF_OTHERS = _words("add sort subtract")
"""Methods of tensors that change a set, a list, a counter or a store."""
_WITH_TEXTS = _words("div divide norm quantile to type")
"""Methods of tensors that take a text."""
_OTHERS = _words("""
buffers capitalize decode encode endswith format hex isdigit isoformat items join keys lower lstrip named_parameters
parameters replace rsplit rstrip startswith strip total_seconds upper values zfill
""")
"""Methods of texts, dictionaries, dates and modules that only read."""
_ANEW = _words("buffers iter keys named_parameters parameters items values")
"""Methods that give a separate iterator for each call."""
_PURE_MODULES = (
    "base64.", "decimal.", "fractions.", "glob.", "hashlib.", "inspect.", "json.", "math.", "os.path.", "re.", "string.",
    "struct.", "torch.Size", "torch.device", "torch.dtype", "torch.fft.", "torch.linalg.", "torch.special.", "zlib.",
)  # fmt: skip
_NOT_PURE = _words("base64.decode base64.encode decimal.setcontext json.dump json.load re.purge struct.pack_into")
"""What of these modules writes, or moves on in a file."""
_OF_TENSORS = ("torch", "torch.nn.functional", "torch.Tensor", "numpy")
_PURE = re.compile(
    r"time\.(time|perf_counter|monotonic|process_time)(_ns)?|datetime\.datetime\.(now|utcnow)|copy\.(copy|deepcopy)"
    r"|torch\.cuda\.(is_available|memory_allocated|max_memory_allocated|device_count)|os\.(cpu_count|environ\.get|getcwd|getenv|getpid)"
    r"|numpy\.(array(2string)?|asarray|average|gcd|interp|lcm|percentile)|dataclasses\.(asdict|astuple|fields|replace)"
)

_LEVELS = _words("critical debug error exception fatal info info_once log success trace warn warning warning_once")
_LOGGER = re.compile(
    r"logging\.(getLogger|Logger|LoggerAdapter)"
    r"|(accelerate|transformers\.utils|diffusers\.utils|\.+(\w+\.)*utils)\.logging\.get_logger"
)
_BAR = re.compile(r"tqdm(\.\w+)*\.(tqdm|trange)")
_BAR_METHODS = _words("display refresh set_description set_description_str set_postfix set_postfix_str update write")
_KINDS = (
    (_LOGGER, _LEVELS),
    (_BAR, _BAR_METHODS),
    (re.compile(r"rich\.console\.Console|rich\.get_console"), frozenset(["log", "print", "print_json", "rule"])),
    (re.compile(r"rich\.progress\.Progress"), frozenset(["advance", "refresh", "update"])),
)
"""What makes an object that only writes, and the methods with which it writes."""
_OUTPUT = re.compile(
    r"builtins\.print|pprint\.(pprint|pp)|rich\.print|sys\.(stdout|stderr)\.(write|flush)|tqdm(\.\w+)*\.tqdm\.write"
    r"|warnings\.(warn|warn_explicit|simplefilter|filterwarnings|resetwarnings|catch_warnings)"
)
_LOG = re.compile(
    rf"(absl\.logging|logging|loguru\.logger|logging\.root|logging\.Logger)\.({'|'.join(sorted(_LEVELS))})"
)
_REDIRECTED = ("sys.stdout", "sys.stderr", "sys.displayhook", "warnings.showwarning", "warnings.formatwarning")
"""What output goes through; a file that binds one of them may do anything with it."""
_SETS_LOGGING = re.compile(r"(.*\.)?(setLoggerClass|setLogRecordFactory)")
_OF_LOGGING = re.compile(r"\w*(Handler|Filter|Formatter|Logger|LoggerAdapter|LogRecord)")
"""Bases of classes with which a logger may do more than to write."""
_DISPLAYS = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.Constant, ast.JoinedStr, ast.BinOp
)  # fmt: skip


class Effects:
    """The names of a file, and what its calls do."""

    def __init__(self, tree: ast.AST) -> None:
        self._bindings = Bindings(tree)
        self.names = self._bindings.names
        nodes = list(ast.walk(tree))
        self._read = {dotted(node) for node in nodes if isinstance(node, ast.Attribute)}
        self._called = {dotted(node.func) for node in nodes if isinstance(node, ast.Call)} | {"self"}
        self._called.discard("")
        self._methods = {method.name for method in self._bindings.methods}
        self._looked_at: set[ast.AST] = set()
        self._redirects = any(name in self._bindings for name in _REDIRECTED)
        self._own_loggers = any(map(_SETS_LOGGING.fullmatch, self._read | self._called)) or any(
            _OF_LOGGING.fullmatch(last_word(base)) for node in self._bindings.classes for base in node.bases
        )
        self._acting: frozenset[str] = frozenset()
        while (acting := self._acting_methods()) != self._acting:  # one that calls another one that acts does so, too
            self._acting = acting

    @asked_once(False)
    def _is_made_by(self, node: ast.AST, maker: re.Pattern[str]) -> bool:
        if isinstance(node, ast.Call):
            made = (names := self.names(node.func)) and all(maker.fullmatch(name) for name in names)
            return bool(made) and not any(keyword.arg in ("record", "file") for keyword in node.keywords)
        bound = self._bindings.of(node)
        return bool(bound) and all(isinstance(one, ast.AST) and self._is_made_by(one, maker) for one in bound)

    # --- output -------------------------------------------------------------------------------------------------------

    def can_be_left_out(self, statement: ast.AST, in_helper: bool = False) -> bool:
        """Whether all that a statement does is to print, to log, to warn, or to show progress.

        A helper may also return, and bind names of its own.
        """

        def block(statements: Sequence[ast.stmt]) -> bool:
            return all(self.can_be_left_out(inner, in_helper) for inner in statements)

        if isinstance(statement, ast.Expr) and self.only_writes(statement.value):
            return True
        if isinstance(statement, ast.If):
            asks = self.is_pure(statement.test) and not self._calls_own(statement)
            return asks and block([*statement.body, *statement.orelse])
        if isinstance(statement, ast.With):
            return all(self.only_writes(item.context_expr) for item in statement.items) and block(statement.body)
        if isinstance(statement, ast.For) and in_helper:
            return self._only_iterates(statement) and block([*statement.body, *statement.orelse])
        return isinstance(statement, ast.Pass) or (in_helper and self._only_gives(statement))

    def _only_iterates(self, loop: ast.For) -> bool:
        iterates = self.is_pure(loop.iter) and not list(self.used_up(loop))
        return iterates and isinstance(loop.target, ast.Name)

    def _only_gives(self, statement: ast.AST) -> bool:
        """Whether all that a statement does is to give a value: to names of a function, to its caller, or to nobody."""
        if isinstance(statement, ast.Assign):
            return all(isinstance(target, ast.Name) for target in statement.targets) and self.is_pure(statement.value)
        if isinstance(statement, (ast.Expr, ast.Return)):
            return statement.value is None or self.is_pure(statement.value)
        return False

    def only_writes(self, node: ast.AST) -> bool:
        """Whether an expression is a call that only writes, with arguments that do nothing."""
        if not isinstance(node, ast.Call) or not self.is_output(node):
            return False
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return all(map(self.is_pure, (*receiver, *node.args, *(keyword.value for keyword in node.keywords))))

    def is_output(self, call: ast.Call) -> bool:
        """Whether a call only writes, whatever its arguments do."""
        arguments = (*call.args, *(keyword.value for keyword in call.keywords))
        if self._redirects or any(self._calls_own(part) for node in (call, *arguments) for part in ast.walk(node)):
            return False
        if any(map(self._keeps_output, call.keywords)):
            return False
        is_filter = "filter" in last_word(call.func)
        if is_filter and any(isinstance(arg, ast.Constant) and arg.value == "error" for arg in call.args):
            return False  # warnings raise from now on
        return self.writes(call.func) or self._is_quiet(call.func, pure=False)

    def _keeps_output(self, keyword: ast.keyword) -> bool:
        """Whether a keyword of a call that writes may send the text to where the program reads it."""
        if keyword.arg in ("file", "stream"):
            return self.names(keyword.value) not in (("sys.stdout",), ("sys.stderr",))
        return keyword.arg in (None, "record")

    def writes(self, function: ast.expr) -> bool:
        """Whether a function is known to write only."""
        if names := self.names(function):
            return all(_OUTPUT.fullmatch(name) or (_LOG.fullmatch(name) and not self._own_loggers) for name in names)
        if not isinstance(function, ast.Attribute) or dotted(function) in self._bindings:
            return False
        if function.attr == "update" and f"{dotted(function.value)}.n" in self._read:
            return False  # the count of a bar is used
        kinds = _KINDS[1:] if self._own_loggers else _KINDS
        return any(function.attr in methods and self._is_made_by(function.value, maker) for maker, methods in kinds)

    def _is_quiet(self, node: ast.expr, pure: bool) -> bool:
        """Whether a function of the file only writes, or does not even that."""
        function = self._bindings.function(node)
        return function is not None and not function.decorator_list and self._does_little(function, pure)

    def _does_little(self, function: Function, pure: bool) -> bool:
        if function in self._looked_at:
            return False
        if any(isinstance(one, (ast.Global, ast.Nonlocal)) for one in ast.walk(function)):
            return False
        self._looked_at.add(function)
        body = [one for one in function.body if not isinstance(getattr(one, "value", None), ast.Constant)]
        try:
            quiet = isinstance(function, ast.FunctionDef) and all(self.can_be_left_out(one, True) for one in body)
            calls = (one for one in ast.walk(function) if isinstance(one, ast.Call))
            return quiet and not (pure and any(self.is_output(one) for one in calls))
        finally:
            self._looked_at.discard(function)

    # --- what only gives a value --------------------------------------------------------------------------------------

    def is_pure(self, node: ast.AST) -> bool:
        """Whether evaluating an expression has no effect."""
        if isinstance(node, ast.Call) and not self.is_pure_call(node):
            return False
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) or self._calls_own(node):
            return False
        return not list(self.used_up(node)) and all(map(self.is_pure, ast.iter_child_nodes(node)))

    def is_pure_call(self, call: ast.Call) -> bool:
        """Whether a call has no effect beside those of its arguments, and uses up none of them."""
        return self.only_gives_value(call) and not list(self.used_up(call))

    def only_gives_value(self, call: ast.Call) -> bool:
        """Whether a call does nothing but iterate over its arguments."""
        if any(map(self._may_act, call.keywords)):
            return False
        if names := self.names(call.func):
            if names == ("builtins.next",) and len(call.args) == 1:
                return isinstance(call.args[0], ast.Call) and last_word(call.args[0].func) in _ANEW
            return all(map(_is_pure_name, names))
        if isinstance(call.func, ast.Attribute):
            return self._is_pure_method(call, call.func)
        return self._is_quiet(call.func, pure=True)

    def _may_act(self, keyword: ast.keyword) -> bool:
        """Whether a call may change or call something because of a keyword."""
        if keyword.arg == "inplace":
            return getattr(keyword.value, "value", True) is not False
        if keyword.arg == "key":
            return not isinstance(keyword.value, ast.Lambda) and not self.names(keyword.value)
        return keyword.arg in (None, "out")

    def _is_pure_method(self, call: ast.Call, function: ast.Attribute) -> bool:
        """Whether a call of a method, of something that is not known, only gives a value."""
        method, receiver = function.attr, dotted(function.value)
        bound = self._bindings.of(function.value)
        if method == "get" and bound:
            return all(isinstance(value, ast.Dict) for value in bound)
        if dotted(function) in self._bindings or method in self._methods:
            return False  # it may be that of a class of the user's
        if receiver in ("self", "cls"):  # all others may be modules
            return method in ("buffers", "named_parameters", "parameters")
        if method in _OF_MODULES and receiver in self._called:
            return False
        if method in _OTHERS:
            return method != "replace" or len(call.args) > 1  # that of a path has one
        has_text = any(isinstance(arg, ast.Constant) and isinstance(arg.value, str) for arg in call.args)
        return method in _TENSOR - _OF_OTHERS and (not has_text or method in _WITH_TEXTS)

    def _acting_methods(self) -> frozenset[str]:
        """The special methods and properties of the file's classes that do more than to give a value."""
        methods = [one for one in self._bindings.methods if one.name in SPECIAL or one.decorator_list]
        return frozenset(one.name for one in methods if not self._does_little(one, pure=True))

    def _calls_own(self, node: ast.AST) -> bool:
        """Whether an expression may, by itself, call a special method or a property of the file that acts."""
        if isinstance(node, ast.Attribute) and node.attr in self._acting:
            return True
        asked, methods = operands(node)
        return not methods.isdisjoint(self._acting) and not all(map(self._is_builtin, asked))

    @asked_once(False)
    def _is_builtin(self, node: ast.AST) -> bool:
        """Whether a value is of no class of the file."""
        if _is_pythons_own(node):
            return True
        if isinstance(node, (*_DISPLAYS, ast.FormattedValue, ast.comprehension, ast.Subscript)):
            return all(self._is_builtin(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        if isinstance(node, ast.Call):
            return self.only_gives_value(node)
        bound = self._bindings.of(node)
        return bool(bound) and all(isinstance(value, ast.AST) and self._is_builtin(value) for value in bound)

    def used_up(self, node: ast.AST) -> Iterator[ast.expr]:
        """What an expression itself, or a loop, iterates over, and what may be an iterator, which is then used up."""
        iterated: Sequence[ast.expr] = []
        if isinstance(node, ast.Call):
            names = [name.removeprefix("builtins.") for name in self.names(node.func)]
            several = len(node.args) > 1 and names[:1] in (["max"], ["min"])
            if last_word(node.func) == "join" or (not several and not _ITERATING.isdisjoint(names)):
                iterated = node.args
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            iterated = [node.iter]
        elif isinstance(node, ast.Starred):
            iterated = [node.value]
        elif isinstance(node, ast.Compare) and any(isinstance(one, (ast.In, ast.NotIn)) for one in node.ops):
            iterated = node.comparators
        yield from (one for one in iterated if not self._lasts(one))

    @asked_once(False)
    def _lasts(self, node: ast.AST) -> bool:
        """Whether what is iterated is there afterwards: an iterator would be used up."""
        if isinstance(node, _DISPLAYS):
            return True
        if isinstance(node, ast.GeneratorExp):
            return all(self._lasts(one.iter) for one in node.generators)
        if isinstance(node, ast.Starred):
            return self._lasts(node.value)
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice)
        if isinstance(node, ast.Call):
            arguments = all(map(self._lasts, node.args)) if self.names(node.func) != ("builtins.range",) else True
            return self.is_pure_call(node) and (arguments or isinstance(node.func, ast.Attribute))
        if _is_pythons_own(node):
            return True
        bound = self._bindings.of(node)
        return bool(bound) and all(
            isinstance(value, ast.AST) and not self._is_iterator(value) and self._lasts(value) for value in bound
        )

    def _is_iterator(self, node: ast.AST) -> bool:
        names = self.names(node.func) if isinstance(node, ast.Call) else []
        return isinstance(node, ast.GeneratorExp) or any(one.removeprefix("builtins.") in _ITERATORS for one in names)


def _is_pythons_own(node: ast.AST) -> bool:
    """Whether it is a shape, or another name whose value is Python's own."""
    return getattr(node, "attr", "") == "shape" or getattr(node, "id", "") == "__file__"


@functools.lru_cache(maxsize=16)
def effects_of(tree: ast.AST) -> Effects:
    """The names of a file by its tree; many places of it may be asked about."""
    return Effects(tree)


def can_be_left_out(text: str, line: int) -> bool:
    """Whether all that the outermost statement that begins on a line of a text does is output."""
    tree = parse_text(text)
    at = next((n for n in ast.walk(tree or ast.Module([], [])) if isinstance(n, ast.stmt) and n.lineno == line), None)
    return tree is not None and at is not None and effects_of(tree).can_be_left_out(at)


def _is_pure_name(name: str) -> bool:
    head, _, last = name.rpartition(".")
    if head == "builtins":
        error = getattr(builtins, last, None)
        return last in _BUILTINS or (isinstance(error, type) and issubclass(error, BaseException))
    if head in _OF_TENSORS:
        return last in _FUNCTIONS or _PURE.fullmatch(name) is not None or name.startswith(_PURE_MODULES)
    if name in _NOT_PURE:
        return False
    return name.startswith(_PURE_MODULES) or bool(_PURE.fullmatch(name) or _LOGGER.fullmatch(name))
