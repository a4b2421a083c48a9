"""Run by test_symbolic.py, on its own: compares a symbolic trace with a full recording of every state.

Prints a line of JSON for each compile attempt: steps, how many states were compared, and the first difference.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo.symbolic_convert as symbolic_convert
import torch.utils.checkpoint
from irscope.events.recording import guard_text
from irscope.events.symbolic import Recorder
from irscope.events.trackers import describe, text_of
from irscope.internals.hooks import Hooks
from irscope.symbolic.trace import Walk


class Full:
    """Every state of every step, copied whole; as slow as it is simple."""

    def __init__(self) -> None:
        self.states: list[Any] = []
        self.active: list[Any] = []

    def see(self, translator: Any) -> None:
        output = translator.output
        plain = len(output.tracers) == 1  # not in the body of a higher-order operator
        self.active[-1] = {
            "function": translator.f_code.co_name,
            "stack": [describe(tracker) for tracker in translator.stack],
            "locals": {name: describe(tracker) for name, tracker in translator.symbolic_locals.items()},
        }
        nodes = list(output.graph.nodes) if plain else None
        guards = [guard_text(guard) for guard in output.guards.inner]
        self.states.append(([*reversed(self.active)], nodes, guards))

    def step(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def step(translator: Any) -> Any:
            if translator.instruction_pointer is None:
                return original(translator)
            self.active.append(None)
            self.see(translator)
            try:
                return original(translator)
            finally:
                self.active.pop()

        return step

    def difference(self, walk: Walk) -> str | None:
        if len(walk) != len(self.states):
            return f"{len(walk)} steps, not {len(self.states)}"
        last = len(walk) - 1
        # forwards, backwards, and to and fro: what is kept on the way must not matter
        order = [*range(last + 1), *range(last, -1, -7), *(i * 7919 % (last + 1) for i in range(0, last, 5))]
        for index in order:
            frames, nodes, guards = self.states[index]
            state = walk.state(index)
            seen = [{"function": f.function, "stack": list(f.stack), "locals": f.locals} for f in state.frames]
            true = [
                {
                    "function": f["function"],
                    "stack": [text_of(t) for t in f["stack"]],
                    "locals": {name: text_of(t) for name, t in f["locals"].items()},
                }
                for f in frames
            ]
            if seen != true:
                return f"step {index}: {seen} is not {true}"
            names = {name for name in state.nodes if ":" not in name}
            if nodes is not None and names != {node.name for node in nodes}:
                return f"step {index}: nodes {sorted(names ^ {node.name for node in nodes})}"
            if sorted(state.guards) != sorted(guards) if unordered else list(state.guards) != guards:
                return f"step {index}: guards too many {sorted(set(state.guards) - set(guards))}, missing {sorted(set(guards) - set(state.guards))}"
        return None


unordered = torch.__version__.startswith("2.9.")  # its guards are in a plain set
full = Full()
done: list[tuple[Any, Any, Walk, list[Any]]] = []


def begins() -> Any:
    full.states, full.active = full.states[-1:], full.active[-1:]  # the first step has been seen already
    trace_id = torch._guards.CompileContext.current_trace_id()
    return str(trace_id.compile_id), trace_id.attempt


def ends(recording: Any) -> None:
    data = json.loads(json.dumps(recording.data()))
    done.append((recording.compile, recording.attempt, Walk(data), list(full.states)))


def failed(error: BaseException) -> None:
    raise SystemExit(f"the recording failed: {error!r}")


def report() -> None:
    for compile, attempt, walk, states in done:
        full.states = states
        print(json.dumps({"compile": compile, "attempt": attempt, "last": walk.last, "steps": len(walk),
                          "functions": len({step.function for step in walk}), "nodes": len(walk.nodes(len(walk) - 1)),
                          "difference": full.difference(walk)}))  # fmt: skip


def tiny() -> None:
    def gen(x: torch.Tensor, n: int) -> Iterator[torch.Tensor]:
        for i in range(n):
            yield x + i

    def broken(x: torch.Tensor) -> torch.Tensor:
        print("in the middle")
        return x.sin()

    class Thing:
        def __init__(self, x: torch.Tensor) -> None:
            self.x = x

    @contextlib.contextmanager
    def around(log: list[Any]) -> Iterator[None]:
        log.append("in")
        yield
        log.append("out")

    @torch.compile(backend="eager")
    def f(x: torch.Tensor, d: dict[str, Any], n: int) -> torch.Tensor:
        y = x * 2
        seen = []
        for v in gen(y, 3):
            seen.append(v)  # noqa: PERF402
        z = [a + b for a, b in zip(seen, [1, 2, 3], strict=True) if b != 2]
        d["z"] = z
        try:
            d["no such key"]
        except KeyError as error:
            z.append(x + len(error.args))
        try:
            raise ValueError("mine")
        except ValueError:
            pass
        finally:
            z.extend([x])
        with torch.no_grad(), around(seen := []):
            w = sum(z)
        thing = Thing(w)
        inner: Any = lambda q, *more, **named: q + len(more) + named.get("k", 0)  # noqa: E731
        w = inner(thing.x, 1, *z, k=2)
        del thing
        while n > 0:
            n -= 1
            w = w + {i: i for i in range(n)}.get(1, 0)
        (first, *rest) = z
        w = broken(w) + first.sum() + len(rest)
        return torch.utils.checkpoint.checkpoint(lambda t: t.cos() * 2, w, use_reentrant=False)

    for size in (3, 4):
        f(torch.ones(size, requires_grad=True), {"a": 1}, 2)


def bert() -> None:
    import transformers

    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=37
    )
    model = torch.compile(transformers.BertModel(config).eval(), backend="eager")
    with torch.no_grad():
        model(input_ids=torch.arange(3, 19).reshape(2, 8))


recorder = Recorder(begins, ends, failed)
base = symbolic_convert.InstructionTranslatorBase
theirs = base.step
with Hooks([recorder.hook()], lambda gap: sys.exit(str(gap))):
    ours = base.step
    base.step = full.step(ours)
    {"tiny": tiny, "bert": bert}[sys.argv[1]]()
    base.step = ours
assert base.step is theirs
report()
