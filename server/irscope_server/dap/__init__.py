"""The debug adapter: walks through a compile pipeline that has run, in the words of a debugger.

A thread is a compile, the call stack is provenance, *step in* goes to what an operation became in the next stage and
*step out* to what it came from.  The run is recorded, so every step can be taken back.

`recording.py`, `walking.py`, `links.py` and `breakpoints.py` know the run but not the protocol; the modules with
``…_requests`` in their names answer requests; `session.py` reads, orders and writes messages.  Nothing here imports
torch, and nothing that a client sends is executed.
"""
