"""Ids of calls that Dynamo does not trace: builtins, C functions, the standard library, what is switched off."""
import copy
import ctypes
import io
import logging
import os
import random
import sys
import time
import uuid
import warnings

import torch

log = logging.getLogger("markers")
STATE = {"mean": torch.zeros(4)}


@torch.compile
def printed(x):
    print(x.shape)
    #^^^^^^^^^^^^^ graph-break GB0059
    return x + 1


@torch.compile
def logged(x):
    log.warning("shape %s", x.shape)
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0291
    return x + 1


@torch.compile
def warned(x):
    warnings.warn("careful")
    #^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0007
    return x + 1


@torch.compile
def copied(x):
    return x + copy.deepcopy(STATE["mean"])
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB4198


@torch.compile
def timed(x):
    start = time.perf_counter()
    #       ^^^^^^^^^^^^^^^^^^^ graph-break GB0007
    y = x.sin()
    return y * (time.perf_counter() - start)
    #           ^^^^^^^^^^^^^^^^^^^ graph-break GB0007


@torch.compile
def read(x):
    with open(__file__) as file:
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0142
    #    ^^^^^^^^^^^^^^ graph-break GB0059
        return x * len(file.readline())


@torch.compile
def random_value(x):
    return x * random.SystemRandom().random()
    #          ^^^^^^^^^^^^^^^^^^^^^ graph-break GB0156
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0008


@torch.compile
def identified(x):
    return x * len(str(uuid.uuid4()))
    #                  ^^^^^^^^^^^^ graph-break GB0007


@torch.compile
def environment(x):
    return x * len(os.environ.get("HOME", ""))


@torch.compiler.disable(reason="it talks to a server")
def upload(x):
    return x


@torch.compile
def disabled(x):
    return upload(x + 1) * 2
    #      ^^^^^^^^^^^^^ graph-break GB0098


@torch.compile
def frames(x):
    return x * sys._getframe().f_lineno
    #          ^^^^^^^^^^^^^^^ graph-break GB0007


@torch.compile
def slept(x):
    time.sleep(0)
    #^^^^^^^^^^^^ graph-break GB0007
    return x + 1


@torch.compile
def evaluated(x):
    return x * eval("1 + 1")


@torch.compile
def buffered(x):
    buffer = io.BytesIO()
    #        ^^^^^^^^^^^^ graph-break GB0156
    torch.save(x, buffer)
    #^^^^^^^^^^^^^^^^^^^^ graph-break GB0007
    return x + buffer.tell()
    #          ^^^^^^^^^^^^^ graph-break GB0156


@torch.compile
def by_pointer(x):
    return x * ctypes.c_int(3).value
    #          ^^^^^^^^^^^^^^^ graph-break GB0156


@torch.compile
def typed(x):
    return x * len(input_like.__class__.__name__) + sys.getsizeof(3)
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB4841
    #                                               ^^^^^^^^^^^^^^^^ graph-break GB0007


@torch.compile
def imported(x):
    import colorsys

    return x * colorsys.rgb_to_hsv(1, 0, 0)[1]


input_like = object()
for f in (printed, logged, warned, copied, timed, read, random_value, identified, environment, disabled, frames, slept, evaluated, buffered, by_pointer, typed, imported):
    f(torch.arange(4.0))
