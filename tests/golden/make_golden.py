#!/usr/bin/env python3
"""Writes the golden values that the tests compare Cytra with: what PyTorch and MONAI compute on small, fixed inputs.

    python tests/golden/make_golden.py [TOPIC ...] [--output FOLDER]      (needs benchmarks/requirements.txt)

Each TOPIC.safetensors has metadata "torch", "monai", "topic" and "cases": a JSON list of
{"name", "options", "tensors": {role: name of the tensor in the file}} plus what a topic adds. Scalars have shape (1,).
"""
import argparse
import json
import warnings
from pathlib import Path

import monai
import monai.transforms as mt
import torch
from monai.data.utils import dense_patch_slices
from monai.inferers import sliding_window_inference
from monai.inferers.utils import _get_scan_interval
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import DynUNet
from monai.utils import fall_back_tuple
from safetensors.torch import save_file

MAX_BYTES = 100_000


class Golden:
    """The tensors and cases of one file. A tensor given as a str is one that the file has already."""

    def __init__(self, topic):
        self.topic, self.tensors, self.cases = topic, {}, []

    def put(self, key, value):
        value = torch.as_tensor(value).detach().clone()
        if isinstance(value, monai.data.MetaTensor):
            value = value.as_tensor()
        assert key not in self.tensors, key
        self.tensors[key] = value.reshape(1) if value.ndim == 0 else value.contiguous()
        return key

    def add(self, name, options, tensors, **more):
        keys = {r: t if isinstance(t, str) else self.put(f"{name}.{r}", t) for r, t in tensors.items()}
        assert all(key in self.tensors for key in keys.values()) and all(c["name"] != name for c in self.cases)
        self.cases.append({"name": name, "options": options, "tensors": keys, **more})

    def save(self, folder):
        path = folder / f"{self.topic}.safetensors"
        metadata = {
            "topic": self.topic,
            "torch": torch.__version__.split("+")[0],
            "monai": monai.__version__,
            "cases": json.dumps(self.cases, separators=(",", ":")),
        }
        save_file(self.tensors, path, metadata)
        sort_metadata(path)
        path.chmod(0o644)
        size = path.stat().st_size
        print(f"{path.name}: {len(self.cases)} cases, {len(self.tensors)} tensors, {size} bytes")
        assert size <= MAX_BYTES, f"{path} has {size} bytes"


def sort_metadata(path):
    """The library writes metadata in any order; the same run must give the same bytes."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    assert len(text) == size
    path.write_bytes(data[:8] + text + data[8 + size :])


def rand(*shape):
    return torch.rand(*shape)


def rounded(*shape, digits=3, scale=1.0):
    """Values with few digits: ties and exact thresholds happen, as in real images."""
    return (torch.rand(*shape) * scale * 10**digits).round() / 10**digits


# Sliding-window inference ---------------------------------------------------------------------------------------------


def position_predictor(x):
    """Depends on the position in the window: y = [x * ramp, x + 1], ramp = sum over d of (1 + index_d / size_d)."""
    ramp = torch.zeros(x.shape[2:])
    for d, n in enumerate(x.shape[2:]):
        shape = [1] * (x.ndim - 2)
        shape[d] = n
        ramp = ramp + (1 + torch.arange(n, dtype=torch.float32) / n).view(shape)
    return torch.cat([x * ramp, x + 1], dim=1)


def sliding_window():
    g = Golden("sliding_window")
    flat, pair = g.put("image_2d", rand(1, 1, 24, 20)), g.put("batch_2d", rand(2, 1, 13, 11))
    volume, thin = g.put("image_3d", rand(1, 1, 10, 12, 9)), g.put("thin_3d", rand(1, 1, 3, 8, 7))
    two = g.put("two_channels_2d", rand(1, 2, 11, 10))
    gaussian = {"mode": "gaussian", "sigma_scale": 0.125}
    cases = [
        ("2d_overlap_0", flat, [8, 8], 0.0, 4, {"mode": "constant"}),
        ("2d_overlap_0_gaussian", flat, [8, 10], 0.0, 3, gaussian),
        ("2d_overlap_0.25", flat, [8, 8], 0.25, 4, {"mode": "constant"}),
        ("2d_overlap_0.25_gaussian", flat, [8, 8], 0.25, 1, gaussian),
        ("2d_overlap_0.5_gaussian", flat, [7, 9], 0.5, 3, gaussian),
        ("2d_overlap_0.625_gaussian", flat, [8, 8], 0.625, 4, gaussian),
        # 10 * (1 - 0.8) is 1.9999999999999996 in float64: the interval is 1, not 2
        ("2d_overlap_0.8_truncated", pair, [10, 10], 0.8, 4, gaussian),
        ("2d_overlap_per_dim", flat, [8, 10], [0.25, 0.6], 4, gaussian),
        ("2d_sigma_per_dim", pair, [8, 6], 0.5, 4, {"mode": "gaussian", "sigma_scale": [0.125, 0.3]}),
        ("2d_narrow_sigma_clamped", pair, [9, 8], 0.5, 4, {"mode": "gaussian", "sigma_scale": 0.05}),
        ("2d_roi_larger_one_dim", pair, [8, 16], 0.25, 3, gaussian),
        ("2d_roi_larger_all_dims", pair, [16, 18], 0.25, 4, {**gaussian, "padding_mode": "constant", "cval": 0.5}),
        ("2d_roi_larger_reflect", pair, [16, 14], 0.5, 4, {**gaussian, "padding_mode": "reflect"}),
        ("2d_roi_zero_and_minus_one", pair, [0, -1], 0.25, 4, gaussian),
        ("2d_roi_zero_one_dim", pair, [0, 6], 0.5, 1, gaussian),
        ("2d_batch_of_two", pair, [6, 5], 0.5, 4, gaussian),
        ("2d_two_channels", two, [6, 6], 0.5, 4, gaussian),
        ("3d_overlap_0.25", volume, [4, 5, 4], 0.25, 4, {"mode": "constant"}),
        ("3d_overlap_0.5_gaussian", volume, [5, 6, 4], 0.5, 3, gaussian),
        ("3d_overlap_per_dim", volume, [4, 8, 5], [0.0, 0.5, 0.625], 4, gaussian),
        ("3d_roi_larger_in_z", thin, [6, 4, 4], 0.25, 4, gaussian),
        ("3d_roi_minus_one_in_z", thin, [-1, 4, 5], 0.5, 1, gaussian),
    ]
    for name, key, roi, overlap, batch, more in cases:
        options = {"roi_size": roi, "overlap": overlap, "sw_batch_size": batch, "padding_mode": "constant", "cval": 0.0}
        options |= {"mode": "constant", "sigma_scale": 0.125} | more
        image = g.tensors[key]
        output = sliding_window_inference(image, predictor=position_predictor, **options)
        size = image.shape[2:]
        roi_size = fall_back_tuple(roi, size)
        padded = tuple(map(max, size, roi_size))
        overlaps = overlap if isinstance(overlap, list) else [overlap] * len(size)
        interval = _get_scan_interval(padded, roi_size, len(size), overlaps)
        windows = len(dense_patch_slices(padded, roi_size, interval))
        expected = {"roi_size": list(map(int, roi_size)), "interval": list(interval), "windows": windows}
        g.add(name, options, {"input": key, "output": output}, expected=expected)
    return [g]


# DynUNet --------------------------------------------------------------------------------------------------------------

NET_2D = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 1,
    "kernel_size": [3, 3, 3],
    "strides": [1, 2, 2],
    "upsample_kernel_size": [2, 2],
    "filters": [4, 6, 8],
    "norm_name": ["INSTANCE", {"affine": True}],
    "act_name": ["leakyrelu", {"inplace": True, "negative_slope": 0.01}],
    "deep_supervision": False,
    "res_block": False,
    "trans_bias": False,
}


def make_net(options):
    """A DynUNet whose every parameter matters: norms and biases are random, too."""
    net = DynUNet(**{k: tuple(v) if k in ("norm_name", "act_name") else v for k, v in options.items()})
    with torch.no_grad():
        for name, p in net.named_parameters():
            if "norm" in name and name.endswith("weight"):
                p.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                p.uniform_(-0.3, 0.3)
    return net


def put_weights(g, net):
    """The second registration of every block, under skip_layers, is left out."""
    return [g.put(f"model.{k}", v)[6:] for k, v in net.state_dict().items() if not k.startswith("skip_layers.")]


def dynunet_file(topic, options, shape, gradients, image=None, roi=None):
    g = Golden(topic)
    net = make_net(options).eval()
    keys = put_weights(g, net)
    x = torch.randn(*shape)
    logits = net(x)
    logits.square().mean().backward()
    tensors = {"input": g.put("input", x), "logits": g.put("logits", logits)}
    parameters = dict(net.named_parameters())
    for name in gradients:
        tensors[f"grad.{name}"] = g.put(f"grad.{name}", parameters[name].grad)
    g.add("forward", options, tensors, state_dict=keys, loss="logits.square().mean()", gradients=gradients)
    if image:
        window = {"roi_size": roi, "sw_batch_size": 4, "overlap": 0.25, "mode": "gaussian", "sigma_scale": 0.125}
        x = torch.randn(*image)
        with torch.no_grad():
            y = sliding_window_inference(x, predictor=net, **window)
        g.add("image", window, {"image": g.put("image", x), "image_logits": g.put("image_logits", y)})
    return g


def dynunet():
    conv, up = "input_block.conv1.conv.weight", "upsamples.0.transp_conv.conv.weight"
    residual = NET_2D | {"res_block": True}
    net_3d = NET_2D | {"spatial_dims": 3, "in_channels": 2, "out_channels": 3}
    anisotropic = net_3d | {
        "in_channels": 1,
        "out_channels": 2,
        "filters": [3, 4, 5],
        "kernel_size": [[1, 3, 3], [3, 3, 3], [3, 3, 3]],
        "strides": [[1, 1, 1], [1, 2, 2], [2, 2, 2]],
        "upsample_kernel_size": [[1, 2, 2], [2, 2, 2]],
        "trans_bias": True,
    }
    return [
        dynunet_file("dynunet_2d", NET_2D, (2, 1, 16, 20), [conv, up], (1, 1, 40, 36), [16, 16]),
        dynunet_file("dynunet_3d", net_3d, (1, 2, 8, 8, 8), [conv, up], (1, 2, 10, 16, 12), [8, 8, 8]),
        dynunet_file("dynunet_anisotropic_3d", anisotropic, (1, 1, 4, 12, 8), [conv, up]),
        # The bottleneck keeps the number of channels but has a stride: it has conv3 and norm3.
        dynunet_file(
            "dynunet_res_2d", residual | {"filters": [4, 6, 6]}, (2, 1, 16, 20), [conv, "bottleneck.conv3.conv.weight"]
        ),
        # The input block keeps the number of channels and has no stride: it has neither, the residual is its input.
        dynunet_file("dynunet_res_identity_2d", residual | {"in_channels": 4}, (1, 4, 12, 16), [conv, up]),
    ]


# Losses ---------------------------------------------------------------------------------------------------------------


def dice_ce():
    g = Golden("dice_ce")
    binary, classes = g.put("binary_input", torch.randn(2, 1, 7, 6) * 2), g.put("input", torch.randn(2, 3, 7, 6) * 2)
    mask = g.put("binary_target", (rand(2, 1, 7, 6) > 0.6).float())
    empty = g.put("empty_target", torch.zeros(2, 1, 7, 6))
    labels = g.put("labels", torch.randint(0, 3, (2, 1, 7, 6)).float())
    multi = g.put("multilabel_target", (rand(2, 3, 7, 6) > 0.5).float())
    volume = g.put("input_3d", torch.randn(1, 3, 4, 5, 3))
    volume_labels = g.put("labels_3d", torch.randint(0, 3, (1, 1, 4, 5, 3)).float())
    sigmoid, softmax = {"sigmoid": True}, {"softmax": True, "to_onehot_y": True}
    cases = [
        ("sigmoid", binary, mask, sigmoid),
        ("sigmoid_empty", binary, empty, sigmoid),
        ("sigmoid_squared", binary, mask, sigmoid | {"squared_pred": True}),
        ("sigmoid_batch", binary, mask, sigmoid | {"batch": True}),
        ("sigmoid_lambda", binary, mask, sigmoid | {"lambda_dice": 0.3, "lambda_ce": 1.7}),
        ("sigmoid_dice_only", binary, mask, sigmoid | {"lambda_ce": 0.0}),
        ("sigmoid_jaccard", binary, mask, sigmoid | {"jaccard": True}),
        ("sigmoid_smooth", binary, mask, sigmoid | {"smooth_nr": 0.0, "smooth_dr": 1e-2}),
        ("sigmoid_sum", binary, mask, sigmoid | {"reduction": "sum"}),
        # MONAI: several channels mean cross entropy over the channels, with probabilities as target, sigmoid or not
        ("sigmoid_multilabel", classes, multi, sigmoid),
        ("softmax", classes, labels, softmax),
        ("softmax_no_background", classes, labels, softmax | {"include_background": False}),
        ("softmax_squared_batch", classes, labels, softmax | {"squared_pred": True, "batch": True}),
        (
            "softmax_jaccard_smooth",
            classes,
            labels,
            softmax | {"jaccard": True, "smooth_nr": 1.0, "smooth_dr": 0.5, "include_background": False},
        ),
        ("softmax_lambda", classes, labels, softmax | {"lambda_dice": 2.0, "lambda_ce": 0.5}),
        ("softmax_sum", classes, labels, softmax | {"reduction": "sum"}),
        ("softmax_weight", classes, labels, softmax | {"weight": [0.2, 1.0, 3.0]}),
        ("softmax_label_smoothing", classes, labels, softmax | {"label_smoothing": 0.1}),
        ("softmax_3d", volume, volume_labels, softmax),
    ]
    for name, key, target, options in cases:
        x = g.tensors[key].clone().requires_grad_()
        weight = options.get("weight")
        loss = DiceCELoss(**options | {"weight": torch.tensor(weight) if weight else None})(x, g.tensors[target])
        loss.backward()
        g.add(name, options, {"input": key, "target": target, "loss": loss, "grad": x.grad})
    # Masks that may overlap, which MONAI's DiceCELoss has no word for: its parts.
    more = {"lambda_dice": 0.3, "lambda_ce": 1.7, "batch": True, "include_background": False}
    for name, options in (("multilabel", {}), ("multilabel_lambda", more)):
        x = g.tensors[classes].clone().requires_grad_()
        dice = DiceLoss(sigmoid=True, **{k: v for k, v in options.items() if not k.startswith("lambda")})
        loss = options.get("lambda_dice", 1) * dice(x, g.tensors[multi])
        loss = loss + options.get("lambda_ce", 1) * torch.nn.BCEWithLogitsLoss()(x, g.tensors[multi])
        loss.backward()
        g.add(name, sigmoid | {"multilabel": True} | options, {"input": classes, "target": multi, "loss": loss, "grad": x.grad})
    return [g]


# Optimizers and schedules ---------------------------------------------------------------------------------------------


def adamw():
    g = Golden("adamw")
    start = [g.put("start.0", torch.randn(3, 4)), g.put("start.1", torch.randn(5))]
    grads = [g.put("grads.0", torch.randn(20, 3, 4)), g.put("grads.1", torch.randn(20, 5) * 0.01)]
    cases = [
        ("adamw_defaults", "AdamW", {"lr": 1e-2}),
        ("adamw_weight_decay", "AdamW", {"lr": 1e-2, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-3}),
        ("adamw_no_decay", "AdamW", {"lr": 3e-3, "weight_decay": 0.0}),
        ("adam_defaults", "Adam", {"lr": 1e-2}),
        ("adam_weight_decay", "Adam", {"lr": 1e-2, "weight_decay": 0.1, "betas": [0.5, 0.9], "eps": 1e-6}),
        ("sgd", "SGD", {"lr": 0.05}),
        ("sgd_momentum", "SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
        ("sgd_dampening", "SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.1}),
        ("sgd_nesterov", "SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ]
    for name, kind, options in cases:
        params = [torch.nn.Parameter(g.tensors[key].clone()) for key in start]
        arguments = {k: tuple(v) if k == "betas" else v for k, v in options.items()}
        optimizer = getattr(torch.optim, kind)(params, **arguments, foreach=False)
        for step in range(20):
            for p, key in zip(params, grads):
                p.grad = g.tensors[key][step].clone()
            optimizer.step()
        tensors = {}
        for i, p in enumerate(params):
            tensors |= {f"start.{i}": start[i], f"grads.{i}": grads[i], f"param.{i}": p}
            state = {k: v for k, v in optimizer.state[p].items() if k != "step" and v is not None}
            tensors |= {f"{k}.{i}": v for k, v in state.items()}
        g.add(name, options, tensors, optimizer=kind, steps=20)

    schedules = torch.optim.lr_scheduler

    def warmup(optimizer):
        linear = schedules.LinearLR(optimizer, start_factor=0.1, total_iters=5)
        cosine = schedules.CosineAnnealingLR(optimizer, T_max=35, eta_min=1e-5)
        return schedules.SequentialLR(optimizer, [linear, cosine], milestones=[5])

    cases = [
        ("cosine", {"T_max": 40, "eta_min": 0.0}, lambda o: schedules.CosineAnnealingLR(o, 40)),
        ("cosine_eta_min", {"T_max": 40, "eta_min": 1e-5}, lambda o: schedules.CosineAnnealingLR(o, 40, 1e-5)),
        ("cosine_beyond_t_max", {"T_max": 15, "eta_min": 1e-5}, lambda o: schedules.CosineAnnealingLR(o, 15, 1e-5)),
        ("exponential", {"gamma": 0.9}, lambda o: schedules.ExponentialLR(o, 0.9)),
        ("step", {"step_size": 7, "gamma": 0.5}, lambda o: schedules.StepLR(o, 7, 0.5)),
        ("linear", {"start_factor": 0.1, "total_iters": 5}, lambda o: schedules.LinearLR(o, 0.1, total_iters=5)),
        ("warmup_cosine", {"start_factor": 0.1, "total_iters": 5, "T_max": 35, "eta_min": 1e-5}, warmup),
    ]
    for name, options, make in cases:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SequentialLR's own use of a deprecated argument
            schedule, rates = make(optimizer), []
            for _ in range(40):
                rates.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                schedule.step()
        kind = type(schedule).__name__
        rates = torch.tensor(rates, dtype=torch.float64)
        g.add(f"lr_{name}", {"lr": 1e-3} | options, {"lr": rates}, schedule=kind, steps=40)
    return [g]


# Transforms -----------------------------------------------------------------------------------------------------------


def transforms():
    g = Golden("transforms")
    flat, volume = rounded(2, 9, 8, scale=3.0), rounded(1, 4, 6, 5) - 0.3
    flat[:, :3, :2] = 0  # for nonzero
    flat[0, 8, 7], flat[1, 0, 5] = 40.0, 0.5
    constant = torch.full((2, 4, 3), 0.75)
    constant[1] = rand(4, 3)
    scores = rand(3, 6, 5)
    sources = {"flat": flat, "volume": volume, "constant": constant, "scores": scores, "zeros": torch.zeros(1, 3, 4)}
    names = {k: g.put(k, v) for k, v in sources.items()}

    def add(name, transform, inputs, **options):
        for source in inputs:
            x = g.tensors[names[source]].clone()  # some transforms write into their input
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "divide by zero" of a constant image
                y = getattr(mt, f"{transform}d")(keys="x", **options)({"x": x})["x"]
            g.add(f"{name}.{source}", options, {"input": source, "output": y}, transform=transform)

    both = ("flat", "volume")
    add("normalize", "NormalizeIntensity", (*both, "constant", "zeros"))
    add("normalize_channel", "NormalizeIntensity", (*both, "constant"), channel_wise=True)
    add("normalize_nonzero", "NormalizeIntensity", (*both, "zeros"), nonzero=True)
    add("normalize_nonzero_channel", "NormalizeIntensity", both, nonzero=True, channel_wise=True)
    add("normalize_given", "NormalizeIntensity", both, subtrahend=0.4, divisor=2.5)
    add("normalize_given_subtrahend", "NormalizeIntensity", ("flat",), subtrahend=0.4)
    add(
        "normalize_given_channel",
        "NormalizeIntensity",
        ("flat",),
        subtrahend=[0.4, 1.0],
        divisor=[2.5, 0.5],
        channel_wise=True,
    )
    percentiles = {"lower": 1.0, "upper": 99.0, "b_min": 0.0, "b_max": 1.0}
    for clip in (True, False):
        name = f"percentiles_{'clip' if clip else 'no_clip'}"
        add(name, "ScaleIntensityRangePercentiles", (*both, "zeros"), **percentiles, clip=clip)
        add(f"{name}_channel", "ScaleIntensityRangePercentiles", both, **percentiles, clip=clip, channel_wise=True)
    wide = {"lower": 10.0, "upper": 75.0, "b_min": -1.0, "b_max": 2.0, "clip": True}
    add("percentiles_wide", "ScaleIntensityRangePercentiles", both, **wide)
    add("percentiles_relative", "ScaleIntensityRangePercentiles", both, **wide, relative=True)
    add("threshold_discrete", "AsDiscrete", (*both, "scores"), threshold=0.5)
    add("argmax", "AsDiscrete", ("scores",), argmax=True)
    add("argmax_onehot", "AsDiscrete", ("scores",), argmax=True, to_onehot=3)
    add("threshold", "ThresholdIntensity", both, threshold=0.5)
    add("threshold_below", "ThresholdIntensity", both, threshold=0.5, above=False, cval=0.25)
    for axis in (0, 1, None):
        add(f"flip_{'all' if axis is None else axis}", "Flip", both, spatial_axis=axis)
    add("flip_2", "Flip", ("volume",), spatial_axis=2)
    for k in (1, 2, 3):
        add(f"rotate90_{k}", "Rotate90", both, k=k, spatial_axes=[0, 1])
    add("rotate90_1_axes_12", "Rotate90", ("volume",), k=1, spatial_axes=[1, 2])
    return [g]


# Metrics --------------------------------------------------------------------------------------------------------------


def dice_metric():
    g = Golden("dice_metric")

    def one_hot(labels):
        return torch.nn.functional.one_hot(labels, 3).movedim(-1, 1).float()

    truth, other = (rand(3, 1, 6, 7) > 0.6).float(), (rand(3, 1, 6, 7) > 0.5).float()
    empty_one = truth.clone()
    empty_one[1] = 0
    nothing = torch.zeros_like(truth)
    labels, guess = torch.randint(0, 3, (2, 5, 6)), torch.randint(0, 3, (2, 5, 6))
    missing, unseen = labels.clone(), guess.clone()
    missing[missing == 2] = 0  # class 2 is in no truth
    unseen[0][unseen[0] == 1] = 0  # class 1 is not in the first prediction
    volume, volume_guess = torch.randint(0, 3, (1, 3, 4, 5)), torch.randint(0, 3, (1, 3, 4, 5))
    pairs = {
        "binary": (other, truth),
        "binary_same": (truth, truth),
        "binary_one_truth_empty": (other, empty_one),
        "binary_empty_prediction": (nothing, truth),
        "binary_empty_truth": (other, nothing),
        "binary_both_empty": (nothing, nothing),
        "classes": (one_hot(guess), one_hot(labels)),
        "classes_missing_truth": (one_hot(guess), one_hot(missing)),
        "classes_missing_prediction": (one_hot(unseen), one_hot(labels)),
        "classes_3d": (one_hot(volume_guess), one_hot(volume)),
    }
    for pair, (prediction, target) in pairs.items():
        keys = g.put(f"{pair}.prediction", prediction), g.put(f"{pair}.target", target)
        for background in (True, False):
            if not background and prediction.shape[1] == 1:
                continue
            for ignore in (True, False):
                for reduction in ("mean", "mean_batch") if prediction.shape[1] > 1 else ("mean",):
                    options = {"include_background": background, "ignore_empty": ignore, "reduction": reduction}
                    metric = DiceMetric(**options)
                    each = metric(prediction, target)  # (N, C), NaN where an empty truth is ignored
                    name = f"{pair}.{'' if background else 'no_'}background.{'ignore' if ignore else 'count'}_empty"
                    tensors = {"prediction": keys[0], "target": keys[1], "value": metric.aggregate()}
                    if reduction == "mean":
                        tensors["each"] = each
                    g.add(f"{name}.{reduction}", options, tensors)
    return [g]


TOPICS = [sliding_window, dynunet, dice_ce, adamw, transforms, dice_metric]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("topics", nargs="*", help="of: " + ", ".join(t.__name__ for t in TOPICS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    if unknown := set(args.topics) - {t.__name__ for t in TOPICS}:
        parser.error(f"no topic {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, topic in enumerate(TOPICS):
        if not args.topics or topic.__name__ in args.topics:
            torch.manual_seed(1000 + seed)
            for golden in topic():
                golden.save(args.output)


if __name__ == "__main__":
    main()
