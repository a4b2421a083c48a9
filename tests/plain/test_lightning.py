"""Breaks of a LightningModule that is compiled as a whole: the networks to compile instead."""

from __future__ import annotations

from pathlib import Path

from facts import a_range
from irscope.events.stack import FramePlace
from irscope.findings.lightning import is_in_module, networks_around, words_of
from irscope.fixing.texts import applied

SOURCE = """\
class Lit(LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.net = Net()
        self.head, self.unused = Net(), Net()
        self.head = Net()

    def forward(self, x):
        return self.head(self.net(x))

    def training_step(self, batch, index):
        self.log("loss", batch)


class Other(LightningModule):
    def training_step(self, batch, index):
        self.log("loss", self.made(batch))


self.log("loss", 1)
"""
LOG = FramePlace("/env/site-packages/lightning/pytorch/core/module.py", "log", a_range(531))


def test_the_networks_of_the_module(tmp_path: Path) -> None:
    file = tmp_path / "lit.py"
    file.write_text(SOURCE)
    assert networks_around(str(file), 13) == ["net", "head"]
    assert networks_around(str(file), 18) == networks_around(str(file), 21) == []
    words = words_of(FramePlace(str(file), "training_step", a_range(13, 8, 13, 31)), "")
    assert words.message.startswith('Graph break: `self.log("loss", batch)` calls Lightning, which')
    (hint,) = words.hints
    assert "`self.net = torch.compile(self.net); self.head = torch.compile(self.head)`" in hint
    (hint,) = words_of(FramePlace(str(file), "training_step", a_range(18, 8, 18, 42)), "").hints
    assert "`self.net = torch.compile(self.net)`" in hint


def test_the_hint_has_an_edit_where_the_file_compiles_the_module(tmp_path: Path) -> None:
    file = tmp_path / "lit.py"
    file.write_text(f"import torch\n\n{SOURCE}\nmodel = torch.compile(Lit(0.1))\n")
    (option,) = words_of(FramePlace(str(file), "training_step", a_range(15, 8, 15, 31)), "").options
    assert applied(file.read_text(), option.edits) == file.read_text().replace(
        "torch.compile(Lit(0.1))", "Lit(0.1)"
    ).replace(
        "        self.head = Net()\n",
        "        self.head = Net()\n        self.net = torch.compile(self.net)\n        self.head = torch.compile(self.head)\n",
    )


def test_only_calls_of_the_module() -> None:
    metric = FramePlace("/env/site-packages/torchmetrics/metric.py", "forward", a_range(1))
    assert is_in_module([LOG]) and is_in_module([LOG, metric])
    assert not is_in_module([]) and not is_in_module([metric, LOG])
