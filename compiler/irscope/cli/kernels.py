"""``irscope kernel``: one Triton kernel, run without a GPU."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import shlex
import sys
from typing import Any

from irscope.cli.text import Paint, print_json, short_path, to_stdout
from irscope.driver.kernel_checks import described, keep
from irscope.ir.cpp_kernels import is_cpp
from irscope.lowering.cpp import sanitized
from irscope.store.store import Store
from irscope.system.commands import temporary_folder
from irscope.system.streams import complain
from irscope.system.trust import TrustError, check_trust, to_trust
from irscope.values.kernel.asking import KernelLine, ScriptKernel, StoredKernel
from irscope.values.kernel.blocks import value_text
from irscope.values.kernel.running import run_kernel
from irscope.values.kernel.text import (
    inputs_text,
    output_text,
    program_text,
    programs_text,
)
from irscope.vocabulary.visible import printable


def kernel(options: argparse.Namespace) -> int:
    """Runs the kernel; 1 if a check found something or the result differs.  Raises LookupError if it cannot be run."""
    if options.script:
        own = ScriptKernel(options.script, tuple(options.arguments), options.kernel, options.launch)
        answer = _answer(own.request(), options)
        return _told(dataclasses.replace(own, file=answer["file"], text=answer.pop("text")), answer, options)
    with Store(options.store) as store:
        report = store.report(store.find_run(options.run))
        report = report.of_target(options.target) if options.target else report
        stored = StoredKernel(store, report, options.kernel, options.compile)
        if is_cpp(stored.text) and not store.is_made_here(report.run):
            try:
                _check_trust(stored, options)
            except TrustError as error:
                complain(f"irscope: {printable(str(error))}")
                return 3
        answer = _answer(stored.request(options.launch - 1, values=not options.made_inputs), options)
        found = _told(stored, answer, options)
        keep(store, stored, answer)
        return found


def _check_trust(stored: StoredKernel, options: argparse.Namespace) -> None:
    """Raises TrustError if the user does not trust the text of a C++ kernel, which is machine code once it is compiled."""
    digest = hashlib.sha256(stored.text.encode("utf-8", "surrogateescape")).hexdigest()
    again = f"{shlex.join(['irscope', 'kernel', *options.given])} {to_trust(digest)}"
    how = f"It is C++ that irscope did not capture here into your own store, and would be executed. If you trust it: {again}"
    check_trust(stored.kernel.name, digest, options.trust, how)


def _answer(request: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    request = {**request, "program": options.program, "step": options.step, "find": options.watch}
    if not is_cpp(request.get("text", "")):
        return run_kernel(options.python, request)
    with temporary_folder() as folder:  # what other kernels give it is computed in eager mode
        library, env = sanitized(request["text"], options.python, folder)
        whole = {**request, "library": library, "step": False, "find": [], "before": [], "after": [], "memory": 0}
        return run_kernel(options.python, whole, env)


def _told(kernel: StoredKernel | ScriptKernel, answer: dict[str, Any], options: argparse.Namespace) -> int:
    answer = {**answer, **{key: [described(kernel, each) for each in answer[key]] for key in ("problems", "found")}}
    if options.json:
        print_json({**kernel.named, **answer})
    else:
        _print(kernel, answer, Paint(sys.stdout))
    differs = any(each["measure"] and each["measure"]["differs"] for each in answer["outputs"])
    return int(bool(answer["problems"] or answer["failed"]) or differs)


def _print(stored: StoredKernel | ScriptKernel, answer: dict[str, Any], paint: Paint) -> None:
    lines = [
        paint(printable(answer["kernel"]), "bold")
        + paint(printable("  " + ", ".join(f"{key} {value}" for key, value in stored.named.items())), "dim")
    ]
    lines += [programs_text(answer), inputs_text(answer)]
    lines += [f"{name} stands for {size}." for name, size in answer["symbols"].items()]
    lines += [f"{name} was not computed, but made from its shape: {why}" for name, why in answer["made"].items()]
    if answer["statements"]:
        lines += ["", *_statements(stored, answer, paint)]
    if answer["failed"]:
        lines.append(paint(printable(answer["failed"]), "red"))
    for output in answer["outputs"]:
        found = output["measure"]
        style = "yellow" if found is None else "red" if found["differs"] else "green"
        lines.append(paint(printable(output_text(output)), style))
    for problem in answer["problems"]:
        lines.append(paint(printable(problem["message"]), "red"))
        lines.append(f"  {problem['line']:>4}  {printable(problem['statement'])}")
        lines.append(paint(f"        {printable(problem['place'])}", "dim"))
    for access in answer["found"]:
        told = f"program {program_text(access['program'])} {access['kind']}s {access['argument']}[{access['index']}]"
        lines += [printable(told), f"  {access['line']:>4}  {printable(access['statement'])}", paint(f"        {printable(access['place'])}", "dim")]  # fmt: skip
    if not answer["problems"] and not answer["failed"]:
        lines.append("No access outside of a tensor, no read of memory that nothing wrote, no race, no new value that is not finite.")  # fmt: skip
    to_stdout(lines)


def _statements(stored: StoredKernel | ScriptKernel, answer: dict[str, Any], paint: Paint) -> list[str]:
    """The statements of the recorded program; where a line of the user's begins it is told once."""
    lines = [f"Program {program_text(answer['recorded'])}:"]
    rows, before = stored.text.split("\n"), ""
    known: dict[int, KernelLine] = {}
    for statement in answer["statements"]:
        number = statement["line"]
        here = known.setdefault(number, stored.line(number))
        place = f"{short_path(here.origins[0].file)}:{here.origins[0].line}" if here.origins else ""
        if place and place != before:
            lines.append(paint(f"        {printable(place)}", "cyan"))
            before = place
        nodes = paint(f"  → {', '.join(here.nodes[:3])}", "dim") if here.nodes else ""
        lines.append(f"  {number:>4}  {printable(rows[number - 1].strip())}{nodes}")
        for name, value in statement["values"].items():
            text = printable(f"{name}: {value_text(value)}")
            lines.append(f"          {paint(text, 'red') if name in statement['breaks'] else text}")
    if answer["is_cut"]:
        lines.append("The recording ends here: the program has more statements.")
    return [*lines, ""]
