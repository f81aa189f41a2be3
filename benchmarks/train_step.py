import os
import sys

from run import Comparison

TITLE = (
    "One training step: forward, loss, backward, fused AdamW; PyTorch with the peers' networks (eager and channels first, their "
    "default, unless a row says more) against Cytra, float32 and bf16-mixed. DynUNet, SegResNet and SwinUNETR learn from Dice + cross entropy, the masked "
    "autoencoder (CytoDL's) from the squared error of what is hidden. CPU time is that of all threads per step, without the start; "
    "peak memory is that of the process. Each run is a process that warms up and then times its steps. Convolutions alone: the time "
    "of PyTorch's for those of the network, each in its faster layout; the ratio is the share of that roof that the whole step reaches."
)
WIDE = [32, 64, 128, 256]
# name -> shape, repeats, experiment, overrides
MODELS = {
    "dynunet": ([4, 1, 128, 128], 20, "im2im/benchmark", []),
    "dynunet_wide": (
        [4, 1, 256, 256],
        3,
        "im2im/benchmark",
        [f"model.filters={WIDE}", f"model.kernel_size={[3] * 4}", "model.strides=[1,2,2,2]", f"model.upsample_kernel_size={[2] * 3}"],
    ),
    "dynunet_3d": (
        [2, 1, 64, 64, 64],
        3,
        "im2im/benchmark",
        [
            "spatial_dims=3",
            "patch_shape=[64,64,64]",
            f"model.filters={WIDE}",
            f"model.kernel_size={[3] * 4}",
            "model.strides=[1,2,2,2]",
            f"model.upsample_kernel_size={[2] * 3}",
        ],
    ),
    "segresnet": ([1, 1, 64, 64, 64], 3, "im2im/benchmark", ["model=seg_resnet", "spatial_dims=3", "model.init_filters=16"]),
    "swinunetr": ([1, 1, 64, 64, 64], 3, "im2im/benchmark", ["model=swin_unetr", "spatial_dims=3", "patch_shape=[64,64,64]"]),
    "mae": ([8, 1, 128, 128], 5, "im2im/mae", ["spatial_dims=2", "patch_shape=[128,128]", "trainer.accelerator=cpu"]),
}


def comparisons(env):
    def step(name, precision, variant="", options=()):
        shape, repeats, experiment, overrides = MODELS[name]
        row = f"json:training.{shape[0]}." + ("fp32" if precision == "32" else "bf16")
        figures = {"CPU": f"{row}.cpu_ms ms", "median": f"{row}.median_ms ms", "peak memory": f"{row}.peak_memory_mb MB"}
        same = ["--input-shape", *shape, "--repeats", repeats]
        ours = [env.bin / "benchmark_performance", "--config", experiment, *overrides, f"trainer.precision={precision}"]
        peer = [env.python, env.here / "train_step_peer.py", "--model", name, "--precision", precision, *options]
        return Comparison(
            f"{name} {precision}{variant}",
            [*ours, *same, "--batch-sizes", shape[0], "--train", "--json"],
            [*peer, *same],
            {"CPU": figures["CPU"]} if variant else figures,
            "PyTorch",
        )

    precisions = ("32", "bf16-mixed")
    models = [name for name in MODELS if name != "mae" or "CYTO_DL" in os.environ]
    if len(models) < len(MODELS):
        print("train_step: no rows of the MAE: its peer is in CytoDL's sources; set CYTO_DL to their folder cyto_dl", file=sys.stderr)
    return [step(name, precision) for name in models for precision in precisions] + [
        step(name, precision, *variant)
        for name in ("dynunet_wide", "dynunet_3d")
        for precision in precisions
        for variant in (
            (", channels last", ["--channels-last"]),
            (", compiled", ["--compile"]),
            (", convolutions alone", ["--roof"]),
        )
    ]
