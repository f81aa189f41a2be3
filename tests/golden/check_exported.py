#!/usr/bin/env python3
"""check_exported.py TEST_NN FOLDER [NAME ...]: exports the networks of make_exported.py, runs each here and in Cytra, and prints how far
the outputs, the gradients, the buffers after 10 steps and the losses of 100 steps are apart; NAME is the beginning of some.

pip install torch torchvision timm monai safetensors. TEST_NN: build/release/tests/test_nn. FOLDER keeps the exports (up to 0.7 GB each);
what is there is not exported again. The installed PyTorch exports: another one has rows of its own.
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
# In float32, the last bit of an activation's input decides its gradient: one in a million on the other side of 0 changes a gradient
# by 1e-3, in PyTorch alone, too; and ten steps make a curve of that. So float64 trains.
types = {
    "float64": (torch.float64, 100, "Exported.*", ("outputs", "gradients", "buffers", "curve")),
    "float32": (torch.float32, 0, "Exported.OutputsEqualPyTorchs", ("outputs",)),
}


def compare(name, make, shape, kind):
    dtype, steps, tests, keys = types[kind]
    exports = folder / version / kind
    exports.mkdir(parents=True, exist_ok=True)
    if not (exports / f"{name}.safetensors").exists():
        with contextlib.redirect_stdout(sys.stderr):
            make_exported.write(exports, name, make, shape, dtype, steps)
    found = exports / f"{name}.json"
    found.unlink(missing_ok=True)
    done = subprocess.run([program, f"--gtest_filter=All/{tests}/{kind}_{name}", f"--gtest_output=json:{found}"], capture_output=True, text=True,
                          env=os.environ | {"CYTRA_EXPORTED": str(exports)}, timeout=3600)  # fmt: skip
    suites = json.loads(found.read_text())["testsuites"] if found.exists() else []
    figures = {key: test[key] for suite in suites for test in suite["testsuite"] for key in keys if key in test}
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return [figures.get(key, "-") for key in keys], done.returncode == 0 and len(figures) == len(keys)


columns = [f"{key}, {kind}" for kind in types for key in types[kind][-1]]
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
