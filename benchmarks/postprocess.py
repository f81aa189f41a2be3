import subprocess

from run import Comparison

TITLE = (
    "What becomes of a mask of nuclei (discs and balls of radius 6 to 13, some of which touch), on one thread: components "
    "(the peer: the faster of SciPy and scikit-image), exact distances (SciPy), watershed (distances, peaks 7 apart and floods, "
    "as scikit-image's recipe) and measurements of every object (regionprops_table); CPU seconds of the work alone."
)
SIZES = {"4096x4096": (4096, 4096), "128x512x512": (128, 512, 512)}


def files(env, name):
    return env.scratch / f"mask_{name}.npy", env.scratch / f"image_{name}.npy"


def prepare(env):
    for name, size in SIZES.items():
        subprocess.run([env.python, env.here / "postprocess_peer.py", *files(env, name), "make", *map(str, size)], check=True)


def comparisons(env):
    return [
        Comparison(
            name,
            [env.bin.parent / "benchmarks/bench_postprocess", *files(env, name)],
            [env.python, env.here / "postprocess_peer.py", *files(env, name)],
            {work: f"json:{work} s" for work in ("components", "distance", "watershed", "measure")},
            "scikit-image, SciPy",
        )
        for name in SIZES
    ]
