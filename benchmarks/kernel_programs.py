"""Small programs of many kinds, in three parts (0, 1, 2), whose kernels `kernel_resources.py` compares with ptxas."""

import sys

import torch
import torch.nn.functional as F

part = int(sys.argv[1])
x, y, z = torch.randn(64, 1000), torch.randn(64, 1000), torch.randn(1000)
h, w = torch.randn(256, 512, dtype=torch.bfloat16), torch.randn(512, 512, dtype=torch.bfloat16)
image = torch.randn(2, 8, 32, 32)
FUNCTIONS = [
    [
        lambda: x.softmax(-1),
        lambda: x.log_softmax(0),
        lambda: x.std(-1),
        lambda: x.var(0),
        lambda: x.cumsum(-1),
        lambda: x.argmax(-1),
        lambda: x.sort(-1)[0],
        lambda: x.sum(),
        lambda: F.layer_norm(x, (1000,), z, z),
        lambda: F.rms_norm(x, (1000,), z),
        lambda: F.gelu(x) * y,
        lambda: torch.erf(x) + torch.lgamma(y.abs() + 1),
        lambda: F.cross_entropy(x, torch.arange(64)),
        lambda: x.T.contiguous() + 1,
        lambda: torch.cat([x, y], 1),
        lambda: x.logsumexp(-1),
        lambda: torch.where(x > 0, x, y).amax(0),
        lambda: x.cumprod(-1),
        lambda: x.norm(dim=0),
    ],
    [
        lambda: F.max_pool2d(image, 2),
        lambda: F.avg_pool2d(image, 3),
        lambda: F.interpolate(image, scale_factor=2.0),
        lambda: F.interpolate(image, scale_factor=2.0, mode="bilinear"),
        lambda: F.group_norm(image, 4),
        lambda: F.batch_norm(image, None, None, training=True),
        lambda: F.embedding(torch.arange(64), x),
        lambda: x.index_select(1, torch.arange(10)),
        lambda: F.pad(image, (1, 1, 1, 1), mode="reflect"),
        lambda: torch.roll(x, 3, 1),
        lambda: x.half() @ y.half().T + 1,
        lambda: torch.fft.fft(x).abs(),
        lambda: F.softmax(x.double(), -1),
        lambda: (x.to(torch.int64) // 3) % 7,
        lambda: x.float().to(torch.float8_e4m3fn),
        lambda: F.dropout(x, 0.5),
        lambda: torch.tril(x) + torch.triu(y),
        lambda: x.view(64, 10, 100).mean((0, 2)),
        lambda: torch.pow(x.abs(), 1.7),
        lambda: F.one_hot(torch.arange(64), 100),
        lambda: x.median(-1)[0],
    ],
    [
        lambda: torch.relu(h @ w),
        lambda: F.silu(h @ w) * (h @ w.T),
        lambda: h.float() @ w.float(),
        lambda: torch.bmm(h.view(4, 64, 512), w.expand(4, 512, 512)),
        lambda: torch.addmm(h[:, 0:1].expand(256, 512).contiguous(), h, w),
        lambda: h[:, :64] @ w[:64],
    ],
]
for function in FUNCTIONS[part]:
    torch._dynamo.reset()
    torch.compile(
        function, options={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"} if part == 2 else {}
    )()
print(len(FUNCTIONS[part]))
