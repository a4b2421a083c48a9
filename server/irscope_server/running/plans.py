"""How the code of a document is run: which entry, with which arguments, where and in which interpreter."""

from __future__ import annotations

import fnmatch
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from irscope.usercode.notebooks import is_notebook

from irscope_server.base.context import EditorContext
from irscope_server.base.settings import Settings
from irscope_server.base.texts import file_key
from irscope_server.running.entries import BadEntry, Entry, parse_entry, script_entry
from irscope_server.running.launch import Launch, launch_named, launch_of, python_launches, read_launch_file
from irscope_server.running.results import Results, touches
from irscope_server.running.top_level import does_work

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How a document is run."""

    entry: Entry
    args: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    python: str
    settings: Settings
    own: bool
    """The document is the entry itself."""
    touched: bool = False
    """The entry is known to have something to do with the document: the user said so, or its last run had."""

    @property
    def runs_for_module(self) -> bool:
        """Whether the document is a library module, and the entry has something to do with it."""
        return not self.own and self.touched


class Planner:
    """Makes plans from settings, launch configurations, the text and what has been run before."""

    def __init__(self, context: EditorContext, results: Results) -> None:
        self._context, self._results = context, results
        self.plans: dict[str, Plan | None] = {}
        """How each open file is run, by `file_key`; None for a library module without a known entry."""
        self._complained: set[str] = set()

    async def plan(self, path: str, text: str, settings: Settings) -> Plan | None:
        """The plan of a document; None for a library module without a known entry."""
        folder = self._context.folder_of(path)
        launches = self.launches(path, folder, settings)
        named = launch_named(launches, settings.launch_configuration) if settings.launch_configuration else None
        if settings.launch_configuration and named is None and self._context.trusted:
            self._complain(
                f"No launch configuration that irscope can use is called {settings.launch_configuration!r}"
                " (irscope.run.launchConfiguration)."
            )
        entry, touched = await self._entry(path, text, folder, settings, named)
        if entry is None:
            return None
        launch = named or (launch_of(launches, entry) if settings.use_launch else None)
        return _plan(path, entry, settings, launch, touched)

    def plan_of(self, path: str, entry: str, settings: Settings) -> Plan:
        """The plan of an entry that is named, for a document.  Raises BadEntry."""
        folder = self._context.folder_of(path)
        launches = self.launches(path, folder, settings) if settings.use_launch else []
        known = parse_entry(entry, folder)
        return _plan(path, known, settings, launch_of(launches, known), True)

    def launches(self, path: str, folder: str, settings: Settings) -> list[Launch]:
        """The launch configurations that start Python, for a file."""
        configurations, problem = settings.launch, ""
        if not self._context.trusted:  # nothing is run, so nothing that only a run needs is read
            return []
        if configurations is None:
            configurations, problem = read_launch_file(folder)
        launches, complaints = python_launches(configurations, path, folder)
        for complaint in [*([problem] if problem else []), *complaints]:
            self._complain(complaint)
        return launches

    async def _entry(
        self, path: str, text: str, folder: str, settings: Settings, named: Launch | None
    ) -> tuple[Entry | None, bool]:
        """The entry of a document, and whether it is known to have to do with it."""
        if (of_file := _entry_of(path, folder, settings)) and (entry := self._parse(of_file, folder)):
            return entry, True
        if (
            is_notebook(path) or does_work(text) or not (text or os.path.exists(path))
        ):  # one that is gone: the run says so
            return script_entry(path, folder), False
        entries = [entry for one in settings.entry if (entry := self._parse(one, folder))]
        for entry in entries:
            if await self._touched(entry, path):
                return entry, True
        if entries:
            return entries[0], False
        if named and named.entry and not named.any_file:
            return named.entry, False
        return await self._ran_before(path, folder), True

    async def _touched(self, entry: Entry, path: str) -> bool:
        """Whether the last run of an entry compiled or found something in a file."""
        context, key = self._context, file_key(path)
        newest = self._results.newest(entry.key)
        if newest is None and os.path.exists(context.archive.path):
            stored = await context.archive.newest(entry.stored_script)
            return stored is not None and touches(stored.report, key)
        return newest is not None and touches(newest.report, key)

    async def _ran_before(self, path: str, folder: str) -> Entry | None:
        """The entry whose run was the last one that had something in a file."""
        context, key = self._context, file_key(path)
        for ended in self._results.runs_touching(path):
            if ended.key != key:
                return self._stored(ended.report.script, folder)
        for script in await context.archive.scripts_touching(path):
            if (entry := self._stored(script, folder)) and entry.key != key:
                return entry
        return None

    def _stored(self, script: str, folder: str) -> Entry | None:
        """The entry that the store calls so; None if its file is gone."""
        try:
            entry = script_entry(script, folder) if os.path.isabs(script) else parse_entry(script, folder)
        except BadEntry:
            return None
        return entry if os.path.isfile(entry.file) else None

    def _parse(self, text: str, folder: str) -> Entry | None:
        try:
            return parse_entry(text, folder)
        except BadEntry as error:
            self._complain(str(error))
            return None

    def _complain(self, message: str) -> None:
        if message not in self._complained:
            self._complained.add(message)
            log.warning("%s", message)


def _entry_of(path: str, folder: str, settings: Settings) -> str:
    """What the user has chosen for this very file; a path goes before a pattern."""
    relative = os.path.relpath(file_key(path), file_key(folder)).replace(os.sep, "/")
    if relative in settings.entry_of:
        return settings.entry_of[relative]
    matching = (entry for pattern, entry in settings.entry_of.items() if fnmatch.fnmatch(relative, pattern))
    return next(matching, "")


def _plan(path: str, entry: Entry, settings: Settings, launch: Launch | None, touched: bool) -> Plan:
    """What is set for irscope goes before what the launch configuration says; an entry's own arguments before both."""
    default = os.path.dirname(entry.target) if entry.kind.is_file else entry.folder
    return Plan(
        entry=entry,
        args=entry.args or settings.args or (launch.args if launch else ()),
        cwd=os.path.expanduser(settings.cwd) or (launch.cwd if launch else "") or default,
        env={**(launch.env if launch else {}), **settings.env},
        python=(launch.python if launch else "") or settings.interpreter,
        settings=settings,
        own=entry.kind.is_file and entry.key == file_key(path),
        touched=touched,
    )
