#!/usr/bin/env python3
"""Writes what the training of PyTorch, MONAI and Lightning does: step.safetensors (scaling, clipping),
averages.safetensors (averaged weights), train_2d.safetensors and train_3d.safetensors (whole trainings),
lightning.json (the loop).

    python tests/golden/make_training.py [--output FOLDER]      (needs benchmarks/requirements.txt)

What tests can compute, they compute: images and gradients come from noise(), which is Cytra's Rng.
"""
import argparse
import copy
import json
import logging
import tempfile
import warnings
from pathlib import Path

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from make_golden import NET_2D, Golden, make_net, put_weights
from monai.losses import DiceCELoss
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader


def mix(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def noise(seed, *shape):
    """Rng(seed).uniform() for every element in turn, as float32."""
    key = mix(mix(mix(np.uint64(seed))))
    draws = mix(key ^ mix(np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.uint64)))
    return torch.from_numpy((draws >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape).float()


# Scaling and clipping: one step at a time -----------------------------------------------------------------------------

SHAPES = [(3, 4), (5,)]
STEPS = 30
ADAMW, SGD = {"_target_": "AdamW", "lr": 0.05}, {"_target_": "SGD", "lr": 0.1, "momentum": 0.9}
BY_NORM = {"gradient_clip_val": 0.5}
BY_VALUE = {"gradient_clip_val": 0.25, "gradient_clip_algorithm": "value"}
# Name, optimizer, clipping, scaler; steps whose gradients are not finite whatever the scale. Beyond 65504 / 0.01 the
# scale makes float16 overflow by itself.
STEP_CASES = [
    ("clip_norm_adamw", ADAMW, BY_NORM, None, {}),
    ("clip_norm_sgd", SGD, BY_NORM, None, {}),
    ("clip_value_adamw", ADAMW, BY_VALUE, None, {}),
    ("clip_value_sgd", SGD, BY_VALUE, None, {}),
    ("scaler_small", ADAMW, {}, {"init_scale": 4.0, "growth_interval": 1}, {}),
    ("scaler_default", SGD, {}, {"init_scale": 65536.0, "growth_interval": 3}, {7: np.nan}),
    ("scaler_in_a_row", ADAMW, {}, {"init_scale": 1024.0, "growth_interval": 5}, {0: np.inf, 1: np.nan, 8: -np.inf}),
    ("scaler_other_factors", SGD, {},
     {"init_scale": 4096.0, "growth_interval": 2, "growth_factor": 3.0, "backoff_factor": 0.3}, {5: np.inf}),
    ("scaler_clip_norm", SGD, BY_NORM, {"init_scale": 65536.0, "growth_interval": 2}, {4: np.inf}),
    ("scaler_clip_norm_adamw", ADAMW, BY_NORM, {"init_scale": 16.0, "growth_interval": 1, "backoff_factor": 0.3}, {}),
    ("scaler_clip_value", SGD, BY_VALUE, {"init_scale": 65536.0, "growth_interval": 2}, {4: np.nan}),
]  # fmt: skip


def gradient(parameter, step):
    """Steps differ in size by a factor of up to 16."""
    return (noise(100 * step + parameter + 1, *SHAPES[parameter]) - 0.5) * 2.0 ** (step % 5 - 2)


def one_step(parameters, optimizer, clip, scaler, step, broken):
    """Returns the norm of the gradients, unscaled."""
    scale = scaler.scale(torch.ones(())).item() if scaler else None
    for i, parameter in enumerate(parameters):
        grad = gradient(i, step)
        parameter.grad = (grad * scale).half().float() if scaler else grad
    if step in broken:
        parameters[1].grad[2] = broken[step]
    if scaler:
        scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
    if clip:
        by = clip.get("gradient_clip_algorithm", "norm")
        getattr(torch.nn.utils, f"clip_grad_{by}_")(parameters, clip["gradient_clip_val"])
    if scaler:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()
    return norm


def steps(folder):
    g = Golden("step")
    for name, options, clip, scaling, broken in STEP_CASES:
        parameters = [torch.nn.Parameter(noise(i, *shape)) for i, shape in enumerate(SHAPES)]
        arguments = {k: v for k, v in options.items() if k != "_target_"}
        optimizer = getattr(torch.optim, options["_target_"])(parameters, **arguments)
        scaler = torch.amp.GradScaler("cpu", **scaling) if scaling else None
        norms, weights, scales, trackers = [], [], [], []
        for step in range(STEPS):
            norms.append(one_step(parameters, optimizer, clip, scaler, step, broken))
            weights.append(torch.cat([p.detach().flatten() for p in parameters]))
            if scaler:
                scales.append(torch.tensor(scaler.get_scale()))
                trackers.append(scaler._growth_tracker.clone())
        tensors = {"norm": torch.stack(norms), "weights": torch.stack(weights)}
        skipped = [s for s in range(1, STEPS) if torch.equal(weights[s], weights[s - 1])]
        if scaler:
            tensors |= {"scale": torch.stack(scales), "growth_tracker": torch.stack(trackers)}
            assert len(skipped) > 1 and len(set(map(float, scales))) > 2, name
        print(f"{name}: skipped {skipped}")
        broken_as = {str(k): str(v) for k, v in broken.items()}
        g.add(name, {}, tensors, optimizer=options, clip=clip, scaler=scaling, broken=broken_as)
    g.save(folder)


# Averages of the weights ----------------------------------------------------------------------------------------------


class Regression(lightning.LightningModule):
    """Learns y = 2 x - 1, by a network with a batch norm."""

    def __init__(self):
        super().__init__()
        layers = [torch.nn.Conv2d(1, 3, 1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Conv2d(3, 1, 1)]
        self.net = torch.nn.Sequential(*layers)
        with torch.no_grad():
            for i, parameter in enumerate(self.net.parameters()):
                parameter.copy_(noise(50 + i, *parameter.shape))

    def training_step(self, x, _):
        return (self.net(x) - (2 * x - 1)).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


QUIET = {
    "accelerator": "cpu",
    "devices": 1,
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


class Save(lightning.Callback):
    """A checkpoint after the last step, before the averages go into the model for good."""

    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, *_):
        trainer.save_checkpoint(self.path)


def averages(folder):
    g = Golden("averages")
    images = [noise(200 + i, 2, 4, 4) for i in range(24)]  # 12 batches of two images with one channel
    loader = DataLoader(torch.cat(images)[:, None], 4)
    # in float64: what is left of a difference is one
    options = {"max_epochs": 3, "accumulate_grad_batches": 2, "precision": "64-true"}
    for name, average in [
        ("every_step", {"decay": 0.9}),
        ("buffers_copied", {"decay": 0.9, "use_buffers": False}),
        ("every_third", {"decay": 0.8, "update_every_n_steps": 3}),
        ("from_step_four", {"decay": 0.8, "update_every_n_steps": 2, "update_starting_at_step": 5}),
    ]:
        module = Regression().double()
        with tempfile.TemporaryDirectory() as scratch:
            path = f"{scratch}/last.ckpt"
            callbacks = [EMAWeightAveraging(**average), Save(path)]
            lightning.Trainer(**QUIET, **options, callbacks=callbacks).fit(module, loader)
            saved = torch.load(path)
        tensors = {f"model.{k[4:]}": v for k, v in saved["state_dict"].items()}
        tensors |= {f"training.{k[4:]}": v for k, v in saved["current_model_state"].items()}
        g.add(name, average, tensors, trainer=options, callback="EMAWeightAveraging")
    for name, first, more in [
        ("swa_from_half", 0.5, {}),
        ("swa_from_one", 1, {"use_buffers": False}),
        ("swa_last", 3, {}),
    ]:
        module = Regression().double()
        average = AveragedModel(module.net, use_buffers=more.get("use_buffers", True))
        optimizer = module.configure_optimizers()
        for epoch in range(4):
            for x in loader:
                optimizer.zero_grad()
                module.training_step(x.double(), 0).backward()
                optimizer.step()
            if epoch >= (first * 4 if isinstance(first, float) else first):
                average.update_parameters(module.net)
        tensors = {f"model.{k}": v for k, v in average.module.state_dict().items()}
        tensors |= {f"training.{k}": v for k, v in module.net.state_dict().items()}
        options = {"max_epochs": 4, "precision": "64-true"}
        g.add(name, {"swa_epoch_start": first} | more, tensors, trainer=options, callback="StochasticWeightAveraging")
    g.save(folder)


# Whole trainings ------------------------------------------------------------------------------------------------------


def segmented(number, classes, *size):
    """An image of blocks and its classes, both (1, ...)."""
    blocks = noise(2 * number + 1001, *(n // 8 for n in size))
    seg = (blocks * classes).floor()
    for dim in range(len(size)):
        seg = seg.repeat_interleave(8, dim)
    return {"raw": (seg * 0.5 + noise(2 * number + 1000, *size))[None], "seg": seg[None]}


class Segmentation(lightning.LightningModule):
    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss
        self.losses, self.norms, self.rates = [], [], []

    def training_step(self, batch, index):
        loss = self.loss(self.net(batch["raw"]), batch["seg"])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=1e-2)
        parts = [lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 10), lr_scheduler.CosineAnnealingLR(optimizer, 40)]
        schedule = lr_scheduler.SequentialLR(optimizer, parts, [10])
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(self, optimizer, gradient_clip_val, gradient_clip_algorithm):
        self.norms.append(torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val).item())

    def on_before_zero_grad(self, optimizer):
        self.rates.append(optimizer.param_groups[0]["lr"])


def fit(net, loss, loader, options):
    module = Segmentation(net, loss)
    lightning.Trainer(**QUIET, **options).fit(module, loader)
    return np.array(module.losses).reshape(-1, 2).mean(1), module


def curve(folder, topic, net, loss, classes, size):
    g = Golden(topic)
    torch.manual_seed(7)
    model = make_net(net)
    put_weights(g, model)
    exact = copy.deepcopy(model).double()
    images = [segmented(i, classes, *size) for i in range(40)]
    options = {"max_epochs": 5, "accumulate_grad_batches": 2, "gradient_clip_val": 0.3}
    losses, module = fit(model, DiceCELoss(**loss), DataLoader(images, 2), options)
    doubles = [{k: v.double() for k, v in image.items()} for image in images]
    wide, _ = fit(exact, DiceCELoss(**loss), DataLoader(doubles, 2), options | {"precision": "64-true"})
    drift = np.abs(losses - wide).max()
    print(f"{topic}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; {drift:.1e} from a float64 run")
    assert len(losses) == 50 and min(module.norms) < 0.3 < max(module.norms)
    tensors = {"losses": torch.tensor(losses), "norms": torch.tensor(module.norms)}
    tensors["rates"] = torch.tensor(module.rates[:50], dtype=torch.float64)
    model_of = {k: v for k, v in net.items() if k not in ("norm_name", "act_name", "deep_supervision")}
    g.add("train", {}, tensors, model=model_of, loss=loss, trainer=options, classes=classes, size=size)
    g.save(folder)


# The loop -------------------------------------------------------------------------------------------------------------

# 10 images in batches of 2, 3 for validation one by one; "stop": should_stop after that step.
LOOPS = [
    {"max_epochs": 3},
    {"max_epochs": 3, "max_steps": 7},
    {"max_epochs": -1, "max_steps": 7},
    {"max_epochs": 0},
    {"max_epochs": 2, "max_steps": 0},
    {"max_epochs": 2, "num_sanity_val_steps": 0},
    {"max_epochs": 1, "num_sanity_val_steps": 2},
    {"max_epochs": 1, "num_sanity_val_steps": -1},
    {"max_epochs": 2, "limit_train_batches": 3},
    {"max_epochs": 2, "limit_train_batches": 0.5},
    {"max_epochs": 2, "limit_train_batches": 99},
    {"max_epochs": 2, "limit_val_batches": 2},
    {"max_epochs": 2, "limit_val_batches": 0.7},
    {"max_epochs": 2, "limit_val_batches": 0},
    {"max_epochs": 2, "limit_val_batches": 0.0},
    {"max_epochs": 2, "val_check_interval": 2},
    {"max_epochs": 2, "val_check_interval": 0.5},
    {"max_epochs": 2, "val_check_interval": 0.4, "limit_train_batches": 4},
    {"max_epochs": 2, "val_check_interval": 1},
    {"max_epochs": 4, "check_val_every_n_epoch": 2},
    {"max_epochs": 5, "check_val_every_n_epoch": 2, "val_check_interval": 0.5},
    {"max_epochs": 3, "check_val_every_n_epoch": None, "val_check_interval": 4},
    {"max_epochs": 3, "check_val_every_n_epoch": None, "val_check_interval": 7},
    {"max_epochs": 3, "accumulate_grad_batches": 2},
    {"max_epochs": 3, "accumulate_grad_batches": 5},
    {"max_epochs": 3, "accumulate_grad_batches": 7, "max_steps": 2},
    {"max_epochs": 2, "accumulate_grad_batches": 2, "val_check_interval": 2},
    {"max_epochs": 2, "accumulate_grad_batches": 2, "val_check_interval": 3},
    {"max_epochs": 2, "overfit_batches": 2},
    {"max_epochs": 2, "overfit_batches": 0.4},
    {"max_epochs": 9, "fast_dev_run": True},
    {"max_epochs": 9, "fast_dev_run": 2},
    {"max_epochs": 9, "stop": 3},
    {"max_epochs": 9, "min_epochs": 2, "stop": 3},
    {"max_epochs": 9, "min_steps": 7, "stop": 3},
    {"max_epochs": 9, "min_epochs": 2, "min_steps": 12, "stop": 3},
    {"max_epochs": 9, "min_epochs": 2, "max_steps": 8, "stop": 3},
]


class Counting(lightning.LightningModule):
    def __init__(self, stop):
        super().__init__()
        self.net, self.stop = torch.nn.Linear(1, 1), stop
        self.train_batches = self.sanity_batches = 0
        self.validations = []  # [global_step, batches]

    def training_step(self, x, _):
        self.train_batches += 1
        return self.net(x).mean()

    def on_train_batch_end(self, *_):
        if self.stop and self.trainer.global_step >= self.stop:
            self.trainer.should_stop = True

    def on_validation_epoch_start(self):
        if not self.trainer.sanity_checking:
            self.validations.append([self.trainer.global_step, 0])

    def validation_step(self, x, _):
        if self.trainer.sanity_checking:
            self.sanity_batches += 1
        else:
            self.validations[-1][1] += 1

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def loops(folder):
    train, valid = DataLoader(torch.zeros(10, 1), 2), DataLoader(torch.zeros(3, 1), 1)
    cases = []
    for case in LOOPS:
        options = {k: v for k, v in case.items() if k != "stop"}
        module = Counting(case.get("stop"))
        trainer = lightning.Trainer(**QUIET, **options)
        trainer.fit(module, train, valid)
        recorded = {
            "steps": trainer.global_step,
            "train_batches": module.train_batches,
            "sanity_batches": module.sanity_batches,
            "validations": [step for step, _ in module.validations],
            "validation_batches": sum(batches for _, batches in module.validations),
        }
        cases.append({"options": options, "stop": case.get("stop"), **recorded})
    path = folder / "lightning.json"
    lines = ",\n  ".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"lightning": "{lightning.__version__}", "cases": [\n  {lines}\n]}}\n')
    print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().output
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    steps(folder)
    averages(folder)
    curve(folder, "train_2d", NET_2D, {"sigmoid": True}, 2, [32, 32])
    net = NET_2D | {"spatial_dims": 3, "out_channels": 3, "filters": [3, 4, 6]}
    curve(folder, "train_3d", net, {"softmax": True, "to_onehot_y": True}, 3, [16, 16, 16])
    loops(folder)


if __name__ == "__main__":
    main()
