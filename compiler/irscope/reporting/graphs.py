"""The graphs of a report as pictures, for light and dark, where Graphviz is there and a picture can show them."""

from __future__ import annotations

import base64

from irscope.pictures.dot import to_dot, told
from irscope.pictures.folding import fold
from irscope.pictures.graph import read_graph
from irscope.pictures.rendering import RenderingError, render
from irscope.protocol import Compile, StageRef
from irscope.reporting.markup import Markup, element
from irscope.store.store import Store
from irscope.vocabulary.graph_looks import THEMES

MOST = 12
"""Pictures in one report."""
_MOST_BOXES = 60
_SECONDS = 10
_LONGEST = 3_000_000


class Pictures:
    """Draws the first graphs that it is asked for."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._left = MOST
        self.problem = ""

    def of(self, compile: Compile, stage: StageRef) -> Markup:
        """The picture of a graph; empty if there is none."""
        if not self._left or self.problem:
            return Markup()
        try:
            read = read_graph(self._store, self._run, compile, stage)
            picture = fold(read, None, _MOST_BOXES)
            drawn = {theme: render(to_dot(read, picture, stage.id, theme), "svg", _SECONDS)[0] for theme in THEMES}
        except (ValueError, LookupError):
            return Markup()
        except RenderingError as error:
            self.problem = str(error)
            return Markup()
        if any(len(data) > _LONGEST for data in drawn.values()):
            return Markup()
        self._left -= 1
        # In an image nothing of a picture can run, and no name of it is markup of the page.
        urls = {theme: f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}" for theme, data in drawn.items()}
        dark = element("source", media="(prefers-color-scheme: dark)", srcset=urls["dark"])
        return element("picture", dark, element("img", src=urls["light"], alt=f"Graph: {told(picture)}"))
