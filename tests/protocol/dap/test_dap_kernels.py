"""Stepping into a Triton kernel: a program of it, statement by statement, with its blocks.  Triton's interpreter runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dap_client
import pytest
from dap_client import Client, until_stage, where
from irscope.cli.main import main
from irscope.store.store import Store
from kernel_runs import KERNEL, NAME, line_of, with_a_kernel
from support import triton_importable

TEXT = f"kernel/{NAME}.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("kernels")
    with_a_kernel(folder / "runs.db", folder)
    dap_client.WAIT_SECONDS = 300.0  # the process that runs the kernel imports torch and triton
    with triton_importable(), Client() as client:
        client.attach(str(folder / "runs.db"))
        yield client
        client.ask("disconnect")


def _in_program(client: Client, part: str) -> int:
    """To a statement of the kernel's program; its thread."""
    until_stage(client, TEXT, line_of(part))
    thread = int(client.move("stepIn")["threadId"])
    assert where(client, thread) == (TEXT, line_of(part))
    return thread


def _names_of_threads(client: Client) -> dict[int, str]:
    return {each["id"]: each["name"] for each in client.ask("threads")["threads"]}


def test_stepping_in_from_a_launch_enters_the_kernel(session: Client) -> None:
    until_stage(session, "output-code.py", next(n for n, row in enumerate(_output(session), 1) if f"{NAME}.run" in row))
    session.move("stepIn")
    assert where(session) == (TEXT, 1)
    program = session.move("stepIn")["threadId"]
    assert program != 1 and _names_of_threads(session)[program] == f"{NAME} program (0)"
    assert where(session, program) == (TEXT, line_of("    xnumel = 5"))
    assert session.top(program)["name"].endswith("[program (0)]")
    session.move("next", program)
    assert where(session, program) == (TEXT, line_of("r0_numel = 6"))
    session.move("stepBack", program)
    session.move("stepBack", program)
    assert where(session, program) == (TEXT, line_of("    xnumel = 5"))
    assert session.move("stepOut", program)["threadId"] == 1
    assert where(session) == (TEXT, line_of("    xnumel = 5"))  # the same line of the kernel's text
    session.move("stepOut")
    assert where(session)[0] == "output-code.py"


def _output(client: Client) -> list[str]:
    source = next(each for each in client.ask("loadedSources")["sources"] if each["name"] == "0/0 output-code.py")
    reference = source["sourceReference"]
    return list(client.ask("source", source=source, sourceReference=reference)["content"].split("\n"))


def test_variables_are_blocks_and_the_stack_has_the_node_and_the_users_line(session: Client) -> None:
    program = _in_program(session, "tmp3 =")
    scopes = session.scopes(program)
    made = session.variables(scopes["Statement"]["variablesReference"])
    assert [each["name"] for each in made] == ["tmp3"] and made[0]["value"].startswith("fp32[8, 8] from ")
    facts = {each["name"]: each for each in session.variables(made[0]["variablesReference"])}
    assert (facts["shape"]["value"], facts["masked"]["value"]) == ("(2) [8, 8]", "34")
    rows = session.variables(facts["elements"]["variablesReference"], start=0, count=1)
    elements = session.variables(rows[0]["variablesReference"])
    assert len(elements) == 8 and elements[7]["value"].strip("'\"").startswith("(")
    assert [each["name"] for each in session.variables(scopes["Blocks"]["variablesReference"])][:3] == [
        "tmp3",
        "tmp2",
        "tmp1",
    ]
    frames = [(frame["source"]["name"], frame["name"].partition(" = ")[0]) for frame in session.stack(program)]
    assert frames[:2] == [(f"0/0 {TEXT}", "tmp3"), ("0/0 post-grad-graph.py", "log")]
    assert (session.stack(program)[-1]["source"]["name"], session.stack(program)[-1]["line"]) == ("model.py", 5)
    assert float(session.evaluate("tmp3.max", program)) == pytest.approx(float(facts["max"]["value"]))


def test_a_block_in_an_expression_stands_for_its_elements(session: Client) -> None:
    program = _in_program(session, "tmp3 =")
    assert session.evaluate("(tmp3 != tmp3).any()", program) == "False"
    assert session.evaluate("(tmp2 > 0).all()", program) == "True"
    assert float(session.evaluate("(tmp2 - 9).max()", program)) == pytest.approx(
        float(session.evaluate("tmp2.max", program)) - 9
    )


def test_breakpoints_with_conditions_stop_in_the_program_that_meets_them(session: Client) -> None:
    program = _in_program(session, "tmp1 =")
    source = session.top(program)["source"]
    conditions = {line_of("tmp2 ="): "(tmp2 != tmp2).any()", line_of("tmp7 ="): "tmp7.nan == 0 and (tmp7 > 0).any()"}
    asked = [{"line": line, "condition": condition} for line, condition in conditions.items()]
    answers = session.ask("setBreakpoints", source=source, breakpoints=asked)["breakpoints"]
    assert [each["verified"] for each in answers] == [True, True]
    stop = session.move("continue", program)
    assert (stop["reason"], stop["threadId"]) == ("breakpoint", program)
    assert where(session, program) == (TEXT, line_of("tmp7 ="))
    assert session.move("reverseContinue", program)["reason"] != "breakpoint"
    until_stage(session, "output-code.py", 1)
    assert session.move("continue")["threadId"] == program  # found from outside of the kernel
    session.ask("setBreakpoints", source=source, breakpoints=[])


def test_who_writes_an_element(session: Client) -> None:
    """A data breakpoint stops in the program that writes the element, at its statement."""
    program = _in_program(session, "tmp3 =")
    scope = session.scopes(program)["Launch"]["variablesReference"]
    memory = next(each for each in session.variables(scope) if each["name"] == "out_ptr0")
    assert [each["name"] for each in session.variables(memory["variablesReference"])] == [f"[{at}]" for at in range(5)]
    info = session.ask("dataBreakpointInfo", variablesReference=memory["variablesReference"], name="[4]")
    assert info["description"] == "out_ptr0[4]"
    frame = session.top(program)["id"]
    assert session.ask("dataBreakpointInfo", name="tmp3", frameId=frame)["dataId"] is None
    wanted = [{"dataId": info["dataId"], "accessType": "write"}, {"dataId": "{}", "accessType": "write"}]
    found = session.ask("setDataBreakpoints", breakpoints=wanted)["breakpoints"]
    assert [each["verified"] for each in found] == [True, False]
    until_stage(session, "output-code.py", 1)
    stop = session.move("continue")
    assert (stop["reason"], stop["threadId"]) == ("data breakpoint", program)
    assert where(session, program) == (TEXT, line_of("tl.store("))
    session.ask("setDataBreakpoints", breakpoints=[])


def test_a_program_that_is_named(session: Client) -> None:
    asked = [{"name": f"{NAME}(0)"}, {"name": f"{NAME}(7)"}]
    session.ask("setFunctionBreakpoints", breakpoints=asked)
    until_stage(session, "output-code.py", 1)
    stop = session.move("continue")
    assert stop["reason"] == "function breakpoint"
    assert where(session, stop["threadId"]) == (TEXT, line_of("    xnumel = 5"))
    session.ask("setFunctionBreakpoints", breakpoints=[])


def test_a_kernel_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    with_a_kernel(tmp_path / "runs.db", tmp_path)
    with Client() as client:
        client.attach(str(tmp_path / "runs.db"), python="/bin/false")
        until_stage(client, TEXT, line_of("tmp3 ="))
        assert "ended with 1" in client.move("stepIn")["description"]
        client.ask("disconnect")


def test_the_first_value_that_is_not_finite_and_what_is_kept(tmp_path: Path) -> None:
    """The filter runs to it, and what the check found is in the store, as `irscope kernel` puts it there."""
    text = KERNEL.replace("tl.sum(tmp6, 1)", "tl.sum(tmp6 * 1e30 * 1e30, 1)")
    for name in ("debugger", "command"):
        with_a_kernel(tmp_path / f"{name}.db", tmp_path, text)
    with triton_importable(), Client() as client:
        client.attach(str(tmp_path / "debugger.db"))
        answer = client.ask("setExceptionBreakpoints", filters=["kernel-check"])
        assert [each["verified"] for each in answer["breakpoints"]] == [True]
        until_stage(client, "output-code.py", 1)
        stop = client.move("continue")
        assert stop["reason"] == "exception" and "not finite: tmp7" in stop["description"]
        assert where(client, stop["threadId"]) == (TEXT, line_of("tmp7 ="))
        assert (
            client.ask("evaluate", expression="tmp7.inf", frameId=client.top(stop["threadId"])["id"])["result"] == "5"
        )
        client.ask("disconnect")
        assert main(["kernel", "--kernel", NAME, "--store", str(tmp_path / "command.db")]) == 1
    kept = []
    for name in ("debugger", "command"):
        with Store(str(tmp_path / f"{name}.db")) as store:
            report = store.report(store.find_run(None))
            kept.append((report.findings, report.kernels[0].checked))
    assert kept[0] == kept[1]
    assert [(each.code, each.range.start.line) for each in kept[0][0]] == [("kernel-non-finite", 6)]
