#!/usr/bin/env python3
"""check_exported_graphs.py TEST_NN FOLDER FIRST LAST: exports random small networks, of these seeds, and compares what Cytra makes of them
with PyTorch: outputs, gradients, buffers and losses, also with activations that are computed again.

They have norms, activations, dropouts (of a share of 0 or 1: no random numbers), convolutions of computed, tied and sliced weights, views of
all kinds, and changes in place of what has views. Networks that PyTorch itself does not train are left out. Needs torch and safetensors.
`only` instead of TEST_NN exports alone. What is in FOLDER is not exported again.
"""
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import make_exported
import torch
from torch import nn
from torch.nn import functional

CHANNELS = 16
VIEWS = ["{}[:, :8]", "{}[:, 4:12]", "{}.permute(0, 2, 3, 1)", "{}.flatten(2)", "{}.transpose(2, 3)", "{}[:, :, ::2]", "{}.chunk(2, 1)[1]",
         "{0}.view({0}.shape[0], 16, -1)", "{0}.reshape({0}.shape[0], 2, 8, {0}.shape[2], {0}.shape[3])", "{}.contiguous()", "{}.unflatten(1, (4, 4))",
         "{}.unbind(1)[3]", "{}.narrow(1, 2, 5)", "{}.detach()", "{}.movedim(1, 3)", "{}.squeeze(0)", "{}.flatten(1)"]
VIEWS_OF_VIEWS = ["{}[1:]", "{}.transpose(1, 2)", "{}.flatten(1)", "{}[..., :3]", "{}.unsqueeze(1)", "{0}.reshape({0}.shape[0], -1)", "{}.contiguous()"]
CHANGES = ["{} += {number}", "{}.mul_({number})", "{}.relu_()", "functional.leaky_relu_({}, 0.2)", "{}.sub_({other}.mean())", "{}.mul_({other}.mean().sigmoid())",
           "{}.clamp_(-1, 1)", "{}.tanh_()", "functional.dropout({}, 0.0, self.training, inplace=True)", "{}.zero_()", "{}.copy_({} * {number})",
           "functional.elu_({})", "{}.masked_fill_({}.detach() > 1, {number})", "functional.dropout({}, self.share, self.training, inplace=True)"]
FUNCTIONS = ["torch.relu({})", "functional.leaky_relu({}, 0.1)", "functional.silu({})", "functional.elu({})", "functional.gelu({})", "torch.sigmoid({})", "{} * {number}",
             "{} + {image}", "self.dropout({})", "functional.dropout({}, self.share, self.training)", "{}.clone()", "torch.cat([{}[:, 8:], {image}[:, :8]], 1)",
             "functional.max_pool2d({}, 3, 1, 1)", "torch.where({} > 0, {}, {image})"]
NORMS = ["batch", "batch_alone", "instance", "group", "group", "batch"]
WEIGHTS = ["{}", "{} * self.gain", "({} - {}.mean((1, 2, 3), keepdim=True))", "{}.transpose(0, 1)", "{} * {image}.mean()", "torch.cat([{}[8:], {}[:8]])"]


class Random(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.random = random.Random(seed)
        self.gain = nn.Parameter(torch.rand(CHANNELS, 1, 1, 1) + 0.5)
        self.share = 1.0 if self.random.random() < 0.2 else 0.0
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Conv2d(CHANNELS, 2, 1)
        self.tied = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3, 3) / 12)
        self.images, self.views, self.lines = ["x"], [], []
        for _ in range(self.random.randint(4, 12)):
            self.add_line()
        self.lines.append("y = " + " + ".join(self.images[-3:]))
        rest = self.images[:-3] + self.views
        self.lines += [f"y = y * (1 + 0.1 * {name}.mean())" for name in rest]
        self.lines.append("return self.head(y)")
        self.source = "def forward(self, x):\n  " + "\n  ".join(self.lines)
        space = {"functional": functional, "torch": torch}
        exec(self.source, space)
        self.run = space["forward"]
        del self.random

    def forward(self, x):
        return self.run(self, x)

    def new(self, names, text):
        name = f"{names is self.views and 'v' or 'a'}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        names.append(name)

    def filled(self, text, name):
        return re.sub(r"{0?}", name, text).replace("{number}", f"{self.random.uniform(-1.5, 1.5):.2f}").replace("{image}", self.random.choice(self.images)).replace("{other}", self.random.choice(self.images + self.views))

    def add_line(self):
        pick, image = self.random.choice, self.random.choice(self.images[-3:])
        kind = self.random.random()
        if kind < 0.22:
            layer = f"norm{len(self.lines)}"
            kind = pick(NORMS)
            affine = self.random.random() < 0.8
            setattr(self, layer, {"batch": nn.BatchNorm2d(CHANNELS, affine=affine), "batch_alone": nn.BatchNorm2d(CHANNELS, affine=affine, track_running_stats=False),
                                  "instance": nn.InstanceNorm2d(CHANNELS, affine=affine), "group": nn.GroupNorm(4, CHANNELS, affine=affine)}[kind])
            self.new(self.images, f"self.{layer}({image})")
        elif kind < 0.32:
            layer = f"conv{len(self.lines)}"
            setattr(self, layer, nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1))
            self.new(self.images, f"self.{layer}({image})")
        elif kind < 0.42:
            self.new(self.images, f"functional.conv2d({image}, {self.filled(pick(WEIGHTS), 'self.tied')}, None, 1, 1)")
        elif kind < 0.58:
            self.new(self.images, self.filled(pick(FUNCTIONS), image))
        elif kind < 0.74:
            if self.views and self.random.random() < 0.3:
                self.new(self.views, self.filled(pick(VIEWS_OF_VIEWS), pick(self.views)))
            else:
                self.new(self.views, self.filled(pick(VIEWS), image))
        else:
            self.lines.append(self.filled(pick(CHANGES), pick(self.images[-2:] + self.views[-2:])))


def export(folder, seed):
    name = f"random_{seed:05}"
    if not (folder / f"{name}.safetensors").exists():
        Random(seed)(torch.randn(2, CHANNELS, 6, 8)).sum().backward()  # or PyTorch does not train it
        with contextlib.redirect_stdout(sys.stderr):
            make_exported.write(folder, name, lambda: Random(seed), (2, CHANNELS, 6, 8), torch.float32, 11, has_fixed_sides=seed % 3 > 0)
    return name


def main():
    program, folder, first, last = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), int(sys.argv[3]), int(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    names, left_out = [], []
    for seed in range(first, last):
        try:
            names.append(export(folder, seed))
        except Exception as error:
            (folder / f"random_{seed:05}.pt2").unlink(missing_ok=True)
            left_out.append(f"{seed}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    print(len(names), "networks,", len(left_out), "left out", flush=True)
    print("\n".join(left_out), file=sys.stderr)
    if program == "only":
        return
    wrong = set()
    for some in itertools.batched(names, 50) if hasattr(itertools, "batched") else [names[i : i + 50] for i in range(0, len(names), 50)]:
        tests = ":".join(f"All/Exported*/{folder.name}_{name}" for name in some)
        report = folder / "report.json"
        done = subprocess.run([program, f"--gtest_filter={tests}", f"--gtest_output=json:{report}"], capture_output=True, text=True,
                              env=os.environ | {"CYTRA_EXPORTED": str(folder)})  # fmt: skip
        if not report.exists():
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
        for suite in json.loads(report.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                if "failures" in test:
                    wrong.add(test["name"])
                    print(test["name"], suite["name"], test["failures"][0]["failure"][:300].replace("\n", " "), flush=True)
        report.unlink()
    print(len(names), "networks compared,", len(wrong), "wrong", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
