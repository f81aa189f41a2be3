"""lightning.Trainer doing what bench_trainer does: trainer_overhead_peer.py FOLDER STEPS ROUNDS. One JSON line."""
import itertools
import json
import logging
import statistics
import sys
import time
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader

folder, steps, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
WARM_UP = 100
torch.set_num_threads(1)
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class OneParameter(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def loss(self, x):
        return (x * self.weight - 1).square().mean()

    def training_step(self, x, _):
        loss = self.loss(x)
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Ready:
    """Batches that are there already; Lightning would take a list for several loaders."""

    def __iter__(self):
        return itertools.repeat(torch.zeros(1, 1, 1, 1), steps)

    def __len__(self):
        return steps


class StepTimer(lightning.Callback):
    """Of the steps after the first WARM_UP: what is paid once per training does not count."""

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == WARM_UP:
            self.begin = time.perf_counter()
        self.end = time.perf_counter()


def us_per_step(begin, end):
    return (end - begin) * 1e6 / (steps - WARM_UP)


def with_trainer(batches):
    timer = StepTimer()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        log_every_n_steps=50,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        logger=CSVLogger(folder),
        callbacks=[ModelCheckpoint(dirpath=folder, save_top_k=0), timer],
    )
    trainer.fit(OneParameter(), batches)
    return us_per_step(timer.begin, timer.end)


def bare():
    module, x = OneParameter(), torch.zeros(1, 1, 1, 1)
    optimizer = module.configure_optimizers()
    for step in range(steps):
        if step == WARM_UP:
            begin = time.perf_counter()
        loss = module.loss(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return us_per_step(begin, time.perf_counter())


bares, loaded, ready = [], [], []
for _ in range(rounds):
    bares.append(bare())
    loaded.append(with_trainer(DataLoader(torch.zeros(steps, 1, 1, 1), 1)))
    ready.append(with_trainer(Ready()))
step = statistics.median(bares)
print(
    json.dumps(
        {
            "bare_us": step,
            "overhead_us": statistics.median(loaded) - step,
            "alone_us": statistics.median(ready) - step,
        }
    )
)
