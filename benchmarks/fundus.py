import shlex
import subprocess

from run import Comparison

TITLE = (
    "24 photographs of retinas of about 1500 x 1700 pixels, in a folder: read, the disc found, brought to 512 x 512 with its mask and its "
    "contrast, each written as PNG. The peer has the same chain from OpenCV and NumPy (contour and fitEllipse instead of rays and RANSAC), "
    "with a pool of two threads; from the start of the process to its end."
)


def prepare(env):
    sizes = ["--train", "24", "--valid", "0", "--test", "0"]
    subprocess.run([env.bin / "generate_samples", "--kind", "fundus", "--output", env.scratch / "small", *sizes], check=True, capture_output=True)
    enlarge = (
        "import cv2, pathlib, sys\n"
        "small, large = map(pathlib.Path, sys.argv[1:])\n"
        "large.mkdir()\n"
        "for path in small.glob('*_raw.png'):\n"
        "    cv2.imwrite(str(large / path.name), cv2.resize(cv2.imread(str(path)), None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC))\n"
    )
    subprocess.run([env.python, "-c", enlarge, env.scratch / "small/images", env.scratch / "large"], check=True)


def comparisons(env):
    def anew(side, *command):  # what is done would be left out
        folder = shlex.quote(str(env.scratch / side))
        return ["bash", "-c", f"rm -rf {folder} && exec " + shlex.join(map(str, command))]

    source = env.scratch / "large"
    return [
        Comparison(
            "24 photographs",
            anew("ours", env.bin / "preprocess_fundus", f"data.path={source}", f"paths.output_dir={env.scratch / 'ours'}"),
            anew("peer", env.python, env.here / "fundus_peer.py", source, env.scratch / "peer"),
            {"wall": "wall", "CPU": "cpu", "peak memory": "rss"},
            "OpenCV + NumPy",
        )
    ]
