import subprocess

from run import Comparison

TITLE = (
    "64 clients ask a server for the masks of images of 256x256, NumPy files both ways: DynUNet (16, 32, 64), `serve` beside "
    "FastAPI + PyTorch + MONAI in one process. The weights are those of one training step, the same for both; each mask is compared with "
    "the one that the same server gives for its image alone."
)
FILTERS = [16, 32, 64]


def prepare(env):
    def run(program, *arguments):
        subprocess.run([env.bin / program, *map(str, arguments)], check=True, capture_output=True)

    run("generate_samples", "--output", env.scratch / "samples", "--train", 4, "--valid", 1, "--test", 1, "--size", 128)
    model = {"filters": FILTERS, "strides": [1, 2, 2], "kernel_size": [3] * 3, "upsample_kernel_size": [2] * 2}
    run(
        "train",
        "experiment=im2im/segmentation",
        f"data.path={env.scratch / 'samples'}",
        f"paths.output_dir={env.scratch / 'run'}",
        "trainer.max_steps=1",
        *(f"model.{key}={value}".replace(" ", "") for key, value in model.items()),
    )
    run("export_model", f"checkpoint.ckpt_path={env.scratch / 'run/checkpoints/last.ckpt'}", f"output={env.scratch / 'weights.safetensors'}")


def comparisons(env):
    def load(*options):
        return [env.python, env.here / "serve_load.py", *options, "--"]

    def serve(*options):
        return [env.bin / "serve", "--json", f"checkpoint.ckpt_path={env.scratch / 'run/checkpoints/last.ckpt'}", "port=0",
                f"performance.num_threads={env.threads}", f"paths.output_dir={env.scratch / 'serve'}", *options]

    peer = [env.python, env.here / "serve_peer.py", env.scratch / "weights.safetensors", ",".join(map(str, FILTERS)), env.threads]
    figures = {"time of a request": "json:ms_per_request ms", "processor": "json:cpu_ms_per_request ms", "median": "json:p50_ms ms", "99 of 100": "json:p99_ms ms"}
    return [
        Comparison(name, load() + serve(*options), load() + peer, figures, "FastAPI + PyTorch")
        for name, options in (("eager", ["performance.backend=eager"]), ("as predict chooses", []))
    ]
