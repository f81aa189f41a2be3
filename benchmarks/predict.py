import subprocess
from typing import NamedTuple

from run import Comparison

TITLE = (
    "One image predicted by sliding windows, 4 at a time, overlap 0.25, Gaussian weights; from the start of the process to the "
    "mask in a file: DynUNet (32, 64, 128, 256) on 2048x2048, windows of 512x512; DynUNet (16, 32, 64) on 128x256x256, windows "
    "of 64x128x128. The weights are those of one training step, the same for both. Ours runs by OpenVINO, the "
    "volume with one class eagerly, as OpenVINO's values of these weights are not near enough; the peer by PyTorch in float32."
)


class Case(NamedTuple):
    name: str
    dims: int = 2
    classes: int = 1
    precision: str = "32"
    threads: int = 1

    @property
    def filters(self):
        return [32, 64, 128, 256] if self.dims == 2 else [16, 32, 64]

    @property
    def roi(self):
        return [512, 512] if self.dims == 2 else [64, 128, 128]

    @property
    def run(self):
        return f"run_{self.dims}d_{self.classes}"


CASES = [
    Case("2048x2048"),
    Case("2048x2048, 2 threads", threads=2),
    Case("2048x2048, ours in bfloat16", precision="bf16-mixed"),
    Case("2048x2048, 8 classes", classes=8),
    Case("128x256x256", dims=3),
    Case("128x256x256, 8 classes", dims=3, classes=8),
]


def prepare(env):
    def run(program, *arguments):
        subprocess.run([env.bin / program, *map(str, arguments)], check=True, capture_output=True)

    for dims in (2, 3):
        sizes = [("small", 4, 128 if dims == 2 else 64), ("large", 0, 2048 if dims == 2 else 256)]
        for folder, train, size in sizes:
            depth = ["--spatial-dims", 3, "--depth", 32 if train else 128] if dims == 3 else []
            run("generate_samples", "--output", env.scratch / f"{folder}_{dims}d", "--train", train, "--valid", train // 4, "--test", 1, "--size", size, *depth)
    for case in {case.run: case for case in CASES}.values():
        layers = len(case.filters)
        run(
            "train",
            "experiment=im2im/segmentation" + ("_3d" if case.dims == 3 else ""),
            f"data.path={env.scratch / f'small_{case.dims}d'}",
            f"paths.output_dir={env.scratch / case.run}",
            "trainer.max_steps=1",
            f"num_classes={case.classes}",
            f"model.filters={case.filters}".replace(" ", ""),
            f"model.strides={[1] + [2] * (layers - 1)}".replace(" ", ""),
            f"model.kernel_size={[3] * layers}".replace(" ", ""),
            f"model.upsample_kernel_size={[2] * (layers - 1)}".replace(" ", ""),
        )
        run("export_model", f"checkpoint.ckpt_path={env.scratch / case.run / 'checkpoints/last.ckpt'}", f"output={env.scratch / case.run}.safetensors")


def comparisons(env):
    def image(case):
        return env.scratch / f"large_{case.dims}d/images/test_0000_raw.ome.tif"

    return [
        Comparison(
            case.name,
            [
                env.bin / "predict",
                f"checkpoint.ckpt_path={env.scratch / case.run / 'checkpoints/last.ckpt'}",
                f"data.path={image(case)}",
                f"paths.output_dir={env.scratch / 'masks'}",
                f"inference_args.roi_size={case.roi}".replace(" ", ""),
                "inference_args.sw_batch_size=4",
                "inference_args.overlap=0.25",
                "inference_args.mode=gaussian",
                "predict.overlay=false",
                f"trainer.precision={case.precision}",
                f"performance.num_threads={case.threads}",
            ],
            [env.python, env.here / "predict_peer.py", f"{env.scratch / case.run}.safetensors", image(case), env.scratch / "peer.tif", case.threads, case.dims, case.classes]
            + [",".join(map(str, numbers)) for numbers in (case.filters, case.roi)],
            {"wall": "wall", "user": "user", "system": "sys", "peak memory": "rss"},
            "PyTorch + MONAI",
        )
        for case in CASES
        if case.threads <= env.threads
    ]
