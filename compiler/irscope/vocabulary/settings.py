"""The table of settings: each is declared here once, as a field of `SettingValues` (limits of runs: limits.py).

The language server's parser reads the table.  docs/settings.md, the table in docs/PROTOCOL.md and the settings in
package.json are written from it by scripts/generate.py, in this order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.vocabulary.lanes import DEFAULT_PIPELINE, Lane
from irscope.vocabulary.limits import LIMITS
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.setting import Goes, Kind, Setting, declared, row_of

SEVERITIES = {
    "error": "An error.",
    "warning": "A warning.",
    "information": "Information.",
    "hint": "A hint.",
    "off": "Not shown.",
}
"""What a finding's severity can be set to."""

OFF = "off"


def _setting(key: str, kind: Kind, default: Any, short: str, text: str = "", *, value: Any = None, **more: Any) -> Any:
    """A field for the setting; `value` is the default as the server has it, if that is not the default in JSON."""
    row = Setting(key, kind, default, short, text, **more)
    return declared(row, default if value is None else value)


@dataclass(frozen=True)
class SettingValues:
    """The values of the settings that the server reads, checked; defaults for those that are not set."""

    python: str = _setting(
        "python", Kind.TEXT, "",
        "interpreter that runs the script; empty: the server's own interpreter",
        "Path of the Python interpreter (3.10 or newer) that runs your scripts; it must have torch 2.9 or newer. Relative "
        "paths start at the workspace folder; `~` and `${workspaceFolder}` are expanded. Empty: the interpreter selected "
        "with the Python environments or the Python extension, else `python3` on the PATH.",
        scope="machine-overridable", flag="--python", restricted=True,
    )  # fmt: skip
    deep_when_idle: float = _setting(
        "run.deepWhenIdle", Kind.NUMBER, 0,
        "starts a deep run after a fast run and this many seconds without typing; 0: no automatic deep run",
        "Run the whole pipeline after a run in the fast lane, once you have not typed for this many seconds. A save "
        "cancels it and starts a new run. `0`: run the whole pipeline only if you ask for a kernel or a stage.",
        unit="seconds", restricted=True,
    )  # fmt: skip
    on_save: Lane | None = _setting(
        "run.onSave", Kind.LANE, Lane.FAST.value,
        "lane of the run that starts when a file is opened or saved",
        "What to run when a Python file that uses `torch.compile` is opened or saved.",
        choices={
            Lane.FAST.value: "Dynamo only, with an eager backend: graph breaks and recompilations in a fraction of the time.",
            Lane.DEEP.value: "The whole pipeline, with every graph, the output code and the kernels.",
            OFF: "Nothing. Use *IRScope: Analyze This File*.",
        },
        value=Lane.FAST, restricted=True,
    )  # fmt: skip
    fixes_seconds: float = _setting(
        "fixes.trySeconds", Kind.NUMBER, 20,
        "seconds after a run in which fixes are tried in the background; 0: fixes are offered untried",
        "After a run, try its fixes in the background for at most this many seconds. Each runs the script again. A fix "
        "that changes results is not offered. `0`: offer fixes without trying them.",
        unit="seconds", restricted=True,
    )  # fmt: skip
    pipeline: str = _setting(
        "pipeline", Kind.TEXT, DEFAULT_PIPELINE,
        "name of the pipeline of deep runs (`irscope/pipelines` lists them); the fast lane is always Dynamo's",
        "Name of the pipeline that deep runs go through, for example `inductor`, `export` or `torchscript`. *IRScope: Select "
        "Pipeline…* lists them and writes this setting. The fast lane is always Dynamo's.",
        flag="--pipeline", restricted=True,
    )  # fmt: skip
    target: str = _setting(
        "target", Kind.TEXT, "",
        "names of devices, separated by commas, whose kernels deep runs predict; empty: none",
        "Names of devices whose kernels deep runs predict, for example `h100` or `h100,mi300x`; *IRScope: Choose "
        "Target…* lists them. The script then runs on the CPU. Empty: the kernels are those of the device of the script.",
        flag="--target", restricted=True,
    )  # fmt: skip
    limits: Mapping[str, float | None] = dataclasses.field(
        default_factory=lambda: {one.key: one.default for row in LIMITS.values() for one in row.settings}
    )
    """The limits of runs, by key of the setting, in the units of the settings."""
    symbolic_trace: bool = _setting(
        "run.symbolicTrace", Kind.FLAG, True,
        "record Dynamo's symbolic trace in the deep lane",
        "Record Dynamo's symbolic trace in the deep lane, to inspect and debug its steps. Adds about 10 % to Dynamo's "
        "own time.",
        flag="--no-symbolic-trace",
    )  # fmt: skip
    args: tuple[str, ...] = _setting(
        "run.args", Kind.TEXTS, [],
        "arguments of the script",
        "Arguments of the script (`sys.argv[1:]`).", value=(),
        restricted=True,
    )  # fmt: skip
    entry: tuple[str, ...] = _setting(
        "run.entry", Kind.ENTRIES, [],
        "what runs library modules, see *Entries*",
        "What to run when a library module (a file that only contains definitions) is opened or saved. An entry is a script "
        "(`scripts/train.py --small`), a module (`-m package.train`) or a test "
        "(`pytest tests/test_model.py::test_forward`). Paths start at the workspace folder. If there are several, IRScope "
        "takes the first whose last run used the file, or else the first. Empty: the entry that last ran the file.",
        value=(), restricted=True,
    )  # fmt: skip
    entry_of: Mapping[str, str] = _setting(
        "run.entryOf", Kind.TEXT_MAP, {},
        "entry by file (path or pattern, relative to the workspace folder); has priority over `run.entry`",
        "Entries for single files, by path or pattern in the workspace folder, for example "
        '`{"src/model.py": "scripts/train.py"}`. *IRScope: Choose Entry Script for This File* writes this setting.',
        restricted=True,
    )  # fmt: skip
    cwd: str = _setting(
        "run.cwd", Kind.TEXT, "",
        "working folder; empty: the script's own folder",
        "Working folder of the script. Empty: the folder that contains the script.",
        flag="--cwd", restricted=True,
    )  # fmt: skip
    launch_configuration: str = _setting(
        "run.launchConfiguration", Kind.TEXT, "",
        "name of the configuration in `launch.json` whose `args`, `env`, `envFile`, `cwd` and `python` runs use",
        "Name of a launch configuration (`launch.json`, type `debugpy` or `python`). Runs use its arguments, environment, "
        "working folder and interpreter. Empty: the configuration whose program or module is run.",
        restricted=True,
    )  # fmt: skip
    use_launch: bool = _setting(
        "run.useLaunchConfigurations", Kind.FLAG, True,
        "without a name: use the configuration whose `program` or `module` is run",
        "If `#irscope.run.launchConfiguration#` is empty, use the configuration whose program or module is run. "
        "IRScope's own settings take precedence over it.",
        restricted=True,
    )  # fmt: skip
    launch: Sequence[Mapping[str, Any]] | None = _setting(
        "launch", Kind.LAUNCH, None,
        "the launch configurations, as in `launch.json`; null: the server reads `.vscode/launch.json`",
        goes=Goes.OPTION,
    )  # fmt: skip
    env: Mapping[str, str] = _setting(
        "run.env", Kind.VARIABLES, {},
        "extra environment variables",
        "Extra environment variables for the script, in addition to the editor's own.",
        restricted=True,
    )  # fmt: skip
    store_path: str = _setting(
        "storePath", Kind.TEXT, "",
        "file of the run store; empty: a file in the user's cache folder",
        "File of the run store (SQLite). Empty: one file for each workspace, in the editor's storage folder.",
        scope="machine-overridable", flag="--store", restricted=True,
    )  # fmt: skip
    inlay_hints: bool = _setting(
        "inlayHints.enabled", Kind.FLAG, False,
        "show the result of each compiled line as an inlay hint",
        "Show dtype, shape and symbolic sizes of the result at the end of each compiled line, as Dynamo saw them. "
        "*IRScope: Toggle Inlay Hints* turns it on and off.",
        scope="window",
    )  # fmt: skip
    measured_time: bool = _setting(
        "measuredTime.enabled", Kind.FLAG, True,
        "show measured time above profiled lines, and mark the lines that take the most",
        "Show measured time above each line and function that was profiled (*IRScope: Profile This File*), and mark the lines "
        "that take the most. Hovers always show it.",
        scope="window",
    )  # fmt: skip
    severity: Mapping[str, str] = _setting(
        "severity", Kind.CHOICE_MAP, {},
        "severity by code or kind: `error`, `warning`, `information`, `hint` or `off`; a code has priority over its kind",
        "Severity of findings by code (`GB0059`) or kind (`graph-break`), for example "
        '`{"recompilation": "warning", "GB0059": "off"}`. A code has priority over its kind. `off` hides the finding.',
        choices=SEVERITIES, flag="--severity",
    )  # fmt: skip
    baseline: str = _setting(
        "baseline", Kind.TEXT, "",
        "file of known findings, which are hidden (`irscope run … --write-baseline`); relative to the workspace folder",
        "File of known findings, which are hidden. `irscope run SCRIPT --write-baseline FILE` writes it. Relative "
        "paths start at the workspace folder.",
        flag="--baseline",
    )  # fmt: skip
    worker_enabled: bool = _setting(
        "worker.enabled", Kind.FLAG, True,
        "keep a process with torch imported, so that runs start fast (Linux; elsewhere each run is a new process)",
        "Keep a Python process with torch imported, so that runs start fast. It computes nothing itself; each run is a "
        "fork of it. Linux only.",
    )  # fmt: skip
    worker_idle_minutes: float = _setting(
        "worker.idleMinutes", Kind.NUMBER, 30,
        "stop the worker after this many minutes without a run; 0: never",
        "Stop the worker process after this many minutes without a run. `0`: never.",
        unit="minutes", scope="window",
    )  # fmt: skip
    worker_layers: bool = _setting(
        "worker.layers", Kind.FLAG, True,
        "keep up to three more processes that have also imported the installed packages of a script",
        "Keep up to three more processes that have also imported the installed packages of a script, so that the next "
        "run starts with the script's own code. Each needs extra memory for its packages (about 85 MB for transformers). "
        "Imports that run operations, start threads, print or write files are left to the script.",
        scope="window",
    )  # fmt: skip


OTHER_SETTINGS = (
    Setting(
        "trusted", Kind.FLAG, True,
        "false: no script is run (an untrusted workspace); `initializationOptions` only; the notification "
        "`irscope/trusted` sets it to true",
        goes=Goes.OPTION,
    ),
    Setting(
        "richHovers", Kind.FLAG, False,
        "true: the client shows a diagnostic with its related places at the pointer by itself, and folds `<details>` in "
        "Markdown, so hovers say only what is missing there; `initializationOptions` only",
        goes=Goes.OPTION,
    ),
    Setting(
        "decorations.enabled", Kind.FLAG, True,
        "mark regions in the source; only the client reads it",
        "Mark compiled lines, graph breaks and skipped code in the source, and in the gutter the lines that are in a "
        "kernel.",
        goes=Goes.CLIENT,
    ),
    Setting(
        "agents.allowRun", Kind.FLAG, False,
        "let agents run scripts and apply fixes (`irscope mcp --allow-run`); only the client reads it",
        "Let agents that use IRScope's tools (MCP) run scripts and apply fixes. Off: they can only read stored runs. A "
        "workspace cannot set it, since an agent could write its settings.",
        scope="machine", goes=Goes.CLIENT,
    ),
    Setting(
        "trace.server", Kind.CHOICE, OFF,
        "",
        "Log the messages between the editor and the language server in the channel *IRScope Server*.",
        choices={OFF: "Nothing.", "messages": "The name of each message.", "verbose": "Each message with its content."},
        scope="window", goes=Goes.EDITOR,
    ),
)  # fmt: skip
"""Settings that are not among the server's `SettingValues`."""


def _table() -> dict[str, Setting]:
    rows: list[Setting] = []
    for one in dataclasses.fields(SettingValues):
        row = row_of(one)
        rows += [row] if row is not None else [each for limit in LIMITS.values() for each in limit.settings]
    return {row.key: row for row in (*rows, *OTHER_SETTINGS)}


SETTINGS: dict[str, Setting] = _table()
"""All settings by key, in the order of docs/settings.md."""
