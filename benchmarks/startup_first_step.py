import subprocess

from run import Comparison

TITLE = (
    "From the command to the end of the process after one training step: DynUNet (16, 32, 64), Dice + cross entropy, "
    "AdamW, 4 crops of 128x128; alone, and with what a training has by default: sanity check, validation of two images "
    "of 256x256 by sliding window, checkpoint, logs (Cytra: CSV, JSON lines, TensorBoard, HTML; Lightning: CSV, "
    "TensorBoard)."
)
# The experiment of the benchmark has none of it.
DEFAULTS = [
    "experiment=im2im/benchmark",
    "callbacks=default",
    "logger=default",
    "trainer.limit_train_batches=1",
    "trainer.limit_val_batches=1.0",
    "trainer.max_steps=-1",
    "trainer.max_epochs=1",
    "data.transforms.valid=[{_target_: LoadImaged, keys: [raw, seg], spatial_dims: 2}, "
    "{_target_: NormalizeIntensityd, keys: [raw], channel_wise: true}]",
]


def prepare(env):
    folder = env.root / "data/bench"
    if not (folder / "train.csv").exists():
        sizes = ["--train", "8", "--valid", "2", "--test", "2", "--size", "256"]
        subprocess.run([env.bin / "generate_samples", "--output", folder, *sizes], check=True)


def comparisons(env):
    def compare(name, ours, peer):
        def command(program, side, arguments):
            folders = [f"data.path={env.root / 'data/bench'}", f"paths.output_dir={env.scratch / side}"]
            return [*program, *arguments, *folders]

        return Comparison(
            name,
            command([env.bin / "train"], "ours", ours),
            command([env.python, env.here / "startup_peer.py"], "peer", peer),
            {"wall": "wall", "CPU": "cpu", "peak memory": "rss"},
            "Hydra + Lightning + MONAI",
        )

    step = ["experiment=im2im/benchmark", "trainer.max_steps=1"]
    return [
        compare("first step", step, step),
        compare("first step and the defaults", DEFAULTS, ["experiment=im2im/defaults"]),
    ]
