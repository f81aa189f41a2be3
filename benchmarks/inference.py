import os

from run import Comparison

TITLE = (
    "One pass of DynUNet on one thread: 2D (32, 64, 128, 256) on 4x1x256x256, 3D (32, 64, 128) on 1x1x48x96x96; CPU seconds. "
    "Each of our engines beside each of Python's; torch.compile with CYTRA_BENCH_COMPILE=1."
)
PAIRS = [  # ours, the peer's
    ("eager 32", "eager 32", "PyTorch eager"),
    ("torchscript 32", "compile 32", "torch.compile"),
    ("openvino 32", "eager 32", "PyTorch eager"),
    ("openvino 32", "onnxruntime 32", "ONNX Runtime"),
    ("openvino 32", "openvino 32", "OpenVINO from Python"),
    ("eager bf16", "eager bf16", "PyTorch eager"),
    ("openvino bf16", "openvino bf16", "OpenVINO from Python"),
    ("openvino int8-bf16", "openvino bf16", "OpenVINO from Python, bf16"),
]
PASSES = 9


def comparisons(env):
    program = env.bin.parent / "benchmarks/bench_inference"
    return [
        Comparison(
            f"{dims}D, {ours} beside {name} {theirs.split()[1]}",
            [program, dims, *ours.split(), PASSES],
            [env.python, env.here / "inference_peer.py", dims, *theirs.split(), PASSES],
            {"pass": "json:pass s", "making it": "json:make s"},
            name,
        )
        for dims in (2, 3)
        for ours, theirs, name in PAIRS
        if "compile" not in theirs or os.environ.get("CYTRA_BENCH_COMPILE")
    ]
