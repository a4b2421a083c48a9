"""The table of settings: each is declared here once, as a field of `SettingValues` (limits of runs: limits.py).

The language server's parser reads the table.  docs/settings.md, the table in docs/PROTOCOL.md and the settings in
package.json are written from it by scripts/generate.py, in this order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.vocabulary.lanes import Lane
from irscope.vocabulary.limits import LIMITS
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
    """A field for the setting; `value` is the default as the server has it, where that is not the default in JSON."""
    row = Setting(key, kind, default, short, text, **more)
    return declared(row, default if value is None else value)


@dataclass(frozen=True)
class SettingValues:
    """The values of the settings that the server reads, checked; defaults for those that are not set."""

    python: str = _setting(
        "python", Kind.TEXT, "",
        "interpreter that runs the script; empty: the one the server runs in",
        "Path of the Python interpreter (3.10 or newer) that runs your scripts; it must have torch 2.9 or newer. Relative "
        "paths start at the workspace folder; `~` and `${workspaceFolder}` are expanded. Empty: the interpreter selected "
        "with the Python environments or the Python extension, else `python3` on the PATH.",
        scope="machine-overridable", flag="--python", restricted=True,
    )  # fmt: skip
    deep_when_idle: float = _setting(
        "run.deepWhenIdle", Kind.NUMBER, 0,
        "a deep run follows a fast one once nothing was typed for this many seconds; 0: no deep run follows",
        "After a run in the fast lane, run the whole pipeline too once nothing was typed for this many seconds; a save "
        "takes its place. `0`: only when a kernel or a stage is asked for.",
        unit="seconds", restricted=True,
    )  # fmt: skip
    on_save: Lane | None = _setting(  # noqa: RUF009
        "run.onSave", Kind.LANE, Lane.FAST.value,
        "lane of the run that an open or a save starts",
        "What opening or saving a Python file that uses `torch.compile` starts.",
        choices={
            Lane.FAST.value: "Dynamo only, with an eager backend: graph breaks and recompilations in a fraction of the time.",
            Lane.DEEP.value: "The whole pipeline: every graph, the output code and the kernels too.",
            OFF: "Nothing. Use *IRScope: Analyze This File*.",
        },
        value=Lane.FAST, restricted=True,
    )  # fmt: skip
    limits: Mapping[str, float | None] = dataclasses.field(
        default_factory=lambda: {one.key: one.default for row in LIMITS.values() for one in row.settings}
    )
    """The limits of runs, by key of the setting, in the units of the settings."""
    symbolic_trace: bool = _setting(
        "run.symbolicTrace", Kind.FLAG, True,
        "record in the deep lane how Dynamo walked over the instructions",
        "Record in the deep lane how Dynamo walked over the instructions, so that its steps can be looked at and "
        "debugged. Takes about a tenth of the time that Dynamo takes.",
        flag="--no-symbolic-trace",
    )  # fmt: skip
    args: tuple[str, ...] = _setting(
        "run.args", Kind.TEXTS, [],
        "arguments of the script",
        "Arguments given to the script (`sys.argv[1:]`).", value=(),
        restricted=True,
    )  # fmt: skip
    entry: tuple[str, ...] = _setting(
        "run.entry", Kind.ENTRIES, [],
        "what runs library modules, see *Entries*",
        "What runs a library module (a file that only defines things) when it is opened or saved: a script "
        "(`scripts/train.py --small`), a module (`-m package.train`) or a test "
        "(`pytest tests/test_model.py::test_forward`). Paths start at the workspace folder. Of several, the first whose "
        "last run had to do with the file, else the first. Empty: what ran the file last, as far as a run is known.",
        value=(), restricted=True,
    )  # fmt: skip
    entry_of: Mapping[str, str] = _setting(
        "run.entryOf", Kind.TEXT_MAP, {},
        "entry by file (path or pattern, relative to the workspace folder); has priority over `run.entry`",
        "The same for single files: path or pattern in the workspace folder to entry, for example "
        '`{"src/model.py": "scripts/train.py"}`. *IRScope: Choose Entry Script for This File* writes it.',
        restricted=True,
    )  # fmt: skip
    cwd: str = _setting(
        "run.cwd", Kind.TEXT, "",
        "working folder; empty: the script's own folder",
        "Folder the script runs in. Empty: the folder the script is in.",
        flag="--cwd", restricted=True,
    )  # fmt: skip
    launch_configuration: str = _setting(
        "run.launchConfiguration", Kind.TEXT, "",
        "name of the configuration in `launch.json` whose `args`, `env`, `envFile`, `cwd` and `python` count",
        "Name of a launch configuration (`launch.json`, type `debugpy` or `python`) whose arguments, environment, working "
        "folder and interpreter runs use. Empty: that of the configuration whose program or module is what is run.",
        restricted=True,
    )  # fmt: skip
    use_launch: bool = _setting(
        "run.useLaunchConfigurations", Kind.FLAG, True,
        "without a name: those of the configuration whose `program` or `module` is what is run",
        "Without a name in `#irscope.run.launchConfiguration#`: use the configuration whose program or module is what is "
        "run. The settings of IRScope go before what it says.",
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
        "Environment variables to set for the script, in addition to the editor's own.",
        restricted=True,
    )  # fmt: skip
    store_path: str = _setting(
        "storePath", Kind.TEXT, "",
        "file of the run store; empty: the cache folder of the user",
        "File that keeps the runs (SQLite). Empty: one for each workspace, in the editor's storage folder.",
        scope="machine-overridable", flag="--store", restricted=True,
    )  # fmt: skip
    inlay_hints: bool = _setting(
        "inlayHints.enabled", Kind.FLAG, False,
        "show what compiled lines give as inlay hints",
        "Show at the end of each compiled line what it gives: dtype, shape and symbolic sizes, as Dynamo saw them. "
        "*IRScope: Toggle Inlay Hints* turns it on and off.",
        scope="window",
    )  # fmt: skip
    severity: Mapping[str, str] = _setting(
        "severity", Kind.CHOICE_MAP, {},
        "severity by code or kind: `error`, `warning`, `information`, `hint` or `off`; a code has priority over its kind",
        "Severity of findings by code (`GB0059`) or kind (`graph-break`), for example "
        '`{"recompilation": "warning", "GB0059": "off"}`. A code has priority over its kind; `off` hides.',
        choices=SEVERITIES, flag="--severity",
    )  # fmt: skip
    baseline: str = _setting(
        "baseline", Kind.TEXT, "",
        "file of known findings, which are not shown (`irscope run … --write-baseline`); relative to the workspace folder",
        "File of findings that are known and not shown, written by `irscope run SCRIPT --write-baseline FILE`. Relative "
        "paths start at the workspace folder.",
        flag="--baseline",
    )  # fmt: skip
    worker_enabled: bool = _setting(
        "worker.enabled", Kind.FLAG, True,
        "keep a process with torch imported, so that a run starts at once (Linux; elsewhere each run is a fresh process)",
        "Keep a Python process with torch imported, so that a run starts at once. It runs no operation itself; each run "
        "is a fork of it. Linux only.",
    )  # fmt: skip
    worker_idle_minutes: float = _setting(
        "worker.idleMinutes", Kind.NUMBER, 30,
        "stop that process after this many minutes without a run; 0: never",
        "Stop that process after this many minutes without a run. `0`: never.",
        unit="minutes", scope="window",
    )  # fmt: skip
    worker_layers: bool = _setting(
        "worker.layers", Kind.FLAG, True,
        "keep further processes, three at most, that have also done the imports of installed packages at the head of a "
        "script",
        "Keep further processes, three at most, that have also imported the installed packages that a script imports, so "
        "that its next run begins with its own code. They share most of their memory with that process; each takes what "
        "its packages add to it (some 85 MB for a model of transformers). Imports that run operations, start threads, "
        "print or write files are left to the script.",
        scope="window",
    )  # fmt: skip


OTHER_SETTINGS = (
    Setting(
        "trusted", Kind.FLAG, True,
        "false: nothing is run (an untrusted workspace); `initializationOptions` only, raised by the notification "
        "`irscope/trusted`",
        goes=Goes.OPTION,
    ),
    Setting(
        "decorations.enabled", Kind.FLAG, True,
        "mark regions in the source; the client's own, the server does not look at it",
        "Mark in the source what is compiled, where a graph is cut, what is skipped, and (in the gutter) which lines are "
        "in a kernel.",
        goes=Goes.CLIENT,
    ),
    Setting(
        "trace.server", Kind.CHOICE, OFF,
        "",
        "Log the messages between the editor and the language server in the channel *IRScope Server*.",
        choices={OFF: "Nothing.", "messages": "The name of each message.", "verbose": "Each message with what is in it."},
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
