import subprocess

from run import Comparison

TITLE = (
    "From the command to the end of the process after one training step: DynUNet (16, 32, 64), Dice + cross entropy, "
    "AdamW, 4 crops of 128x128; no checkpoint, no validation."
)


def prepare(env):
    folder = env.root / "data/bench"
    if not (folder / "train.csv").exists():
        sizes = ["--train", "8", "--valid", "2", "--test", "2", "--size", "256"]
        subprocess.run([env.bin / "generate_samples", "--output", folder, *sizes], check=True)


def comparisons(env):
    same = ["experiment=im2im/benchmark", f"data.path={env.root / 'data/bench'}", "trainer.max_steps=1"]
    return [
        Comparison(
            "first step",
            [env.bin / "train", *same, f"paths.output_dir={env.scratch / 'ours'}"],
            [env.python, env.here / "startup_peer.py", *same, f"paths.output_dir={env.scratch / 'peer'}"],
            {"wall": "wall", "CPU": "cpu", "peak memory": "rss"},
            "Hydra + Lightning + MONAI",
        )
    ]
