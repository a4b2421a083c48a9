"""Where in an installed library a finding lies."""

from __future__ import annotations

import dataclasses
import os
import re

from irscope.protocol import Finding, RelatedRole
from irscope.usercode.user_files import is_package_file


def path_in_library(file: str) -> str:
    """The path of a file below the folder that holds the packages."""
    return re.split(r"(?:site|dist)-packages/", file.replace(os.sep, "/"))[-1]


def in_library(finding: Finding) -> Finding | None:
    """The finding at the library's line; None if the cause is in the user's code."""
    for place in finding.related:
        if place.role is RelatedRole.CAUSE and is_of_library(place.file):
            return dataclasses.replace(finding, file=place.file, range=place.range, fixes=(), related=())
    return None


def is_of_library(file: str) -> bool:
    """A package's file, but torch's own: what breaks there is reached on purpose."""
    return is_package_file(file) and "/torch/" not in file.replace(os.sep, "/")
