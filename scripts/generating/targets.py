"""The devices that the editor offers to predict kernels for, from the catalogue of targets."""

from __future__ import annotations

import json

from irscope.pipelines.inductor import PIPELINE
from irscope.targets.catalogue import read_catalogue

PATH = "extension/src/targets.ts"
_HEAD = """\
/**
 * The devices of irscope's own catalogue, by the names that the setting takes. Generated: change
 * compiler/irscope/targets/catalogue.json, run `npm run fmt`.
 */

"""


def module() -> dict[str, str]:
    """The module by its path."""
    rows = [
        f"  [{json.dumps(target.name)}, {json.dumps(target.title)}],"
        for target in read_catalogue().targets.values()
        if target.kind in PIPELINE.targets
    ]
    body = "\n".join(
        [
            "/** Name and title; titles are those of products. */",
            "export const TARGETS: readonly (readonly [string, string])[] = [",
            *rows,
            "];",
            "",
        ]
    )
    return {PATH: _HEAD + body}
