from run import Comparison

TITLE = "Composing the largest built-in configuration: the whole program, and one call in a running one."
OVERRIDES = [
    "experiment=im2im/segmentation_3d",
    "trainer=gpu_optimized",
    "callbacks=early_stopping",
    "model.filters=[32,64,128]",
    "optimizer.lr=3e-3",
    "data.path=/data",
]


def comparisons(env):
    peer = [env.python, env.here / "compose_peer.py"]
    name = "Hydra"
    return [
        Comparison(
            "`--cfg job`",
            [env.bin / "train", *OVERRIDES, "--cfg", "job"],
            [*peer, *OVERRIDES, "--cfg", "job"],
            {"wall": "wall", "CPU": "cpu", "peak memory": "rss"},
            name,
        ),
        Comparison(
            "compose and resolve",
            [env.bin.parent / "benchmarks" / "bench_compose", env.root / "configs", *OVERRIDES],
            [*peer, "--time", env.root / "configs", *OVERRIDES],
            {"one call": "json:milliseconds ms"},
            name,
        ),
    ]
