"""Two small models, and scripts that compile them with each system by hand, as its own documentation does it.

A script compiles one model, with cold caches, and calls it once.  It has no dumps and no stages, and does not know
irscope.  Where a pipeline shows what a system makes on request only (the decomposed program of ``torch.export``, the
frozen and the optimized graph of TorchScript, LLVM IR, assembly and CUDA source of TVM), the script asks for it, too.
"""

from __future__ import annotations

MODELS = {
    "bert": """\
import torch
import transformers as T

torch.manual_seed(0)
config = T.BertConfig(
    vocab_size=30522, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
    return_dict=False,
)
model, inputs = T.BertModel(config).eval(), dict(input_ids=torch.randint(3, 999, (2, 16)))
""",
    "conv": """\
import torch

torch.manual_seed(0)
block = lambda a, b: (torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.BatchNorm2d(b), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
model = torch.nn.Sequential(*block(3, 16), *block(16, 32), torch.nn.Flatten(), torch.nn.Linear(2048, 10)).eval()
inputs = dict(input=torch.randn(2, 3, 32, 32))
""",
}
"""BERT-tiny (2 layers of 128) and a net of two convolutions; ``model`` is called with ``inputs``."""

THROUGH_IRSCOPE = """
with torch.no_grad():
    torch.compile(model)(**inputs)
"""
"""The end of the script that `irscope run --pipeline` runs."""
_PRUNE = """
from torch.nn.utils import prune

for module in model.modules():
    if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
        prune.l1_unstructured(module, "weight", 0.5)
"""
BEFORE = {"pruning": _PRUNE}
"""What comes before the compile, by hand and through irscope."""
BY_HAND = {
    "inductor": THROUGH_IRSCOPE,
    "pruning": THROUGH_IRSCOPE,
    "export": """
with torch.no_grad():
    program = torch.export.export(model, (), inputs)
    program.run_decompositions()
    program.module()(**inputs)
""",
    "aotinductor": """
import tempfile

with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
    program = torch.export.export(model, (), inputs)
    path = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
    torch._inductor.aoti_load_package(path)(**inputs)
""",
    "torchscript": """
with torch.no_grad():
    traced = torch.jit.trace(model, tuple(inputs.values()), strict=False, check_trace=False)
    torch.jit.freeze(traced)
    traced(*inputs.values())
    traced(*inputs.values())  # the first call is only profiled
    torch.jit.last_executed_optimized_graph()
""",
    "onnx": """
import onnxruntime

with torch.no_grad():
    program = torch.onnx.export(model, (), kwargs=inputs, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    session.run(None, dict(zip(names, (one.numpy() for one in inputs.values()))))
""",
    "openvino": """
import openvino

with torch.no_grad():
    converted = openvino.convert_model(torch.export.export(model, (), inputs))
    compiled = openvino.compile_model(converted, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    compiled([one.numpy() for one in inputs.values()])
""",
    # torchax 0.0.13 names overloads that PyTorch 2.13 does not have any more: without the first lines it is not imported.
    "openxla": """
packet, known = torch._ops.OpOverloadPacket, torch._ops.OpOverloadPacket.__getattr__


def found(self, name):
    try:
        return known(self, name)
    except AttributeError:
        if name.startswith("__"):
            raise
        return object()


packet.__getattr__ = found
import jax
import torchax
from torchax.export import exported_program_to_jax
from torchax.ops.mappings import t2j

with torch.no_grad(), jax.enable_x64(True):
    weights, function = exported_program_to_jax(torch.export.export(model, (), inputs))
    arrays = tuple(t2j(one) for one in inputs.values())
    compiled = jax.jit(function).lower(weights, arrays).compile()
    jax.block_until_ready(compiled(weights, arrays))
""",
    "tvm": """
import tvm
from tvm.relax.frontend.torch import from_exported_program

with torch.no_grad():
    program = torch.export.export(model, (), inputs)
    module = from_exported_program(program, keep_params_as_input=True)
    module, parameters = tvm.relax.frontend.detach_params(module)
    built = tvm.compile(module, target="llvm")
    machine = tvm.relax.VirtualMachine(built, tvm.cpu())
    machine["main"](*(tvm.runtime.from_dlpack(one) for one in inputs.values()), *parameters["main"])

# What it asks for
[code] = [one for one in built.mod.imports if one.kind == "llvm"]
code.inspect_source("ll"), code.inspect_source("asm")

import importlib

from tvm.s_tir import dlight

split = importlib.import_module("tvm.tirx.build").split_host_device_mods
target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"}).with_host(tvm.target.Target("llvm"))
gpu = dlight.gpu
with target:
    lowered = tvm.relax.get_pipeline("zero")(module)
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    lowered = dlight.ApplyDefaultSchedule(*rules)(tvm.relax.transform.AttachGlobalSymbol()(lowered))
lower, _, finish = tvm.tirx.get_default_tir_pipeline(target)
functions = {name: one for name, one in lowered.functions.items() if isinstance(one, tvm.tirx.PrimFunc)}
lowered = lower(tvm.tirx.transform.BindTarget(target)(tvm.IRModule(functions)))
for device, part in split(lowered)[1].items():
    tvm.get_global_func("target.build.cuda")(finish()(part), device).inspect_source()
""",
    "torchao": """
import torch._inductor.config
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

with torch.no_grad():
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    graph = prepare_pt2e(torch.export.export(model, (), inputs).module(), quantizer)
    graph(**inputs)
    torch._inductor.config.freezing = True
    torch.compile(convert_pt2e(graph))(**inputs)
""",
    "xla": """
import torch_xla

with torch.no_grad():
    device = torch_xla.device()
    model.to(device)
    found = model(**{name: one.to(device) for name, one in inputs.items()})
    torch_xla.sync()
    [one.cpu() for one in (found if isinstance(found, tuple) else (found,))]
""",
}
"""The end of the script by hand, by the name of the pipeline."""


def scripts_of(pipeline: str, model: str) -> tuple[str, str]:
    """The script by hand, and the one for irscope."""
    start = MODELS[model] + BEFORE.get(pipeline, "")
    return start + BY_HAND[pipeline], start + THROUGH_IRSCOPE
