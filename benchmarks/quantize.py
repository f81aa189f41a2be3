from run import Comparison

TITLE = (
    "One pass of transformers on one thread, linear layers in 8 bits by the range of each input (int8_dynamic) beside PyTorch's "
    "quantize_dynamic, and both beside what they have otherwise: ViT (12 blocks of 768) on 1x1x224x224, UNETR on 1x1x96x96x96; "
    "then a U-Net with batch norms (32, 64, 128, 256) on 4x1x256x256, folded into its convolutions beside what it was; CPU seconds."
)
PAIRS = [  # network and engine of ours, of the peer's
    ("vit eager int8_dynamic", "vit quantize_dynamic 32"),
    ("vit eager int8_dynamic", "vit eager 32"),
    ("vit eager int8_dynamic", "vit eager bf16"),
    ("vit openvino int8", "vit openvino 32"),
    ("unetr eager int8_dynamic", "unetr quantize_dynamic 32"),
    ("unetr eager 32", "unetr eager 32"),
    ("folded eager 32", "batchnorm eager 32"),
    ("batchnorm eager 32", "batchnorm eager 32"),
]
PASSES = 3


def comparisons(env):
    program = env.bin.parent / "benchmarks/bench_inference"
    return [
        Comparison(
            f"{ours} beside {theirs}",
            [program, *ours.split(), PASSES],
            [env.python, env.here / "inference_peer.py", *theirs.split(), PASSES],
            {"pass": "json:pass s"},
            "Python",
        )
        for ours, theirs in PAIRS
    ]
