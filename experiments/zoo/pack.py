#!/usr/bin/env python3
"""pack.py CHECKPOINT OUT.ckpt: the weights of a training in half precision and its configuration, without the optimizer's
state and without the paths of the machine that trained it. `predict` and fine-tuning (checkpoint.weights_only=true) take it.
Needs numpy and safetensors.
"""
import re
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def portable(config):
    """The text of a configuration without absolute paths: of each its last part."""
    return re.sub(r"(?m)((?:: |- |=)['\"]?)/[^\s'\"]*/", r"\1", config)


def main():
    source, target = sys.argv[1:]
    with safe_open(source, "numpy") as checkpoint:
        about = {key: checkpoint.metadata()[key] for key in ("config", "cytra_format", "cytra_version")}
        weights = {name[6:]: checkpoint.get_tensor(name) for name in checkpoint.keys() if name.startswith("model.")}
    half = {name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in weights.items()}
    if not all(np.isfinite(value).all() for value in half.values()):
        sys.exit(f"{source}: weights beyond the range of half precision")
    save_file(half, target, {"format": "pt", **about, "config": portable(about["config"])})
    print(f"{target}: {sum(value.size for value in half.values())} numbers, largest error",
          max(float(np.abs(half[name].astype(np.float32) - weights[name]).max()) for name in half))


main()
