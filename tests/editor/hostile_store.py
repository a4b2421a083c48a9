"""Makes a run store in which every name and text is markup with a script: `hostile_store.py STORE FOLDER`.

Prints the run and the script.  Whoever shows any of it as anything but text runs `hacked()`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from irscope.protocol import (
    CaptureGap,
    Compile,
    CompileOutcome,
    Finding,
    Kernel,
    Lane,
    Origin,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Related,
    Severity,
    StageRef,
)
from irscope.store.store import Store
from irscope.usercode.source import digest_of

EVIL = "<img src=x onerror=parent.hacked()><script>parent.hacked()</script>"
"""Without a slash, so that it can be part of a file's name: see `name`."""

LINK = "[x](command:workbench.action.closeAllEditors) ![x](http://127.0.0.1:9/x.png)"


TURN = "\u202e"
"""Turns the direction of what follows."""


def name(what: str) -> str:
    """A name that holds markup, an icon of VS Code's, a link that is a command, and control characters."""
    link = "[l](command:workbench.action.closeAllEditors)"
    return f"{what}<img src=x onerror=parent.hacked()>&lt;b&gt;\"'`$(bug){link}\x1b[31m{TURN}evil"


GRAPH = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, arg0: "f32[4, 8][8, 1]cpu"):
         # File: {{script}}:4 in {name("f")}, code: y = x.relu()  # {EVIL}
        relu: "f32[4, 8]<b onmouseover=parent.hacked()>[8, 1]cpu" = torch.ops.aten.relu.default(arg0);  arg0 = None
        return (relu,)  # {EVIL}
"""

OUTPUT = f"""\
# {EVIL}
cpp_fused_relu_0 = async_compile.cpp_pybinding(['const float*'], r'''
extern "C" void kernel(const float* in_ptr0) {{{{ /* {EVIL} */ }}}}
''')
def call(args):
    cpp_fused_relu_0(arg0)  # {LINK}
"""


def main(path: str, folder: str) -> None:
    script = Path(folder) / name("train").replace("/", "")
    script = script.with_name(script.name + ".py")
    source = f"import torch  # {EVIL}\n\ndef f(x):\n    y = x.relu()  # {LINK}\n    return y\n\nf = torch.compile(f)\n"
    script.write_text(source)
    here = Range(Position(4, 8), Position(4, 16))
    with Store(path) as store:
        run = store.create_run(str(script), [EVIL], Lane.DEEP, digest_of(source))
        store.set_torch(run, EVIL)
        store.put_compile(run, Compile("0/0", name("f"), str(script), 3, CompileOutcome.COMPILED, 0, 1, 0.5, ()))
        texts = {
            "bytecode": ("python-bytecode", f"  4  0 RESUME  0 ({EVIL})\n"),
            "dynamo-graph": ("python", GRAPH.format(script=script)),
            "forward-graph": ("python", GRAPH.format(script=script)),
            "output-code": ("python", OUTPUT),
            f"kernel/{name('cpp')}": ("cpp", f'extern "C" void kernel() {{}} // {EVIL}\n'),
            name("pass"): (EVIL, EVIL),
        }
        for position, (stage, (language, text)) in enumerate(texts.items()):
            ref = StageRef(f"0/0/{stage}", stage.partition("/")[0], language, len(text))
            store.put_stage(run, "0/0", ref, text, float(position))
        for kernel in (name("cpp"), name("other")):
            stage = f"0/0/kernel/{name('cpp')}"
            store.put_kernel(run, Kernel(kernel, "cpp", "0/0", stage, (Origin(str(script), 4),)))
        store.put_source(run, str(script), source)
        store.put_finding(
            run,
            Finding(
                kind="graph-break",
                code="GB0059",
                severity=Severity.WARNING,
                message=f"Graph break: {EVIL} {LINK}",
                explanation=f"{EVIL}\n\n    {EVIL}\n\n{LINK}",
                hints=(EVIL, LINK),
                link="javascript:parent.hacked()",
                file=str(script),
                range=here,
                count=1,
                compiles=("0/0",),
                related=(Related(str(script), here, EVIL),),
            ),
        )
        store.put_gap(run, CaptureGap(name("gap"), EVIL))
        store.set_outcome(run, Outcome(OutcomeKind.SCRIPT_ERROR, 1, f"It raised {EVIL} {LINK}", 1.0))
    print(run)
    print(script)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
