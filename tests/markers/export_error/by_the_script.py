"""What the script exports by itself: an error, what draft export reports, and a program that AOTInductor cannot compile."""
import os
import tempfile

import torch


class Positive(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
        #  ^^^^^^^^^^^ draft-export data-dependent-error
            x = x * 2
        return x


class Constant(torch.nn.Module):
    def forward(self, x):
        return x + torch.tensor(5.0).cumsum(0)


example = (torch.ones(3),)
torch.export.draft_export(Positive(), example)
exported = torch.export.export(Constant(), example)
with tempfile.TemporaryDirectory() as folder:
    try:
        torch._inductor.aoti_compile_and_package(exported, package_path=os.path.join(folder, "constant.pt2"))
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ export-error InductorError
    except Exception as error:
        print(error)
