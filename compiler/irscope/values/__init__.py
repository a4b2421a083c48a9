"""The values that flow through a compiled graph on the real inputs of a run, and where they begin to differ.

A *value run* is a run of the script whose request has ``values`` (`irscope.protocol.ValuesRequest`).  At the chosen call
of each compiled graph its inputs are copied before the compiled code runs; when that has returned, the graph is run node
by node on the copies.  Nothing that the script computes changes: its own call runs as ever, and random generators,
gradients and counters are put back.

A stage ``values`` (id ``0/0/values/forward-graph``) holds what the nodes of one graph stage gave.  Its data:

=============  =========================================================================================================
key            value
=============  =========================================================================================================
``stage``      id of the graph stage
``call``       which call of the compiled graph, from 1
``file``       name of the file in the run's folder of values that holds the tensors; empty if none was kept
``nodes``      a list of ``{"name", "value"}`` in the order of the graph
``notes``      sentences: what could not be run, and why
=============  =========================================================================================================

A value is an object with ``kind``:

- ``tensor``: ``dtype``, ``shape``, ``strides``, ``device``, ``count`` (of elements), ``min``, ``max``, ``mean``, ``std``
  (of the finite elements; null if there are none, or if the dtype has none), ``nan``, ``posinf``, ``neginf``,
  ``zeros`` (counts), ``picture`` (rows of means of at most 64 × 64 blocks of the last two dimensions; null for fewer than
  two) and ``offset``, ``bytes`` (where its elements lie in the file, contiguous, little-endian; null if they were not
  kept)
- ``number``: ``value``;  ``list``: ``items``;  ``other``: ``type``;  ``failed``: ``why``

Numbers that JSON cannot write are texts: ``"nan"``, ``"inf"``, ``"-inf"``.

A stage ``divergence`` (id ``0/0/divergence``, ``0/0/divergence-backward``) holds the comparison of compiled code with its
graph; see `irscope.values.verdict` for its data.

``valuefile.py`` and ``reading.py`` need no torch; ``statistics.py``, ``interpreting.py``, ``compiled.py``,
``comparing.py``, ``zooming.py``, ``blaming.py`` and ``reproducer.py`` work in the script's process, with the torch that it
has imported; ``expressions.py`` and ``process.py`` are the value process, which a debugger asks.
"""
