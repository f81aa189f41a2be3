#!/usr/bin/env python3
"""Writes callbacks.json: what lightning's lr_find makes of recorded losses, and torch's TensorBoard histograms.

    python tests/golden/make_callbacks.py [--output FOLDER]      (needs benchmarks/requirements.txt)

{"torch", "lightning",
 "lr_find": [{"name", "options", "losses": all that were recorded, "lr", "smoothed", "suggestion"}],
 "histograms": [{"values", "min", "max", "count", "sum", "sum_squares", "limits", "counts"}],
 "rates": [{"name", "rates": what LearningRateMonitor logs at the first step}]}
"""
import argparse
import json
import logging
import math
import tempfile
import warnings
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import torch
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import make_histogram

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
DEFAULTS = {"min_lr": 1e-8, "max_lr": 1.0, "num_training": 100, "mode": "exponential", "early_stop_threshold": 4.0}


class Replay(pl.LightningModule):
    """Gives recorded losses, whatever is learned."""

    def __init__(self, losses, optimizer=None):
        super().__init__()
        self.lr = 1e-3
        self.losses = losses
        self.step = 0
        self.net = torch.nn.Linear(1, 1)
        self.make = optimizer or (lambda net: torch.optim.SGD(net.parameters(), lr=1e-3))

    def training_step(self, batch, index):
        loss = self.losses[self.step]
        self.step += 1
        return self.net(batch).sum() * 0 + torch.tensor(loss, dtype=torch.float64)

    def configure_optimizers(self):
        return self.make(self.net)


def trainer(folder, **options):
    return pl.Trainer(default_root_dir=folder, accelerator="cpu", enable_progress_bar=False, enable_model_summary=False,
                      enable_checkpointing=False, **options)


def recorded(count, rng, bottom, top):
    """A curve as range tests show it: flat, down, and up again."""
    at = np.linspace(0, 1, count)
    curve = 1 - 0.7 / (1 + np.exp(-(at - bottom) * 20)) + np.exp((at - top) * 60)
    return [round(float(x), 6) for x in curve + rng.normal(0, 0.03, count)]


def lr_find_cases():
    rng = np.random.default_rng(4)
    for name, options, losses in (
        ("usual", {}, recorded(100, rng, 0.5, 0.97)),
        ("diverges", {}, recorded(100, rng, 0.4, 0.7)),
        ("linear", {"mode": "linear", "num_training": 40, "early_stop_threshold": None, "min_lr": 1e-3, "max_lr": 0.5},
         recorded(40, rng, 0.5, 1.2)),
        ("short", {"num_training": 14}, recorded(14, rng, 0.6, 1.2)),
    ):
        options = DEFAULTS | options
        with tempfile.TemporaryDirectory() as folder:
            tuner = pl.tuner.Tuner(trainer(folder, logger=False, max_epochs=-1))
            finder = tuner.lr_find(Replay(losses), DataLoader(torch.ones(200, 1)), update_attr=False, **options)
        yield {"name": name, "options": options, "losses": losses, "lr": finder.results["lr"],
               "smoothed": finder.results["loss"], "suggestion": finder.suggestion()}


def histogram_cases():
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        bins = SummaryWriter(folder).default_bins
    for values in (rng.normal(0, 0.02, 60), np.zeros(3), np.array([0, 1e-12, -1e-12, 5e-13, 1.0, -2.5]), rng.uniform(1, 1.05, 5),
                   np.array([1e21, 3.0, -1e25])):
        values = values.astype(np.float32)
        proto = make_histogram(values.astype(np.float64), bins)
        yield {"values": [float(v) for v in values], "min": proto.min, "max": proto.max, "count": proto.num, "sum": proto.sum,
               "sum_squares": proto.sum_squares, "limits": list(proto.bucket_limit), "counts": list(proto.bucket)}


class Rates(pl.loggers.logger.DummyLogger):
    rows = None

    def log_metrics(self, metrics, step=None):
        self.rows = self.rows or []
        self.rows.append({k: v for k, v in metrics.items() if k.startswith("lr-")})


def rate_cases():
    def groups(net, make):
        return make([{"params": [net.weight]}, {"params": [net.bias], "lr": 0.05, "weight_decay": 0.25}])

    for name, make in (
        ("AdamW", lambda net: torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.5, betas=(0.8, 0.99))),
        ("SGD", lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.7)),
        ("AdamW groups", lambda net: groups(net, lambda g: torch.optim.AdamW(g, lr=0.1, weight_decay=0.5))),
    ):
        rates = Rates()
        monitor = pl.callbacks.LearningRateMonitor("step", log_momentum=True, log_weight_decay=True)
        with tempfile.TemporaryDirectory() as folder:
            trainer(folder, logger=rates, max_steps=1, log_every_n_steps=1, callbacks=[monitor]).fit(
                Replay([1.0], make), DataLoader(torch.ones(2, 1)))
        yield {"name": name, "rates": rates.rows[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    torch.manual_seed(0)
    golden = {"torch": torch.__version__, "lightning": pl.__version__, "lr_find": list(lr_find_cases()),
              "histograms": list(histogram_cases()), "rates": list(rate_cases())}
    text = json.dumps(golden, allow_nan=False, separators=(",", ":"))
    assert not any(math.isnan(x) for case in golden["lr_find"] for x in case["smoothed"])
    (args.output / "callbacks.json").write_text(text.replace('},{"', '},\n{"') + "\n")


if __name__ == "__main__":
    main()
