from run import Comparison

TITLE = "From the command to the whole of its help, and to the composed configuration."
FIGURES = {"wall": "wall", "CPU": "cpu", "peak memory": "rss"}


def comparisons(env):
    train = env.bin / "train"
    peer = [env.python, env.here / "startup_peer.py"]
    name = "Hydra + Lightning + MONAI"
    return [
        Comparison("`--help`", [train, "--help"], [*peer, "--help"], FIGURES, name),
        Comparison(
            "`--cfg job`",
            [train, "experiment=im2im/benchmark", "--cfg", "job"],
            [*peer, "experiment=im2im/benchmark", "--cfg", "job"],
            FIGURES,
            name,
        ),
    ]
