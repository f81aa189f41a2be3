from run import Comparison

TITLE = (
    "What sliding windows cost around a model that gives its input back, and around one that gives it back as 14 classes: "
    "2048x2048 by windows of 512x512, 128x256x256 by windows of 64x128x128, 4 at a time, Gaussian weights, float32, one "
    "thread. CPU time of one image; memory beside the image and the libraries."
)
REPEATS = 7


def comparisons(env):
    program = env.bin.parent / "benchmarks" / "bench_sliding_window"
    work = {"CPU": "json:cpu_ms ms", "peak memory": "json:peak_mb MB"}
    return [
        Comparison(
            f"{dims}D, overlap {overlap}" + (f", {classes} classes" if classes > 1 else ""),
            [program, *map(str, (dims, overlap, classes, REPEATS))],
            [env.python, env.here / "sliding_window_peer.py", *map(str, (dims, overlap, classes, REPEATS))],
            work,
            "MONAI",
        )
        for dims, classes in ((2, 1), (3, 1), (3, 14))
        for overlap in (0.25, 0.5)
    ]
