"""Which rank is missing, from what the ranks say; and what is said where a process cannot be looked into."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.comparing.ranks.hanging import RankState, Waiting, dead_of, hangs_of
from irscope.driver import attaching
from irscope.driver.attaching import processes_of, ras_report, states_of
from irscope.internals.stacks import collective_of, line_of, phase_of

TORCH = "/v/lib/python3.12/site-packages/torch"


def state(rank: int, reached: int, *waits: tuple[int, str, str], group: str = "0", of: int = 4) -> RankState:
    waiting = tuple(Waiting(group, number, name, sizes, 5, "/train.py", 7) for number, name, sizes in waits)
    groups, machine = {group: list(range(of))}, tuple(range(of))
    return RankState(100 + rank, rank, of, machine, groups=groups, reached={group: reached}, waiting=waiting)


def test_the_first_collective_that_waits_says_who_is_missing() -> None:
    same = (3, "all_reduce", "[[4]]")
    states = [state(0, 4, same, (4, "all_reduce", "[[4]]")), state(1, 3, same), state(2, 2)]
    (hang,) = hangs_of(states)
    assert (hang.number, hang.waiting, hang.missing, hang.differing) == (3, (0, 1), (2, 3), {})
    assert dead_of(states) == [3], "rank 3 has no process"
    assert hangs_of([state(rank, 3, same) for rank in range(4)]) == [], "all are there: it only takes time"


def test_collectives_of_another_operation_or_size_do_not_match() -> None:
    first, other = (3, "all_reduce", "[[4]]"), (3, "all_reduce", "[[8]]")
    states = [state(0, 3, first), state(1, 3, other), state(2, 3, (3, "barrier", ""))]
    (hang,) = hangs_of([*states, state(3, 3, first)])
    assert hang.missing == () and hang.differing == {
        0: "all_reduce of [[4]]", 1: "all_reduce of [[8]]", 2: "barrier", 3: "all_reduce of [[4]]",
    }  # fmt: skip
    uneven = [state(rank, 3, (3, "all_to_all", f"[[{rank}]]"), of=2) for rank in range(2)]
    assert hangs_of(uneven) == [], "an all-to-all may send another number to each"


def test_another_group_does_not_miss_who_is_not_in_it() -> None:
    states = [state(0, 1, (1, "all_reduce", "[[4]]"), group="1", of=2), state(5, 9, group="2")]
    assert [hang.missing for hang in hangs_of(states)] == [(1,)]


def test_without_records_the_stacks_count() -> None:
    there = RankState(1, 0, 2, (0, 1), "/train.py", 9, "<module>", "all_reduce")
    (hang,) = hangs_of([there, RankState(2, 1, 2, (0, 1), "/train.py", 4, "spin")])
    assert (hang.operation, hang.waiting, hang.missing, hang.line) == ("all_reduce", (0,), (1,), 9)
    other = RankState(2, 1, 2, (0, 1), "/train.py", 4, "<module>", "broadcast")
    (hang,) = hangs_of([there, other])
    assert hang.differing == {0: "all_reduce", 1: "broadcast"}
    assert hangs_of([there, RankState(2, 1, 2, (0, 1), collective="all_reduce")]) == []


def test_what_a_stack_says(tmp_path: Path) -> None:
    script = str(tmp_path / "train.py")
    compiles = [
        (f"{TORCH}/_inductor/codegen/triton.py", 5, "codegen_kernel"),
        (f"{TORCH}/_inductor/scheduler.py", 5, "codegen"),
        (f"{TORCH}/_dynamo/convert_frame.py", 9, "_compile"),
        ("/usr/lib/python3.12/contextlib.py", 81, "inner"),
        (script, 30, "train"),
    ]
    assert (phase_of(compiles), line_of(compiles)) == ("generating code", (script, 30))
    runs = [
        (f"{TORCH}/_inductor/output_code.py", 5, "__call__"),
        (f"{TORCH}/_functorch/_aot_autograd/runtime_wrappers.py", 5, "f"),
    ]
    assert phase_of(runs) == "" == collective_of(runs), "compiled code that runs is not a compile"
    waits = [
        (f"{TORCH}/distributed/distributed_c10d.py", 5, "all_reduce"),
        (f"{TORCH}/distributed/c10d_logger.py", 5, "wrapper"),
        (script, 3, "f"),
    ]
    gathers = [
        (f"{TORCH}/distributed/distributed_c10d.py", 5, "all_gather"),
        (f"{TORCH}/distributed/distributed_c10d.py", 9, "all_gather_object"),
        (script, 3, "f"),
    ]
    assert (collective_of(waits), collective_of(gathers)) == ("all_reduce", "all_gather_object")


def unarmed(monkeypatch: pytest.MonkeyPatch, code: int, stdout: str, stderr: str) -> RankState:
    """What is said of a process of which py-spy prints this."""
    monkeypatch.setattr("shutil.which", lambda name: "/bin/py-spy")
    monkeypatch.setattr("os.path.exists", lambda path: False)
    done = SimpleNamespace(returncode=code, stdout=stdout, stderr=stderr)
    monkeypatch.setattr(attaching, "run_bounded", lambda command, seconds: done)
    (found,) = states_of([os.getpid()])
    return found


def test_without_the_right_to_trace_the_capability_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scope = tmp_path / "scope"
    scope.write_text("1\n", encoding="ascii")
    monkeypatch.setattr(attaching, "_PTRACE_SCOPE", str(scope))
    denied = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n"
    found = unarmed(monkeypatch, 1, "", denied)
    assert found.unknown == (
        f"irscope may not read the memory of process {os.getpid()}: the capability CAP_SYS_PTRACE is missing "
        "(kernel.yama.ptrace_scope is 1). Run it as root, or start the container with --cap-add SYS_PTRACE; or start the "
        "job with `irscope run`, whose ranks answer without it."
    )
    assert unarmed(monkeypatch, 1, "", "Error: no\nlast line\n").unknown.endswith(": last line")
    assert "Unexpected output" in unarmed(monkeypatch, 0, "[{}]", "").unknown


def test_without_py_spy_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    (found,) = states_of([os.getpid()])
    assert found.unknown == (
        "py-spy is not installed: `/nowhere/python -m pip install py-spy`. Without it only ranks that `irscope run` has "
        "started answer."
    )


def test_what_py_spy_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def thread(number: int, *frames: tuple[str, int, str]) -> dict[str, Any]:
        told = [{"filename": file, "line": line, "name": name} for file, line, name in frames]
        return {"os_thread_id": number, "thread_name": str(number), "frames": told}

    script = str(tmp_path / "train.py")
    waits = thread(os.getpid(), (f"{TORCH}/distributed/distributed_c10d.py", 5, "all_reduce"), (script, 3, "f"))
    found = unarmed(monkeypatch, 0, json.dumps([thread(1, ("/usr/lib/python3.12/threading.py", 5, "run")), waits]), "")
    assert (found.line, found.function, found.collective, found.unknown) == (3, "f", "all_reduce", "")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"rank": "zero"},
        {"rank": 0, "machine": 7},
        {"rank": 0, "waiting": [["0", 1]]},
        {"rank": 0, "threads": {"MainThread": [["/train.py"]]}},
        {
            "rank": 0,
            "threads": {"MainThread": [[f"{TORCH}/_dynamo/convert_frame.py", 1, "f"]]},
            "compile": {"seconds": "x"},
        },
        {"rank": 0, "reached": {"0": 1e400}},
    ],
)
def test_an_answer_of_another_form_is_none(monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]) -> None:
    monkeypatch.setattr(attaching, "_answer_of", lambda pid: said)
    (found,) = states_of([os.getpid()])
    assert (found.rank, found.unknown) == (None, "Its answer is not one of irscope's.")


def test_a_process_that_is_gone() -> None:
    with pytest.raises(LookupError, match="No process has the number 4194999"):
        processes_of(4194999)


def test_what_nccl_says_of_its_communicators() -> None:
    said = "NCCL version 2.28\n  1  Rank 1 -- GPU 1 managed by process 7 on node 10.0.0.1\n"
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(100))
                connection.sendall(b"SERVER PROTOCOL 2\n")
                heard.append(connection.recv(100))
                connection.sendall(b"OK\n" + said.encode())

        thread = threading.Thread(target=serve)
        thread.start()
        assert ras_report(server.getsockname()) == said.strip()
        thread.join()
    assert heard == [b"CLIENT PROTOCOL 2\n", b"TIMEOUT 3\nVERBOSE STATUS\n"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()
    assert ras_report(nobody) == ""
