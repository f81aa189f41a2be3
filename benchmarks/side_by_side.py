import subprocess

from run import Comparison

TITLE = (
    "One, two and four trainings at once on the same cores, each with the threads it takes by itself: 40 steps of DynUNet "
    "(16, 32, 64), Dice + cross entropy, AdamW, 4 crops of 128x128. Times are from the first start to the last end; CPU is "
    "that of all of them."
)
STEPS = 40


def prepare(env):
    folder = env.root / "data/bench"
    if not (folder / "train.csv").exists():
        sizes = ["--train", "8", "--valid", "2", "--test", "2", "--size", "256"]
        subprocess.run([env.bin / "generate_samples", "--output", folder, *sizes], check=True)


def comparisons(env):
    data = f"data.path={env.root / 'data/bench'}"

    def at_once(count, side, *command):
        each = " ".join(f"'{word}'" for word in map(str, command))
        folder = f"paths.output_dir={env.scratch / side}"
        script = f"for i in $(seq {count}); do {each} {folder}_$i >$0 2>&1 & done; for job in $(jobs -p); do wait $job || exit; done"
        return ["env", "-u", "OMP_NUM_THREADS", "-u", "MKL_NUM_THREADS", "bash", "-c", script, "/dev/null"]

    step = ["experiment=im2im/benchmark", f"trainer.max_steps={STEPS}", data]
    return [
        Comparison(
            f"{count} at once",
            at_once(count, "ours", env.bin / "train", *step, "trainer.max_epochs=-1"),
            at_once(count, "peer", env.python, env.here / "startup_peer.py", *step),
            {"wall": "wall", "user": "user", "system": "sys"},
            "Hydra + Lightning + MONAI",
        )
        for count in (1, 2, 4)
    ]
