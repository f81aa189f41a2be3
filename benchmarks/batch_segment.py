import csv
import subprocess

from run import Comparison

TITLE = (
    "200 generated images of 160x160 with 15 to 30 nuclei each through `batch_segment`: our detector (experiment=detection/cells) "
    "and our prompted segmenter (experiment=promptable/cells). `naive` loads both models for each image, and each box is a call of "
    "its own with the image's encoding; `optimized` loads them once, encodes an image once and pools the boxes of several images; "
    "`parallel` also reads and writes in other threads. Times are of the whole process, with the loading."
)
IMAGES = 200


def folder(env):
    return env.root / "data/bench_segment"


def prepare(env):
    data, learned = folder(env), folder(env) / "learned"

    def generate(to, train, valid, seed):
        sizes = ["--train", train, "--valid", valid, "--test", 0, "--size", 160, "--seed", seed]
        if not (to / "train.csv").exists():
            subprocess.run([env.bin / "generate_samples", "--output", to, *map(str, sizes)], check=True, capture_output=True)

    generate(data, IMAGES, 0, 18)
    generate(learned, 24, 6, 19)
    with open(data / "train.csv") as table, open(data / "images.csv", "w") as images:
        images.write("image\n" + "".join(row["raw"] + "\n" for row in csv.DictReader(table)))
    for task in ("detection", "promptable"):
        kept = data / f"{task}.ckpt"
        if kept.exists():
            continue
        command = [env.bin / "train", f"experiment={task}/cells", f"data.path={learned}", f"paths.output_dir={env.scratch / task}"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        best = next(line.split(": ", 1)[1] for line in out.splitlines() if line.startswith("best_checkpoint: "))
        kept.write_bytes(open(best, "rb").read())


def comparisons(env):
    data = folder(env)

    def mode(name):
        models = ["--detector", data / "detection.ckpt", "--segmenter", data / "promptable.ckpt", "--device", "cpu"]
        output = [f"paths.output_dir={env.scratch / name}", f"performance.num_threads={env.threads}"]
        return [env.bin / "batch_segment", data / "images.csv", "--mode", name, *models, *output]

    figures = {"wall": "wall", "user": "user", "system": "sys", "peak memory": "rss"}
    return [Comparison(name, mode(name), mode("naive"), figures, "mode naive") for name in ("optimized", "parallel")]
