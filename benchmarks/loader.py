import subprocess

from run import Comparison

TITLE = (
    "Loading 512 x 512 uint16 deflate TIFF: random 256 x 256 crop, two flips, rot90, z-score; batches of 16, 2 workers."
)
IMAGES, WORKERS, EPOCHS = 400, 2, 3


def folder(env):
    return env.scratch / "images"


def prepare(env):
    subprocess.run([env.python, env.here / "loader_images.py", folder(env), str(IMAGES)], check=True)


def comparisons(env):
    def ours(ram_gb):
        program = env.bin.parent / "benchmarks" / "bench_loader"
        return [program, folder(env), str(WORKERS), str(EPOCHS), str(ram_gb)]

    def peer(kind):
        return [env.python, env.here / "loader_peer.py", folder(env), str(WORKERS), str(EPOCHS), kind]

    work = {"one image": "json:ms_per_image ms", "peak memory": "json:peak_mb MB"}
    return [
        Comparison("every image decoded anew, NumPy", ours(0), peer("numpy"), work, "DataLoader"),
        Comparison("every image decoded anew, MONAI", ours(0), peer("monai"), work, "DataLoader"),
        Comparison("ram_cache_gb=2 (the default), NumPy", ours(2), peer("numpy"), work, "DataLoader"),
        Comparison(
            "a batch of nothing", ours(0), peer("numpy"), {"one batch": "json:us_per_empty_batch us"}, "DataLoader"
        ),
    ]
