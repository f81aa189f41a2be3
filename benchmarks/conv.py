from run import Comparison

TITLE = (
    "Convolutions of 3 pixels a side with a stride of 1, float32: the output and the gradients of the input and of the weight, by "
    "Winograd's algorithm, beside PyTorch's in the faster of its two layouts, and beside our direct ones. Milliseconds, medians."
)
PASSES = 7
SHAPES = [  # samples, channels of the input and of the output, sides
    (4, 16, 16, 128, 128),  # DynUNet 16-64
    (4, 32, 32, 64, 64),
    (4, 64, 64, 32, 32),
    (4, 32, 32, 256, 256),  # DynUNet 32-256
    (4, 64, 64, 128, 128),
    (4, 128, 128, 64, 64),
    (4, 256, 256, 32, 32),
    (4, 64, 32, 256, 256),
    (2, 320, 320, 16, 16),  # nnU-Net
    (2, 16, 16, 64, 64, 64),  # SegResNet
    (2, 32, 32, 64, 64, 64),  # DynUNet 32-256
    (2, 64, 64, 32, 32, 32),
    (2, 128, 128, 16, 16, 16),
    (2, 256, 256, 8, 8, 8),
    (1, 64, 32, 64, 64, 64),
    (2, 320, 320, 8, 8, 8),  # nnU-Net
]


def comparisons(env):
    program = env.bin.parent / "benchmarks/bench_conv"

    def compare(shape, name, peer):
        sides = "x".join(map(str, shape[3:]))
        return Comparison(
            f"{shape[0]}x{shape[1]}->{shape[2]} {sides}, beside {name}",
            [program, "winograd", env.threads, PASSES, *shape],
            [*peer, env.threads, PASSES, *shape],
            {part: f"json:{part} ms" for part in ("forward", "data", "weight")},
            name,
        )

    return [
        compare(shape, *peer)
        for shape in SHAPES
        for peer in (("PyTorch", [env.python, env.here / "conv_peer.py"]), ("direct", [program, "direct"]))
    ]
