"""check_bioimageio.py BIN DATA3D DATA2D: trains eight small models, writes them as packages, and has bioimageio.core test them and
predict compare them with their checkpoints.

pip install torch==2.11.0 "pydantic<2.12" bioimageio.core onnxruntime; generate_samples --output DATA2D --size 128; generate_samples
--output DATA3D --size 64 --spatial-dims 3
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from bioimageio.core import test_model

programs, volumes, planes = map(pathlib.Path, sys.argv[1:4])
short = ["trainer.max_epochs=1", "trainer.limit_train_batches=2", "trainer.accelerator=cpu"]
about = ["bioimageio.authors=[Ada Lovelace]", "bioimageio.license=MIT", 'bioimageio.cite=[{text: A paper, url: "https://example.com/"}]']
models = {
    "masks": ["experiment=im2im/segmentation"],
    "volume": ["experiment=im2im/segmentation_3d"],
    "values": ["experiment=im2im/labelfree", "target_col=stain"],
    "classes": ["experiment=im2im/segmentation", "model=seg_resnet", "num_classes=3"],
    "flows": ["experiment=im2im/instance"],
    "scribbles": ["experiment=im2im/segmentation_scribbles"],
    "fixed": ["experiment=im2im/segmentation", "model=unetr"],
    "nnunet": ["experiment=im2im/segmentation", "model=plain_conv_unet"],
}


def run(program, *arguments):
    subprocess.run([programs / program, *map(str, arguments)], check=True, capture_output=True, timeout=600)


failed = []
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name, overrides in models.items():
        data = volumes if name == "volume" else planes
        image = sorted((data / "images").glob("test_*_raw*"))[0]
        run("train", *overrides, f"data.path={data}", *short, f"paths.output_dir={folder / name}")
        checkpoint, package = folder / name / "checkpoints/best.ckpt", folder / f"{name}_model.zip"
        given = [] if name == "volume" else [f"bioimageio.image={image}"]
        run("export_model", f"checkpoint.ckpt_path={checkpoint}", "format=bioimageio", f"output={package}", *about, *given)
        status = test_model(package).status
        values = []
        save = {"values": "value", "flows": None}.get(name, "probability")
        for i, model in enumerate((checkpoint, package)):
            out = folder / f"{name}_{i}"
            form = {"flows": ["raw", "value"][i]}.get(name, save)
            run("predict", f"checkpoint.ckpt_path={model}", f"data.path={image}", f"paths.output_dir={out}", "predict.format=npy", f"predict.save={form}")
            values.append(np.load(next(out.glob("*.npy"))))
        off = abs(values[0] - values[1]).max() / abs(values[0]).max()
        print(f"{name:10} {status:8} {off:.1e} of the largest value", flush=True)
        if status != "passed" or off > 1e-4:
            failed.append(name)
sys.exit(", ".join(failed) or 0)
