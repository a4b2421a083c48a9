"""What ``irscope --help`` says of the program as a whole."""

from __future__ import annotations

DESCRIPTION = """\
See what torch.compile did to a script: graph breaks and recompilations on the exact source range,
every stage from the bytecode down to the generated kernels, and the way from a line to its kernels."""

EXAMPLES = """\
examples:
  irscope run train.py -- --steps 10          run it, print the findings and the compiles
  irscope run train.py --lane fast            graph breaks and recompilations only, in seconds
  irscope run train.py --json > report.json   the same as data (docs/json.md)
  irscope run -m package.train -- --steps 10  a module, as `python -m package.train`
  irscope run train.ipynb                     the code cells of a notebook, in order
  irscope run --pytest tests/test_model.py::test_forward     tests, as `python -m pytest`
  irscope run --model 'net.py:Net()' --inputs 'net.py:torch.ones(2, 8)'     a model without a script
  irscope run train.py --steady-calls 32      stop once nothing new appears
  irscope run train.py --pipeline torchscript      through another compiler than Inductor
  irscope profile train.py                    what each line costs, measured, next to what is possible
  irscope open trace.json.gz                  the same of a trace that torch.profiler exported
  irscope pipelines                           the compilers, and which of them work here
  irscope run train.py --world 1024 --ranks 0,37   ranks of a job, without the others: where they differ
  irscope run train.py --target h100          also the kernels that an H100 would get, on any machine
  irscope verify-target h100 train.py         whether this H100 gets the kernels that were predicted for it
  irscope targets                             the devices that bounds are known for, with the source of each figure
  irscope env create xla                      an environment with what a compiler needs
  irscope run train.py --exit-code            exit as train.py did, for scripts and CI
  irscope check train.py --max-graphs 1       fail if there are graph breaks, recompilations or two graphs (docs/ci.md)
  irscope fix train.py                        fixes that were tried: same results, a graph break fewer
  irscope view                                the runs, stages and panels in a web browser
  irscope view --open model.py:42             the same, at this line
  irscope list                                the runs in the store, newest first
  irscope show                                the newest run again
  irscope show --compile 0/0                  the stages of one compile
  irscope show --compile 0/0 --stage post-grad-graph
  irscope show --kernel cpp_fused_relu_0      the source of a generated kernel
  irscope show --stage 0/0/kernel/cpp_fused_relu_0/assembly      created on request; sass and passes of Triton too
  irscope show --line model.py:42             the nodes and kernels that came from a line
  irscope show --guards                       what is checked before compiled code runs, and what failed
  irscope show --time                         where the compile time went, over all compiles
  irscope show --costs --target h100          what each kernel moves and computes, and the bound
  irscope explain --fusion KERNEL KERNEL      why Inductor did not fuse the two
  irscope diff                                what changed since the previous run
  irscope values train.py --compile 0/0       what each node of a graph computes on the real inputs
  irscope diverge train.py                    the first node at which compiled code and its graph differ
  irscope run train.py --write-baseline irscope-baseline.json
  irscope run train.py --baseline irscope-baseline.json      only what is new since then
  eval "$(irscope completion bash)"           completion with the Tab key, in this shell

A comment `# irscope: ignore[GB0059] reason` hides a finding on its line.

exit codes:
  0   captured, whatever the script did: its own failure is in the outcome (with `run --exit-code`: the script's own code)
  1   `irscope diverge` found a divergence, `irscope verify-target` a difference, or `irscope check` what must not be there
  2   wrong usage, the store has nothing with that name, or `irscope check` has no such file
  3   the environment cannot run it (no such file, no torch, torch too old), or a file or the store cannot be used
  4   with `irscope check`: a script failed
  70  irscope itself failed; with IRSCOPE_DEBUG=1 it shows the traceback
  74  standard output could not be written, as on a full disk
  124 with `run --exit-code`: a limit ended the run
  130 interrupted (Ctrl-C)
  141 the reader of the output ended early, as in `irscope list | head -1`"""
