from run import Comparison

TITLE = (
    "One training step: DynUNet (16, 32, 64) forward, Dice + cross entropy, backward, fused AdamW; "
    "a batch of 4x1x128x128 float32, PyTorch eager against Cytra. Each run is a process that warms up and then times "
    "20 steps."
)


def comparisons(env):
    same = ["--input-shape", 4, 1, 128, 128, "--batch-sizes", 4, "--train-step", "--repeats", 20, "--json"]
    figures = {
        "median": "json:train_step.median_ms ms",
        "min": "json:train_step.min_ms ms",
        "p95": "json:train_step.p95_ms ms",
        "peak memory": "rss",
    }
    return [
        Comparison(
            "step",
            [env.bin / "benchmark_performance", "--config", "im2im/benchmark", *same],
            [env.python, env.here / "train_step_peer.py", *same[:5], "--repeats", 20],
            figures,
            "PyTorch + MONAI",
        )
    ]
