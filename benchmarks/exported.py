import subprocess

from run import Comparison

TITLE = (
    "Training steps of networks that torch.export saved (model=exported), beside Cytra's own forms of them, PyTorch eager and "
    "torch.compile: DynUNet (16, 32, 64, 128), SegResNet (16) and SwinUNETR (12) on 4x1x128x128, float32, DiceCE, AdamW."
)
OWN = {
    "dynunet": ["model=dynunet", "model.filters=[16,32,64,128]"],
    "segresnet": ["model=seg_resnet", "model.init_filters=16"],
    "swinunetr": ["model=swin_unetr", "model.feature_size=12"],
}
FIGURES = {"step": "json:training.4.fp32.median_ms ms", "peak memory": "json:training.4.fp32.peak_memory_mb MB"}


def comparisons(env):
    peer = [env.python, env.here / "exported_peer.py"]
    subprocess.run([*peer, "export", env.scratch], check=True)

    def step(*model):
        return [env.bin / "benchmark_performance", "--config", "im2im/segmentation", *model, "--input-shape", "4", "1", "128", "128",
                "--train", "--repeats", "8", "trainer.gradient_clip_val=null", "--json"]

    made = []
    for name, own in OWN.items():
        exported = step("model=exported", f"model.file={env.scratch / name}.pt2")
        made.append(Comparison(f"{name} beside Cytra's own", exported, step(*own), FIGURES, "own form"))
        made.append(Comparison(f"{name} beside PyTorch eager", exported, [*peer, "step", name, "eager"], FIGURES, "PyTorch"))
        if name != "swinunetr":  # torch 2.11's inductor writes C++ for it that g++ 12 does not compile
            made.append(Comparison(f"{name} beside torch.compile", exported, [*peer, "step", name, "compile"], FIGURES, "torch.compile"))
    return made
