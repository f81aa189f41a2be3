#!/usr/bin/env python3
"""check_exported.py TEST_NN FOLDER [NAME ...]: exports the networks of make_exported.py, runs each here and in Cytra, and prints how far
the outputs, the gradients, the buffers after 10 steps and the losses of 100 steps are apart; NAME is the beginning of some.

pip install torch torchvision timm monai safetensors. TEST_NN: build/release/tests/test_nn. FOLDER keeps the exports (0.1 to 1 GB each
while it is compared); what is there is not exported again. The installed PyTorch exports: another one has rows of its own.
Outputs are relative to the largest, or 1; gradients to the tensor's largest and a fifth of the largest of all; losses to the first.
"""
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys

import make_exported
import torch

program, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), tuple(sys.argv[3:])
version = torch.__version__.split("+")[0]
# A deep network on a small batch makes much of a last bit within ten steps, also in PyTorch alone: float64 trains.
types = {
    "float32": (torch.float32, 0, ("outputs", "gradients")),
    "float64": (torch.float64, 100, ("outputs", "gradients", "buffers", "curve")),
}


def compare(name, make, shape, kind):
    dtype, steps, keys = types[kind]
    exports = folder / version / kind
    exports.mkdir(parents=True, exist_ok=True)
    if not (exports / f"{name}.safetensors").exists():
        with contextlib.redirect_stdout(sys.stderr):
            make_exported.write(exports, name, make, shape, dtype, steps)
    tests = f"All/Exported.*/{kind}_{name}" + ("" if steps else ":-*TrainsAsPyTorchDoes*")
    found = exports / f"{name}.json"
    found.unlink(missing_ok=True)
    done = subprocess.run([program, f"--gtest_filter={tests}", f"--gtest_output=json:{found}"], capture_output=True, text=True,
                          env=os.environ | {"CYTRA_EXPORTED": str(exports)}, timeout=3600)  # fmt: skip
    suites = json.loads(found.read_text())["testsuites"] if found.exists() else []
    figures = {key: test[key] for suite in suites for test in suite["testsuite"] for key in keys if key in test}
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return [figures.get(key, "-") for key in keys], done.returncode == 0 and len(figures) == len(keys)


columns = [f"{key}, {kind}" for kind in types for key in types[kind][2]]
print("| network | PyTorch |", " | ".join(columns), "|\n" + "|---" * (2 + len(columns)) + "|", flush=True)
is_equal = True
for name, make, shape in itertools.chain(make_exported.small(), make_exported.large()):
    if names and not name.startswith(names):
        continue
    row = [name, version]
    for kind in types:
        try:
            figures, equal = compare(name, make, shape, kind)
        except Exception as error:
            figures, equal = [f"{type(error).__name__}: {str(error)[:200]}"], False
        row += figures
        is_equal = is_equal and equal
    print("|", " | ".join(row), "|", flush=True)
sys.exit(not is_equal)
