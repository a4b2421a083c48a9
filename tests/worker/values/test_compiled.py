"""The buffers of output code as they are written, on code made by hand."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import torch
from irscope.values.run.compiled import followed

TRITON = '''\
writes = async_compile.triton("writes", """
@triton.jit
def writes(in_out_ptr0, in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_out_ptr0 + (x0), xmask)
    tl.store(in_out_ptr0 + (x0), tmp0, xmask)
    tl.atomic_add(out_ptr0 + (x0), tmp0, xmask)
""", device_str="cuda")
reads = async_compile.triton("reads", """
@triton.jit
def reads(in_out_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_out_ptr0 + (x0), xmask)
    tl.atomic_add(out_ptr0 + (x0), tmp0, xmask)
""", device_str="cuda")


def call(args):
    arg0_1, = args
    buf0 = empty_strided((4, ), (1, ))
    buf1 = empty_strided((4, ), (1, ))
    writes.run(buf0, arg0_1, buf1, 4, stream=0)
    buf2 = buf0; del buf0  # reuse
    buf3 = empty_strided((4, ), (1, ))
    reads.run(buf2, buf3, 4, stream=0)
    return (buf1, buf3)
'''


def test_memory_that_a_triton_kernel_is_given_and_does_not_write_has_no_value(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(TRITON)
    module: Any = types.ModuleType("code")
    module.__file__ = str(file)
    kernel = types.SimpleNamespace(run=lambda *_, **__: None)
    vars(module).update(writes=kernel, reads=kernel, empty_strided=lambda size, _: torch.zeros(size))
    seen: list[tuple[str, str]] = []
    followed(module, lambda name, _, by: seen.append((name, by)))([torch.ones(4)])
    assert seen == [("buf0", "writes"), ("buf1", "writes"), ("buf3", "reads")]
