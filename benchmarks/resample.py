import subprocess

from run import Comparison

TITLE = (
    "A volume brought to other voxels, on one thread: 1.25 times finer along each axis by the nearest voxel, linearly and by cubic "
    "splines, and turned by 20 degrees, linearly; the peer is the faster of SciPy (zoom, affine_transform) and PyTorch (interpolate, "
    "grid_sample; no cubic splines); CPU seconds of the work alone."
)
SIZES = {"160x256x256": (160, 256, 256)}


def prepare(env):
    for name, size in SIZES.items():
        subprocess.run([env.python, env.here / "resample_peer.py", env.scratch / f"volume_{name}.npy", *map(str, size)], check=True)


def comparisons(env):
    return [
        Comparison(
            name,
            [env.bin.parent / "benchmarks/bench_resample", env.scratch / f"volume_{name}.npy"],
            [env.python, env.here / "resample_peer.py", env.scratch / f"volume_{name}.npy"],
            {work: f"json:{work} s" for work in ("nearest", "linear", "cubic", "turned")},
            "SciPy, PyTorch",
        )
        for name in SIZES
    ]
