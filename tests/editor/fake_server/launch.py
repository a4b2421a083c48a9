"""A language server with canned answers, to test the client without torch.

Speaks docs/PROTOCOL.md over stdio with the standard library alone.  It answers about one script, whichever is asked
for; a run of `slow.py` goes on until it is cancelled.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

sys.path.insert(0, os.path.dirname(__file__))

import panels

RUN = "20261120-101500-fake"
LINES = {"kernel": 4, "kernels": 5, "function": 3}  # 0-based lines of workspace/train.py

DOCUMENTS = {
    "0/0/dynamo-graph.py": ("python", "def forward(self, x):\n    relu = torch.relu(x)\n    mul = relu * 2\n    return (mul,)\n"),
    "0/0/modified-bytecode.pyc.txt": ("python-bytecode", "  4           0 RESUME                   0\n              2 LOAD_GLOBAL              1 (compiled)\n"),
    "0/0/guards.guards.txt": ("irscope-guards", "TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None\n"),
    "0/0/kernel/cpp_fused_mul_relu_0.cpp": ("cpp", '#include "header.h"\n\nextern "C" void kernel(const float* in_ptr0)\n{\n}\n'),
    "0/1/dynamo-graph.py": ("python", "def forward(self, y):\n    add = y + 1\n    return (add,)\n"),
    "0/1/forward-graph.py": ("python", "def forward(self):\n    return ()\n"),
    "0/9/large-graph.py": ("python", "# 1500 nodes\n"),
    "0/9/broken-graph.py": ("python", "# no graph\n"),
    "0/9/autotuning.txt": ("plaintext", "mm(float32[8, 8]): 2 choices, fastest mm_1 (20 µs)\n"),
}  # fmt: skip


class Server:
    """One connection, on stdin and stdout."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "wb")
        self.lock = threading.Lock()
        self.uri = ""
        self.next_id = 1
        self.checked: list[Any] = []
        self.compared: list[Any] = []
        self.opened: list[Any] = []
        self.cancelled = threading.Event()
        self.runs: list[dict[str, Any]] = []
        self.asked = 0
        """How often the kernels of a run that goes on were asked for."""

    def serve(self) -> None:
        while (message := self.read()) is not None:
            if message.get("method") == "test/dieSlowly":
                # As when the system ends a process: it cannot be written to any more, and its output is still open.
                os.close(0)
                time.sleep(1)
                os._exit(3)
            threading.Thread(target=self.handle, args=(message,), daemon=True).start()

    def read(self) -> dict[str, Any] | None:
        length = 0
        while (line := sys.stdin.buffer.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(sys.stdin.buffer.read(length)) if length else None

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            self.out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.out.flush()

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def handle(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params") or {}
        if "id" not in message:
            self.on_notification(method, params)
        elif method:
            try:
                self.send({"id": message["id"], "result": self.answer(method, params)})
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is the client's answer
                self.send({"id": message["id"], "error": {"code": -32803, "message": str(error)}})

    def on_notification(self, method: str, params: Any) -> None:
        if method == "exit":
            os._exit(0)
        if method == "initialized":
            self.notify("irscope/worker", self.worker("ready", "Ready"))
        if method == "textDocument/didOpen":
            uri = params["textDocument"]["uri"]
            if uri.endswith("train.py"):
                self.publish(uri)

    def publish(self, uri: str) -> None:
        self.uri = uri
        place = {"start": {"line": 5, "character": 7}, "end": {"line": 5, "character": 18}}
        self.notify(
            "textDocument/publishDiagnostics",
            {
                "uri": uri,
                "diagnostics": [
                    {
                        "range": place,
                        "severity": 2,
                        "source": "irscope",
                        "code": "GB0170",
                        "codeDescription": {"href": "https://example.org/gb/gb0170.html"},
                        "message": "Graph break: data-dependent branching",
                        "data": {"run": RUN, "kind": "graph-break"},
                    }
                ],
            },
        )

    def worker(self, state: str, text: str) -> dict[str, Any]:
        return {"state": state, "text": text, "python": sys.executable, "uri": self.uri or None, "run": RUN}

    def answer(self, method: str, params: Any) -> Any:
        answers = {
            "initialize": self.initialize,
            "shutdown": lambda _: None,
            "textDocument/codeLens": self.code_lens,
            "irscope/runs": lambda _: {"runs": self.runs},
            "irscope/report": self.report,
            "irscope/pipelines": self.pipelines,
            "irscope/run": self.run,
            "irscope/cancel": self.cancel,
            "irscope/checkWithoutCompile": self.check_without_compile,
            "irscope/compare": self.compare,
            "irscope/profile": self.profile,
            "irscope/openTrace": self.open_trace,
            "irscope/kernelsAt": self.kernels_at,
            "irscope/stagesOf": self.stages_of,
            "irscope/graph": self.graph,
            "irscope/graphKernels": self.graph_kernels,
            "irscope/document": self.document,
            "irscope/linkedLines": self.linked_lines,
            "irscope/counterparts": self.counterparts,
            "irscope/regions": self.regions,
            "irscope/entries": self.entries,
            "textDocument/codeAction": self.code_actions,
            "test/environment": self.environment,
            "test/checked": lambda _: {"checked": self.checked, "compared": self.compared, "opened": self.opened},
            "test/die": lambda _: os._exit(3),
            "test/tell": lambda params: self.notify(params["method"], params["params"]),
            **panels.ANSWERS,
        }
        if method not in answers:
            raise ValueError(f"unknown method {method}")
        answer = answers[method](params)
        # The places of findings are opened, so they are in the file that the editor has.
        return panels.in_file(answer, self.uri) if method == "irscope/findings" else answer

    def initialize(self, params: Any) -> Any:
        self.options = params.get("initializationOptions")
        return {
            "capabilities": {
                "textDocumentSync": {"openClose": True, "change": 1, "save": True},
                "codeLensProvider": {},
                "codeActionProvider": True,
                "executeCommandProvider": {"commands": ["irscope.server.run", "irscope.server.cancel"]},
            },
            "serverInfo": {"name": "fake"},
        }

    def environment(self, _: Any) -> Any:
        return {
            "pid": os.getpid(),
            "options": self.options,
            "path": sys.path,
            "isolated": sys.flags.isolated,
            "no_site": sys.flags.no_site,
        }

    def code_lens(self, params: Any) -> Any:
        uri = params["textDocument"]["uri"]
        if not uri.endswith("train.py"):
            return []
        line = LINES["function"]
        place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
        arguments = [{"run": RUN, "uri": uri, "line": line}]
        title = "2 graphs · 1 break · 1 kernel · 1.8 s"
        return [{"range": place, "command": {"title": title, "command": "irscope.showRun", "arguments": arguments}}]

    def item(self, outcome: str | None) -> dict[str, Any]:
        return {
            "run": RUN, "script": self.uri.removeprefix("file://"), "scriptUri": self.uri, "lane": "deep", "pipeline": "inductor", "started": time.time(), "rank": None, "world": 0,
            "outcome": outcome, "message": "", "seconds": 1.8, "compiles": 2, "findings": 1, "kernels": 2,
        }  # fmt: skip

    def pipelines(self, params: Any) -> Any:
        """The second one is tried only where that is asked for."""
        tried = "available" if params.get("trials") else "untried"
        rows = [
            ("inductor", "torch.compile with Inductor", "available", "", ""),
            ("torchscript", "TorchScript", tried, "", ""),
            ("onnx", "ONNX Runtime", "missing", "onnxruntime is not installed in /usr/bin/python3.", "/usr/bin/python3 -m pip install onnxruntime"),
            ("glow", "Glow", "unsupported", "Its project is archived.", ""),
        ]  # fmt: skip
        names = ("name", "title", "status", "why", "install")
        items = [{**dict(zip(names, row, strict=True)), "stages": [], "variants": []} for row in rows]
        if only := params.get("only"):
            items = [one for one in items if one["name"] in only]
        return {"python": sys.executable, "chosen": "inductor", "pipelines": items}

    def run(self, params: Any) -> Any:
        self.uri = params["uri"]
        self.cancelled.clear()
        self.runs = [self.item(None)]
        self.notify("irscope/worker", self.worker("running", "Running train.py"))
        self.notify("irscope/runsChanged", {"run": RUN, "uri": self.uri, "running": True})
        self.notify("irscope/output", {"run": RUN, "stream": "stdout", "text": "tensor(3.)\n"})
        self.cancelled.wait(30 if "slow" in self.uri else 0.3)
        outcome = "cancelled" if self.cancelled.is_set() else "completed"
        self.runs = [self.item(outcome)]
        self.notify("irscope/worker", self.worker("ready", "Ready"))
        self.notify("irscope/runsChanged", {"run": RUN, "uri": self.uri, "running": False})
        changed = {"run": RUN, "since": "20261119-101500-fake", "text": "1 <b>break</b> fixed · −0.4 s"}
        state = {
            "state": "current",
            "entry": None,
            "limit": None,
            "text": "",
            "changed": changed,
            "standing": "causes",
            "label": "3 causes cost 55 of 66 s",
        }
        self.notify("irscope/fileState", {"uri": self.uri, **state})
        return {"run": RUN, "outcome": outcome, "message": "", "compiles": 0 if "plain" in self.uri else 2}

    def cancel(self, _: Any) -> Any:
        self.cancelled.set()
        return {"cancelled": True}

    def check_without_compile(self, params: Any) -> Any:
        self.checked.append(params)
        return {"run": RUN, "message": "It fails without compile, too: the fault is in the script."}

    def compare(self, params: Any) -> Any:
        self.compared.append(params)
        return {"run": RUN, "message": ""}

    def profile(self, params: Any) -> Any:
        self.compared.append(params)
        return {"run": RUN, "message": ""}

    def open_trace(self, params: Any) -> Any:
        self.opened.append(params)
        if params["uri"].endswith(".pt2"):
            place = {
                "what": "`x`: the size when it was made: [8, 128]; now: [4, 128].",
                "file": "/tmp/model.py",
                "line": 3,
            }
            return {"run": None, "message": "", "text": "model.pt2: AOTInductor package", "places": [place]}
        return {"run": RUN, "message": "", "text": "", "places": []}

    def stage(self, path: str, title: str) -> dict[str, Any]:
        identity = path.rsplit(".pyc.txt")[0].rsplit(".", 1)[0].removesuffix(".guards")
        language, text = DOCUMENTS[path]
        name = identity.split("/")[2]
        return {
            "run": RUN, "stage": identity, "name": name, "role": panels.role_of(name), "group": "AOTAutograd" if name == "forward-graph" else "Dynamo", "part": name.removesuffix("-graph") if name in ("forward-graph", "backward-graph") else "",
            "title": title, "language": language, "bytes": len(text),
            "uri": f"irscope:/{RUN}/{path}", "isGraph": name.endswith("-graph"),
            "nodes": None, "made": True,
        }  # fmt: skip

    def kernel(self, name: str, line: int) -> dict[str, Any]:
        return {
            "run": RUN, "stage": "0/0/kernel/cpp_fused_mul_relu_0", "name": name, "language": "cpp", "compile": "0/0", "group": "Kernels",
            "uri": f"irscope:/{RUN}/0/0/kernel/cpp_fused_mul_relu_0.cpp", "line": line,
            "origins": [{"uri": self.uri, "line": LINES["kernel"]}],
        }  # fmt: skip

    def choice(self, name: str, line: int) -> dict[str, Any]:
        library = f"{self.uri.rpartition('/')[0]}/plain.py"
        more = {
            "function": "loss_of", "ops": ["mul", "relu"], "module": "layers.0", "moduleClass": "Layer", "heading": "layers.0–1 ×2",
            "innermost": {"uri": library, "line": line - 2}, "direction": "", "bytes": 812,
        }  # fmt: skip
        return {**self.kernel(name, line), **more}

    def compiles(self) -> list[dict[str, Any]]:
        base = {"uri": self.uri, "line": LINES["function"], "outcome": "compiled", "restarts": 0, "seconds": 0.9}
        first = [self.stage("0/0/dynamo-graph.py", "Dynamo graph"), self.stage("0/0/modified-bytecode.pyc.txt", "Modified bytecode"),
                 self.stage("0/0/guards.guards.txt", "Guards")]  # fmt: skip
        second = [
            self.stage("0/1/dynamo-graph.py", "Dynamo graph"),
            self.stage("0/1/forward-graph.py", "Forward graph"),
        ]
        kernels = [self.kernel("cpp_fused_mul_relu_0", 2), self.kernel("cpp_fused_add_1", 3)]
        extremes = [self.stage("0/9/large-graph.py", "Large graph"), self.stage("0/9/broken-graph.py", "Broken graph")]
        return [
            {
                **base,
                "id": "0/0",
                "function": "loss_of",
                "graphOps": 2,
                "groups": ["Dynamo", "Kernels"],
                "stages": first,
                "kernels": kernels,
            },
            {
                **base,
                "id": "0/1",
                "function": "torch_dynamo_resume_in_loss_of_at_6",
                "graphOps": 1,
                "groups": ["Dynamo", "AOTAutograd"],
                "stages": second,
                "kernels": [],
            },
            {
                **base,
                "id": "0/9",
                "function": "extremes",
                "outcome": "error",
                "graphOps": 0,
                "groups": ["Dynamo"],
                "stages": extremes,
                "kernels": [],
            },
        ]

    def report(self, params: Any) -> Any:
        if params["run"] != RUN:
            raise ValueError(f"There is no run {params['run']}.")
        gaps = [{"what": "fusion decisions", "why": "torch 9.9 has no WhyNoFuse"}]
        return {"item": self.item("completed"), "torch": "9.9.0", "compiles": self.compiles(), "gaps": gaps, "ranks": 0}

    def kernels_at(self, params: Any) -> Any:
        if params["uri"].startswith("irscope:"):
            return {"run": RUN, "kernels": [self.choice("cpp_fused_mul_relu_0", 2)], "reason": ""}
        self.uri = params["uri"]
        if "slow" in self.uri:
            return self.kernels_so_far()
        if params["line"] == LINES["kernel"]:
            return {"run": RUN, "kernels": [self.kernel("cpp_fused_mul_relu_0", 2)], "reason": ""}
        if params["line"] in (LINES["kernels"], LINES["function"]):
            return {
                "run": RUN,
                "kernels": [self.choice("cpp_fused_mul_relu_0", 2), self.choice("cpp_fused_add_1", 3)],
                "reason": "",
            }
        return {"run": RUN, "kernels": [], "reason": "No kernel came from this line: it runs in Python."}

    def kernels_so_far(self) -> Any:
        """Two kernels, then three and four as the run goes on, which a client that asks is told each time."""
        self.asked += 1
        running = self.asked < 3
        if running:
            changed = {"run": RUN, "uri": self.uri, "running": self.asked < 2}
            threading.Timer(1.0, self.notify, ("irscope/runsChanged", changed)).start()
        kernels = [self.choice(f"cpp_fused_{number}", number) for number in range(2, 3 + self.asked)]
        kernels = [{**kernel, "uri": f"{kernel['uri']}?{kernel['name']}"} for kernel in kernels]
        return {"run": RUN, "kernels": kernels, "reason": "", "running": running}

    def code_actions(self, params: Any) -> Any:
        """Of the finding, which came from the line with two kernels."""
        uri, line = params["textDocument"]["uri"], params["range"]["start"]["line"]
        if not uri.endswith("train.py") or line != LINES["kernels"]:
            return []
        title = "Show Generated Kernel"
        command = {"title": title, "command": "irscope.showKernel", "arguments": [{"uri": uri, "line": line}]}
        return [{"title": title, "kind": "quickfix", "command": command}]

    def entries(self, _: Any) -> Any:
        candidates = [{"entry": "train.py --small", "detail": "a script that imports it"}]
        return {"file": "train.py", "entry": None, "candidates": candidates}

    def regions(self, params: Any) -> Any:
        if not params["uri"].endswith("train.py"):
            return {"run": None, "stale": False, "regions": []}
        compiled = {"kind": "compiled", "line": LINES["function"], "endLine": 9999, "text": "Compiled", "kernels": []}
        broken = {"kind": "broken", "line": 5, "endLine": 5, "text": "Graph break", "kernels": []}
        kernel = {"kind": "kernel", "line": LINES["kernel"], "endLine": LINES["kernel"], "text": "", "kernels": ["k"]}
        return {"run": RUN, "stale": False, "regions": [compiled, broken, kernel]}

    def linked_lines(self, params: Any) -> Any:
        uri = params["uri"]
        keys = [{"uri": self.uri, "line": LINES["kernel"] + n, "number": 3 + n} for n in range(2)]
        if params["uri"].startswith("file:"):
            lines = [[LINES["kernel"], 0], [LINES["kernels"], 1], [LINES["function"]]]
        elif "dynamo-graph" in uri:
            lines = [[1, 0], [2, 1]]
        elif "/kernel/" in uri:
            lines = [[2, 0, 1], [3, 0, 1]]
        else:
            lines = []
        return {"run": RUN, "keys": keys, "lines": lines}

    def counterparts(self, params: Any) -> Any:
        is_source = params["uri"].startswith("file:")
        places = []
        for uri in params["among"]:
            if uri.startswith("file:"):
                places.append({"uri": uri, "lines": [LINES["kernel"] + params["line"] - 1]})
            elif "dynamo-graph" in uri:
                places.append({"uri": uri, "lines": [params["line"] - LINES["kernel"] + 1] if is_source else [1, 2]})
            elif "/kernel/" in uri:
                places.append({"uri": uri, "lines": [2]})
            elif "autotuning" in uri:
                places.append({"uri": uri, "lines": [1]})
        return {"places": places}

    def stages_of(self, params: Any) -> Any:
        if params["uri"].startswith("file:"):
            self.uri = params["uri"]
        stages = [
            {**stage, "compile": compile_["id"], "function": compile_["function"]}
            for compile_ in self.compiles()
            for stage in compile_["stages"]
        ]
        if "/0/9/" in params["uri"]:  # only where a test asks for it: others count the stages
            tuned = self.stage("0/9/autotuning.txt", "Autotuning")
            stages.append({**tuned, "compile": "0/9", "function": "loss_of"})
        return {"run": RUN, "stages": stages, "reason": ""}

    def graph(self, params: Any) -> Any:
        stage = params["stage"]
        if stage == "0/9/broken-graph":
            raise ValueError("The stage is <b>damaged</b>.")
        count = 0 if stage == "0/1/forward-graph" else 50_000 if stage == "0/9/large-graph" else 3
        compared = bool(params.get("compareWith"))
        names = ["x", "relu", "mul"] if count == 3 else [f"add_{number}" for number in range(count)]
        inner = [-1 if number == 0 else number * 100 // max(count, 1) for number in range(count)]
        nodes = {
            "name": names, "kind": [0 if number == 0 else 2 for number in range(count)], "op": [min(number, 2) for number in range(count)], "original": [-1] * count,
            "detail": [0] * count, "dtype": [0] * count, "device": [0] * count, "bytes": [32] * count, "moved": [64] * count,
            "flops": [None] * count, "module": [-1] * count if count == 3 else inner, "home": [-1] * count if count == 3 else inner,
            "backward": [0] * count, "line": list(range(count)), "file": [-1 if number == 0 else 0 for number in range(count)],
            "originLine": [-1 if number == 0 else LINES["kernel"] for number in range(count)],
        }  # fmt: skip
        if compared:
            nodes["state"] = [0, 3, 1]
        edges = [end for number in range(1, count) for end in (max(0, number - 1 - number % 7), number)]
        here = f"irscope:/{RUN}/0/0/dynamo-graph.py"
        return {
            "title": "Dynamo graph of loss_of", "stageUri": here, "beforeUri": here if compared else None,
            "compareWith": params.get("compareWith") or None, "nodes": nodes, "edges": edges,
            "ops": ["placeholder", "aten.relu", "aten.<img src=x onerror=alert(1)>"], "originals": [], "details": ["f32[8]<script>alert(1)</script>"],
            "dtypes": ["f32"], "devices": ["cpu"], "files": [self.uri], "symbols": [], "targets": [{"name": "a device", "bandwidth": 1e9, "rates": [{"dtype": "f32", "flops": 1e12}]}],
            "modules": [{"path": ["model", "layers", str(number)], "type": "Layer<b>"} for number in range(100)],
            "versions": [
                {"stage": stage, "title": "Dynamo graph", "pass": "", "before": "", "backward": False},
                {"stage": stage, "title": "Dynamo graph after fold", "pass": "fold", "before": stage, "backward": False},
            ],
        }  # fmt: skip

    def graph_kernels(self, params: Any) -> Any:
        graph = self.graph(params)
        place = {"uri": f"irscope:/{RUN}/0/0/kernel/cpp_fused_mul_relu_0.cpp", "line": 2}
        nodes = [[0] if op else [] for op in graph["nodes"]["op"]]
        return {"calls": [{"name": "cpp_fused_mul_relu_0", "call": 1, "place": place}], "nodes": nodes}

    def document(self, params: Any) -> Any:
        path = params["uri"].removeprefix(f"irscope:/{RUN}/")
        if path not in DOCUMENTS and path.startswith("0/0/"):  # a stage of the panels
            return {"text": f"# {path}\n\nx = 1\n", "languageId": "cpp" if path.endswith(".cpp") else "python"}
        if path not in DOCUMENTS:
            raise ValueError(f"There is no document {params['uri']}.")
        language, text = DOCUMENTS[path]
        return {"text": text, "languageId": language}


if __name__ == "__main__":
    Server().serve()
