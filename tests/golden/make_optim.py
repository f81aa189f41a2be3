#!/usr/bin/env python3
"""Writes optim.safetensors and optim_more.safetensors: what the optimizers, schedulers and clipping of PyTorch, MONAI and lion-pytorch do.

    python tests/golden/make_optim.py [--output FOLDER]      (needs benchmarks/requirements.txt)
"""
import argparse
import math
import warnings
from pathlib import Path

import torch
from lion_pytorch import Lion
from make_golden import Golden
from monai.optimizers import Novograd, WarmupCosineSchedule
from torch.optim import lr_scheduler

STEPS, KEPT = 25, [0, 1, 4, 11, 24]
SHAPES = {
    "stem.conv.weight": (3, 2),
    "stem.conv.bias": (3,),
    "blocks.0.weight": (2, 4),
    "blocks.0.norm.weight": (2,),
    "blocks.1.weight": (4,),
    "head.weight": (2, 2),
    "head.bias": (2,),
}
MISSING = {3: ["head.bias"], 4: ["head.bias", "stem.conv.weight"], 10: list(SHAPES)}  # gradients, by step
LATE = {0: ["head.bias", "blocks.1.weight"], 1: ["head.bias"], 6: ["stem.conv.weight"]}
IMPLEMENTATIONS = {
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "plain": {"fused": False, "foreach": False},
}
GROUPS = [
    {"params": "^blocks[.]", "lr_scale": 0.1, "weight_decay": 0.3},
    {"params": "conv", "freeze": True},
    {"params": "bias$|norm", "lr_scale": 2.0},
]
# What GROUPS, no_decay_norm_and_bias and layer_decay mean for each parameter: (lr_scale, weight decay), None: frozen.
GROUPED = [None, None, (0.1, 0.3), (0.1, 0.3), (0.1, 0.3), (1.0, 0.05), (2.0, 0.05)]
DECAYED = [(0.125, 0.05), (0.125, 0.0), (0.25, 0.05), (0.25, 0.0), (0.5, 0.0), (1.0, 0.05), (1.0, 0.0)]

OPTIMIZERS = [  # name, class, options, more: missing, settings, cycle
    ("adamw", "AdamW", {"lr": 1e-2}, {}),
    ("adamw_amsgrad", "AdamW", {"lr": 1e-2, "amsgrad": True, "weight_decay": 0.1, "betas": [0.8, 0.95]}, {}),
    ("adamw_maximize", "AdamW", {"lr": 1e-2, "maximize": True, "eps": 1e-4}, {}),
    ("adamw_groups", "AdamW", {"lr": 1e-2, "weight_decay": 0.05, "param_groups": GROUPS}, {"settings": GROUPED}),
    ("adamw_layers", "AdamW", {"lr": 1e-2, "weight_decay": 0.05, "layer_decay": 0.5, "no_decay_norm_and_bias": True},
     {"settings": DECAYED}),
    ("adamw_cycle", "AdamW", {"lr": 1e-2}, {"cycle": True}),
    ("adam", "Adam", {"lr": 1e-2}, {"missing": LATE}),
    ("adam_all", "Adam", {"lr": 3e-3, "amsgrad": True, "maximize": True, "weight_decay": 0.1}, {}),
    ("sgd", "SGD", {"lr": 0.05, "weight_decay": 0.02, "maximize": True}, {}),
    ("sgd_nesterov", "SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, {"cycle": True}),
    ("sgd_dampening", "SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "maximize": True}, {}),
    ("sgd_groups", "SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.05, "param_groups": GROUPS},
     {"settings": GROUPED}),
]
PLAIN_OPTIMIZERS = [
    ("sgd_late", "SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}, {"missing": LATE}),
    ("lion", "Lion", {"lr": 1e-3}, {}),
    ("lion_decay", "Lion", {"lr": 2e-3, "betas": [0.95, 0.98], "weight_decay": 0.3}, {"cycle": True}),
    ("lion_decoupled", "Lion", {"lr": 2e-3, "weight_decay": 0.01, "decoupled_weight_decay": True}, {}),
    ("novograd", "Novograd", {"lr": 1e-2}, {"missing": LATE}),
    ("novograd_all", "Novograd", {"lr": 1e-2, "amsgrad": True, "grad_averaging": True, "weight_decay": 0.1,
                                  "betas": [0.8, 0.9]}, {}),
    ("novograd_groups", "Novograd", {"lr": 1e-2, "weight_decay": 0.05, "param_groups": GROUPS},
     {"settings": GROUPED}),
]  # fmt: skip
MORE_OPTIMIZERS = [
    ("rmsprop", "RMSprop", {"lr": 1e-2}, {}),
    ("rmsprop_all", "RMSprop", {"lr": 3e-3, "momentum": 0.9, "centered": True, "alpha": 0.9, "weight_decay": 0.1,
                                "eps": 1e-4, "maximize": True}, {"cycle": True, "missing": LATE}),
    ("rmsprop_groups", "RMSprop", {"lr": 1e-2, "weight_decay": 0.05, "param_groups": GROUPS}, {"settings": GROUPED}),
    ("adagrad", "Adagrad", {"lr": 1e-2}, {"missing": LATE}),
    ("adagrad_all", "Adagrad", {"lr": 0.05, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2,
                                "eps": 1e-4, "maximize": True}, {}),
    ("radam", "RAdam", {"lr": 1e-2}, {"missing": LATE}),
    ("radam_all", "RAdam", {"lr": 1e-2, "betas": [0.8, 0.95], "weight_decay": 0.1, "maximize": True}, {"cycle": True}),
    ("radam_decoupled", "RAdam", {"lr": 1e-2, "weight_decay": 0.1, "decoupled_weight_decay": True}, {}),
    ("nadam", "NAdam", {"lr": 1e-2}, {"missing": LATE}),
    ("nadam_all", "NAdam", {"lr": 1e-2, "betas": [0.8, 0.95], "weight_decay": 0.1, "momentum_decay": 0.1,
                            "maximize": True}, {"cycle": True}),
    ("nadam_decoupled", "NAdam", {"lr": 1e-2, "weight_decay": 0.1, "decoupled_weight_decay": True}, {}),
    ("adamax", "Adamax", {"lr": 1e-2}, {"missing": LATE}),
    ("adamax_all", "Adamax", {"lr": 1e-2, "betas": [0.8, 0.95], "weight_decay": 0.1, "eps": 1e-4, "maximize": True},
     {"cycle": True}),
    ("adadelta", "Adadelta", {}, {"missing": LATE}),
    ("adadelta_all", "Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}, {}),
]  # fmt: skip
SLOTS = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg", "sum", "exp_inf",
         "acc_delta"]  # fmt: skip
CLASSES = {"Lion": Lion, "Novograd": Novograd}


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def lr_factor(step):
    return 1 - 0.02 * step


def momentum_at(step):
    return 0.95 - 0.01 * (step % 10)


def train(g, name, kind, options, arguments, missing=MISSING, settings=None, cycle=False):
    parameters = {n: torch.nn.Parameter(g.tensors["start." + n].clone()) for n in SHAPES}
    own = {k: v for k, v in options.items() if k not in ("param_groups", "layer_decay", "no_decay_norm_and_bias")}
    own = {k: tuple(v) if k == "betas" else v for k, v in own.items()} | arguments
    groups, scales = [], []
    for parameter, setting in zip(parameters.values(), settings or [(1.0, options.get("weight_decay"))] * len(SHAPES)):
        if setting is None:
            continue
        decay = {} if setting[1] is None else {"weight_decay": setting[1]}
        groups.append({"params": [parameter], "lr": options.get("lr", 1.0) * setting[0], **decay})
        scales.append(setting[0])
    optimizer = CLASSES.get(kind, getattr(torch.optim, kind, None))(groups, **own)
    kept = []
    for step in range(STEPS):
        for n, parameter in parameters.items():
            has_gradient = n not in missing.get(step, [])
            parameter.grad = g.tensors["grads." + n][step].clone() if has_gradient else None
        for group, scale in zip(optimizer.param_groups, scales):
            group["lr"] = options.get("lr", 1.0) * lr_factor(step) * scale
            if cycle and "betas" in group:
                group["betas"] = (momentum_at(step), group["betas"][1])
            elif cycle:
                group["momentum"] = momentum_at(step)
        optimizer.step()
        if step in KEPT:
            kept.append(flat(parameters.values()))
    tensors = {"params": torch.stack(kept)}
    states = [optimizer.state[p] for p, s in zip(parameters.values(), settings or [()] * len(SHAPES)) if s is not None]
    for slot in SLOTS:
        if states[0].get(slot) is not None:
            tensors[slot] = flat([state[slot] for state in states])
    tensors["missing"] = "late" if missing is LATE else "missing"
    g.add(name, options, tensors, optimizer=kind, cycle=cycle)


def trajectories(g):
    for n, shape in SHAPES.items():
        g.put("start." + n, torch.randn(shape))
        g.put("grads." + n, torch.randn(STEPS, *shape) * 10.0 ** torch.randint(-2, 1, (STEPS, *[1] * len(shape))))
    for key, missing in [("missing", MISSING), ("late", LATE)]:
        rows = [[n in missing.get(step, []) for n in SHAPES] for step in range(STEPS)]
        g.put(key, torch.tensor(rows, dtype=torch.uint8))


def optimizers(g):
    trajectories(g)
    for name, kind, options, more in OPTIMIZERS:
        for implementation, arguments in IMPLEMENTATIONS.items():
            if name == "adamw_layers" and implementation != "plain":
                continue  # only the settings are new
            train(g, f"{name}.{implementation}", kind, options, arguments, **more)
    for name, kind, options, more in PLAIN_OPTIMIZERS:
        train(g, name + ".all", kind, options, {"foreach": False} if kind == "SGD" else {}, **more)


def more_optimizers(g):
    trajectories(g)
    for name, kind, options, more in MORE_OPTIMIZERS:
        train(g, name + ".all", kind, options, {"foreach": False}, **more)


TOTAL, EPOCH = 60, 4  # steps of a training, of an epoch
S = lr_scheduler
SCHEDULERS = [  # name, class, options, the peer made from an optimizer
    ("constant", "ConstantLR", {}, lambda o: S.ConstantLR(o)),
    ("constant_7", "ConstantLR", {"factor": 0.2, "total_iters": 7}, lambda o: S.ConstantLR(o, 0.2, 7)),
    ("constant_whole", "ConstantLR", {"factor": 0.2, "total_iters": None}, lambda o: S.ConstantLR(o, 0.2, 100)),
    ("linear", "LinearLR", {}, lambda o: S.LinearLR(o)),
    ("linear_down", "LinearLR", {"start_factor": 0.9, "end_factor": 0.1, "total_iters": None},
     lambda o: S.LinearLR(o, 0.9, 0.1, TOTAL)),
    ("exponential", "ExponentialLR", {"gamma": 0.95}, lambda o: S.ExponentialLR(o, 0.95)),
    ("polynomial", "PolynomialLR", {}, lambda o: S.PolynomialLR(o)),
    ("polynomial_whole", "PolynomialLR", {"total_iters": None, "power": 0.9}, lambda o: S.PolynomialLR(o, TOTAL, 0.9)),
    ("step", "StepLR", {"step_size": 7, "gamma": 0.5}, lambda o: S.StepLR(o, 7, 0.5)),
    ("multi_step", "MultiStepLR", {"milestones": [5, 20, 20, 41]}, lambda o: S.MultiStepLR(o, [5, 20, 20, 41])),
    ("cosine", "CosineAnnealingLR", {}, lambda o: S.CosineAnnealingLR(o, TOTAL)),
    ("cosine_beyond", "CosineAnnealingLR", {"T_max": 17, "eta_min": 1e-3}, lambda o: S.CosineAnnealingLR(o, 17, 1e-3)),
    ("restarts", "CosineAnnealingWarmRestarts", {"T_0": 7}, lambda o: S.CosineAnnealingWarmRestarts(o, 7)),
    ("restarts_2", "CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 1e-2},
     lambda o: S.CosineAnnealingWarmRestarts(o, 5, 2, 1e-2)),
    ("one_cycle", "OneCycleLR", {"max_lr": 0.5}, lambda o: S.OneCycleLR(o, 0.5, TOTAL)),
    ("one_cycle_base", "OneCycleLR", {"epochs": 4, "steps_per_epoch": 16, "pct_start": 0.25, "three_phase": True,
                                      "base_momentum": 0.7, "max_momentum": 0.9},
     lambda o: S.OneCycleLR(o, 0.1, epochs=4, steps_per_epoch=16, pct_start=0.25, three_phase=True, base_momentum=0.7,
                            max_momentum=0.9)),
    ("one_cycle_linear", "OneCycleLR", {"max_lr": 0.5, "total_steps": 61, "anneal_strategy": "linear",
                                        "cycle_momentum": False, "div_factor": 10.0, "final_div_factor": 100.0},
     lambda o: S.OneCycleLR(o, 0.5, 61, anneal_strategy="linear", cycle_momentum=False, div_factor=10.0,
                            final_div_factor=100.0)),
    ("sequential", "SequentialLR",
     {"schedulers": [{"_target_": "ConstantLR", "factor": 0.2, "total_iters": 10},
                     {"_target_": "PolynomialLR", "total_iters": None},
                     {"_target_": "CosineAnnealingLR"}], "milestones": [12, 30]},
     lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.2, 10), S.PolynomialLR(o, 18), S.CosineAnnealingLR(o, TOTAL - 30)],
                              [12, 30])),
    ("warmup_cosine", "WarmupCosineSchedule", {"warmup_steps": 8, "end_lr": 5e-3, "cycles": 1.5},
     lambda o: WarmupCosineSchedule(o, 8, TOTAL, end_lr=5e-3, cycles=1.5)),
    ("warmup_cosine_short", "WarmupCosineSchedule",
     {"warmup_steps": 8, "t_total": 70, "warmup_multiplier": 0.3}, lambda o: WarmupCosineSchedule(
         o, 8, 70, warmup_multiplier=0.3)),
    ("linear_warmup", "CosineAnnealingLR", {"warmup_steps": 9, "warmup_start_factor": 0.2}, lambda o: S.SequentialLR(
        o, [S.LinearLR(o, 0.2, 1.0, 9), S.CosineAnnealingLR(o, TOTAL - 9)], [9])),
    ("constant_warmup", "StepLR",
     {"warmup_steps": 9, "warmup_start_factor": 0.2, "warmup": "constant", "step_size": 11}, lambda o: S.SequentialLR(
         o, [S.ConstantLR(o, 0.2, 9), S.StepLR(o, 11)], [9])),
    ("cosine_warmup", "ExponentialLR",
     {"warmup_steps": 9, "warmup_start_factor": 0.2, "warmup": "cosine", "gamma": 0.9}, lambda o: S.LambdaLR(
         o, lambda i: 0.2 + 0.8 * (1 - math.cos(math.pi * i / 9)) / 2 if i < 9 else 0.9 ** (i - 9))),
    ("epochs", "MultiStepLR", {"milestones": [3, 6], "interval": "epoch"}, lambda o: S.MultiStepLR(o, [3, 6])),
    ("epochs_whole", "CosineAnnealingLR", {"interval": "epoch"}, lambda o: S.CosineAnnealingLR(o, TOTAL // EPOCH)),
    ("every_third", "CosineAnnealingLR", {"frequency": 3}, lambda o: S.CosineAnnealingLR(o, TOTAL // 3)),
    ("every_second_epoch", "ExponentialLR", {"gamma": 0.5, "interval": "epoch", "frequency": 2},
     lambda o: S.ExponentialLR(o, 0.5)),
]  # fmt: skip

MORE_SCHEDULERS = [
    ("cyclic", "CyclicLR", {"base_lr": 0.02, "max_lr": 0.5, "step_size_up": 7}, lambda o: S.CyclicLR(o, 0.02, 0.5, 7)),
    ("cyclic_base", "CyclicLR", {"step_size_up": 5, "step_size_down": 8, "mode": "triangular2", "base_momentum": 0.7,
                                 "max_momentum": 0.95},
     lambda o: S.CyclicLR(o, 0.01, 0.1, 5, 8, "triangular2", base_momentum=0.7, max_momentum=0.95)),
    ("cyclic_exp", "CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 9, "step_size_down": 4,
                                "mode": "exp_range", "gamma": 0.97, "cycle_momentum": False},
     lambda o: S.CyclicLR(o, 0.01, 0.2, 9, 4, "exp_range", 0.97, cycle_momentum=False)),
]  # fmt: skip


def dummy():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)


def schedulers(g, cases):
    for name, kind, options, make in cases:
        optimizer = dummy()
        scheduler = make(optimizer)
        rates, momenta = [], []
        per_step = options.get("interval") != "epoch"
        for step in range(TOTAL):
            rates.append(optimizer.param_groups[0]["lr"])
            momenta.append(optimizer.param_groups[0]["momentum"])
            optimizer.step()
            done = step + 1 if per_step else (step + 1) // EPOCH
            # When Lightning calls it: after each `frequency` steps, or epochs.
            if (per_step or (step + 1) % EPOCH == 0) and done % options.get("frequency", 1) == 0:
                scheduler.step()
        tensors = {"lr": torch.tensor(rates, dtype=torch.float64)}
        if kind in ("OneCycleLR", "CyclicLR") and options.get("cycle_momentum", True):
            tensors["momentum"] = torch.tensor(momenta, dtype=torch.float64)
        g.add(name, options, tensors, scheduler=kind)


PLATEAUS = [
    ("plateau", {"patience": 2}),
    ("plateau_cooldown", {"patience": 1, "cooldown": 3, "factor": 0.5, "threshold": 0.05, "min_lr": 1e-3}),
    ("plateau_max", {"mode": "max", "patience": 3, "factor": 0.3, "threshold": 0.02, "threshold_mode": "abs",
                     "eps": 1e-4}),
    ("plateau_min_abs", {"patience": 0, "cooldown": 1, "factor": 0.7, "threshold": 0.1, "threshold_mode": "abs"}),
    ("plateau_max_rel", {"mode": "max", "patience": 2, "factor": 0.7}),
]  # fmt: skip


def plateaus(g):
    values = torch.exp(-torch.arange(60, dtype=torch.float64) / 15) + 0.1 * torch.rand(60, dtype=torch.float64)
    values[30] = float("nan")
    metrics = {"min": g.put("metric.min", values), "max": g.put("metric.max", 1 - values)}
    for name, options in PLATEAUS:
        optimizer = dummy()
        scheduler = S.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for value in g.tensors[metrics[options.get("mode", "min")]]:
            scheduler.step(value)
            rates.append(optimizer.param_groups[0]["lr"])
        lr = torch.tensor(rates, dtype=torch.float64)
        assert len(lr.unique()) > 2, name
        g.add(name, options, {"lr": lr, "metric": metrics[options.get("mode", "min")]}, plateau=True)


CLIPPING = [("norm_low", "norm", 0.5, 2), ("norm_high", "norm", 100.0, 2), ("value", "value", 0.3, 2)]
MORE_CLIPPING = [("norm_1", "norm", 0.5, 1), ("norm_3", "norm", 0.5, 3.5), ("norm_inf", "norm", 0.5, math.inf)]


def clipping(g, cases):
    grads = [g.put(f"clip.{i}", torch.randn(4, i + 1)) for i in range(3)]
    for name, kind, limit, p in cases:
        parameters = [torch.nn.Parameter(torch.zeros_like(g.tensors[key])) for key in grads]
        for parameter, key in zip(parameters, grads):
            parameter.grad = g.tensors[key].clone()
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters], p)
        getattr(torch.nn.utils, f"clip_grad_{kind}_")(parameters, limit, **({"norm_type": p} if p != 2 else {}))
        tensors = {"norm": norm} | {f"grad.{i}": key for i, key in enumerate(grads)}
        tensors |= {f"clipped.{i}": parameter.grad for i, parameter in enumerate(parameters)}
        g.add(name, {}, tensors, clip=kind, limit=limit, **({"norm_type": str(p)} if p != 2 else {}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    g = Golden("optim")
    optimizers(g)
    schedulers(g, SCHEDULERS)
    plateaus(g)
    clipping(g, CLIPPING)
    g.save(args.output)
    more = Golden("optim_more")
    more_optimizers(more)
    schedulers(more, MORE_SCHEDULERS)
    clipping(more, MORE_CLIPPING)
    more.save(args.output)


if __name__ == "__main__":
    main()
