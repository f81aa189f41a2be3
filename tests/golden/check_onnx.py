#!/usr/bin/env python3
"""check_onnx.py TEST_EXPORT: has the program test_export write ONNX files, checks them with onnx.checker and its shape inference,
and compares what ONNX Runtime makes of images with what we did, for several batches and sides. Runs as a test by read_back.sh."""
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime


def read_tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        yield name, np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(entry["shape"])


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "--gtest_filter=Onnx.*", "--gtest_brief=1"], check=True,
                   env=os.environ | {"CYTRA_WRITE_SAMPLES": folder})
    files = sorted(Path(folder).glob("*.onnx"))
    failed = len(files) < 20
    for file in files:
        model = onnx.load(file)
        onnx.checker.check_model(model, full_check=True)
        assert {entry.key: entry.value for entry in model.metadata_props} == {"config": "a: 1", "name": "é"}
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        tensors = dict(read_tensors(file.with_suffix(".safetensors")))
        for key in [key for key in tensors if key.startswith("in")]:
            expected = tensors[key.replace("in", "out")]
            got = session.run(["output"], {"image": tensors[key]})[0]
            same = got.shape == expected.shape
            difference = np.abs(got - expected).max() / max(1, np.abs(expected).max()) if same else np.inf
            print(f"{file.stem} {tensors[key].shape}: {difference:.1e}")
            failed |= not difference < 1e-5
sys.exit(failed)
