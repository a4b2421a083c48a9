"""How the code of a document is run: which entry, with which arguments, where and in which interpreter."""

from __future__ import annotations

import fnmatch
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from irscope.usercode.notebooks import is_notebook
from irscope.usercode.user_files import is_installed_file

from irscope_server.base.context import Document, EditorContext
from irscope_server.base.settings import Settings
from irscope_server.base.texts import FileKey, path_in_folder
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


class Planner:
    """Makes plans from settings, launch configurations, the text and what has been run before."""

    def __init__(self, context: EditorContext, results: Results) -> None:
        self._context, self._results = context, results
        self.plans: dict[FileKey, Plan | None] = {}
        """How each open file is run; None for a library module without a known entry."""
        self._complained: set[str] = set()

    async def plan(self, document: Document, text: str, settings: Settings) -> Plan | None:
        """The plan of a document; None for a library module without a known entry."""
        folder = self._context.folder_of(document.path)
        launches = self.launches(document.path, folder, settings)
        named = launch_named(launches, settings.launch_configuration) if settings.launch_configuration else None
        if settings.launch_configuration and named is None and self._context.trusted:
            self._complain(
                f"No launch configuration that irscope can use is called {settings.launch_configuration!r}"
                " (irscope.run.launchConfiguration)."
            )
        entry, touched = await self._entry(document, text, folder, settings, named)
        if entry is None:
            return None
        launch = named or (launch_of(launches, entry) if settings.use_launch else None)
        return _plan(document, entry, settings, launch, touched)

    def plan_of(self, document: Document, name: str, settings: Settings) -> Plan:
        """The plan of an entry that is named, for a document.  Raises BadEntry."""
        folder = self._context.folder_of(document.path)
        launches = self.launches(document.path, folder, settings) if settings.use_launch else []
        entry = parse_entry(name, folder)
        return _plan(document, entry, settings, launch_of(launches, entry), True)

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
        self, document: Document, text: str, folder: str, settings: Settings, named: Launch | None
    ) -> tuple[Entry | None, bool]:
        """The entry of a document, and whether it is known to have to do with it."""
        path, key = document.path, document.key
        if (of_file := _entry_of(path, folder, settings)) and (entry := self._parse(of_file, folder)):
            return entry, True
        if _is_script(path, text):
            return script_entry(path, folder), False
        entries = [entry for name in settings.entry if (entry := self._parse(name, folder))]
        for entry in entries:
            if await self._touched(entry, key):
                return entry, True
        if entries:
            return entries[0], False
        if named and named.entry and not named.any_file:
            return named.entry, False
        return await self._ran_before(key, folder), True

    async def _touched(self, entry: Entry, key: FileKey) -> bool:
        """Whether the last run of an entry compiled or found something in a file."""
        context = self._context
        newest = self._results.newest(entry.key)
        if newest is None and os.path.exists(context.archive.path):
            stored = await context.archive.newest(entry.stored_script)
            return stored is not None and touches(stored.report, key)
        return newest is not None and touches(newest.report, key)

    async def _ran_before(self, key: FileKey, folder: str) -> Entry | None:
        """The entry whose run was the last one that had something in a file."""
        for ended in self._results.runs_touching(key):
            if ended.key != key:
                return self._stored(ended.report.script, folder)
        for script in await self._context.archive.scripts_touching(key):
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


def _is_script(path: str, text: str) -> bool:
    """Whether a file is run as it is; one that is gone, too: the run says so."""
    if is_installed_file(path):  # it does its work where it is imported
        return False
    return is_notebook(path) or does_work(text) or not (text or os.path.exists(path))


def _entry_of(path: str, folder: str, settings: Settings) -> str:
    """What the user has chosen for this very file; a path has priority over a pattern."""
    relative = path_in_folder(path, folder)
    if relative in settings.entry_of:
        return settings.entry_of[relative]
    matching = (entry for pattern, entry in settings.entry_of.items() if fnmatch.fnmatch(relative, pattern))
    return next(matching, "")


def _plan(document: Document, entry: Entry, settings: Settings, launch: Launch | None, touched: bool) -> Plan:
    """The settings of irscope have priority over the launch configuration; an entry's own arguments have priority over
    both."""
    default = os.path.dirname(entry.target) if entry.kind.is_file else entry.folder
    return Plan(
        entry=entry,
        args=entry.args or settings.args or (launch.args if launch else ()),
        cwd=os.path.expanduser(settings.cwd) or (launch.cwd if launch else "") or default,
        env={**(launch.env if launch else {}), **settings.env},
        python=(launch.python if launch else "") or settings.interpreter,
        settings=settings,
        own=entry.kind.is_file and entry.key == document.key,
        touched=touched,
    )
