"""gpu_peer.py SUBJECT SECONDS: what bench_device measures of Cytra on a GPU, by PyTorch, MONAI and Lightning: the same
networks, sizes, data in memory and two workers. JSON lines as bench_device's, a row for each way:
inference, sliding_window_2d, sliding_window_3d, training_2d, training_3d."""
import contextlib
import json
import logging
import statistics
import sys
import time
import warnings

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.networks.nets import DynUNet

SUBJECT, SECONDS = sys.argv[1], float(sys.argv[2])
DEVICE = torch.device("cuda")
PRECISIONS = {"fp32": "32-true", "tf32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.manual_seed(0)


def row(what, how, value, unit):
    print(json.dumps({"what": what, "how": how, "value": value, "unit": unit}), flush=True)


def unet(dims, channels_last=False):
    net = DynUNet(dims, 1, 1, [3] * 4, [1, 2, 2, 2], [2] * 3, filters=[32, 64, 128, 256])
    if channels_last:
        net = net.to(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)
    return net


def compiled(net):
    torch.compiler.reset()
    return torch.compile(net, dynamic=False)


@contextlib.contextmanager
def arithmetic(name):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
    with torch.autocast("cuda", half) if half else contextlib.nullcontext():
        yield


def median_ms(work):
    """As bench_device's."""
    times, begin, count = [], time.perf_counter(), -3
    while count < 1 or (time.perf_counter() - begin < SECONDS * (1 if count >= 3 else 3) and count < 1000):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if count >= 0:
            times.append(1e3 * (time.perf_counter() - start))
        count += 1
    return statistics.median(times)


def inference():
    for what, dims, shape in (
        ("segmentation 512x512", 2, (1, 1, 512, 512)),
        ("segmentation 3D", 3, (1, 1, 128, 128, 128)),
        ("batch of 16, 512x512", 2, (16, 1, 512, 512)),
    ):
        images = torch.randn(shape, device=DEVICE)
        for way in ("", ", channels last", ", compiled"):
            for name in PRECISIONS:
                if way and name not in ("tf32", "bf16"):
                    continue
                net = unet(dims, way == ", channels last").to(DEVICE).eval()
                with torch.no_grad(), arithmetic(name):
                    run = compiled(net) if way == ", compiled" else net
                    row(f"{what}, {name}", "MONAI" + way, median_ms(lambda: run(images)), "ms")


def sliding_window(dims):
    whole, roi = (2048, 512) if dims == 2 else (512, 128)
    image = torch.randn((1, 1) + (whole,) * dims, device=DEVICE)
    for way in ("", ", channels last"):
        net = unet(dims, way == ", channels last").to(DEVICE).eval()
        for name in PRECISIONS:
            if way and name not in ("tf32", "bf16"):
                continue
            with torch.no_grad(), arithmetic(name):
                ms = median_ms(lambda: sliding_window_inference(image, (roi,) * dims, 4, net, 0.25, "gaussian"))
            row(f"sliding window {whole}^{dims}, roi {roi}, {name}", "MONAI" + way, ms, "ms")


def trained_ms(dims, shape, name, way):
    import lightning

    class Images(torch.utils.data.Dataset):
        def __init__(self):
            self.raw, self.seg = torch.randn(shape[1:]), torch.randint(2, shape[1:]).float()

        def __len__(self):
            return 100 * shape[0]

        def __getitem__(self, _):
            return {"raw": self.raw.clone(), "seg": self.seg.clone()}

    class Segmentation(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = unet(dims, "channels last" in way)
            self.run = compiled(self.net) if "compiled" in way else self.net
            self.loss = DiceCELoss(sigmoid=True)

        def training_step(self, batch, _):
            raw = batch["raw"]
            if "channels last" in way:
                raw = raw.contiguous(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)
            loss = self.loss(self.run(raw), batch["seg"])
            self.log("train/loss", loss)
            return loss

        def configure_optimizers(self):
            # In mixed precision Lightning refuses to clip for a fused optimizer.
            return torch.optim.AdamW(self.net.parameters(), fused="mixed" not in PRECISIONS[name])

    class Clocked(lightning.Callback):
        begin, steps = 0, 1

        def on_train_batch_end(self, trainer, *_):
            step = trainer.global_step
            if step == 10:
                torch.cuda.synchronize()
                self.begin = time.perf_counter()
            self.steps = max(1, step - 10)
            trainer.should_stop = step > 10 and time.perf_counter() - self.begin > SECONDS

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
    clock = Clocked()
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=1,
        max_steps=1_000_000,
        precision=PRECISIONS[name],
        gradient_clip_val=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    loader = torch.utils.data.DataLoader(Images(), shape[0], num_workers=2, pin_memory=True, persistent_workers=True)
    trainer.fit(Segmentation(), loader)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - clock.begin) / clock.steps


def training(dims, shapes):
    for shape in shapes:
        what = f"training step {shape[0]}x1x" + (f"{shape[2]}x{shape[3]}" if dims == 2 else f"{shape[2]}^3")
        for name in PRECISIONS:
            for way in ("", ", channels last", ", compiled"):
                if way == ", compiled" and (name not in ("tf32", "bf16") or shape[0] not in (2, 4)):
                    continue
                if way == ", channels last" and name in ("fp32", "fp16"):
                    continue
                row(f"{what}, {name}", "Lightning + MONAI" + way, trained_ms(dims, shape, name, way), "ms/step")


{
    "inference": inference,
    "sliding_window_2d": lambda: sliding_window(2),
    "sliding_window_3d": lambda: sliding_window(3),
    "training_2d": lambda: training(2, [(4, 1, 256, 256), (1, 1, 256, 256), (16, 1, 256, 256)]),
    "training_3d": lambda: training(3, [(2, 1, 96, 96, 96)]),
}[SUBJECT]()
