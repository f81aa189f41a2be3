"""check_nnunet.py BIN DATA3D DATA2D: trains small models, writes them with format=nnunet, and compares what nnU-Net's own predictor
makes of a test image, and their weights there, with predict and the checkpoint; then the archive goes back into predict.

pip install torch==2.11.0 nnunetv2==2.8.1 safetensors; generate_samples --output DATA2D --size 128; generate_samples --output DATA3D
--size 64 --spatial-dims 3
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

for name in ("raw", "preprocessed", "results"):
    os.environ[f"nnUNet_{name}"] = "/tmp/nnunet"
import numpy as np
import SimpleITK as sitk
import torch
from nnunetv2.inference import predict_from_raw_data as prediction
from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
from safetensors.torch import load_file
from skimage import io

weights = prediction.compute_gaussian
prediction.compute_gaussian = lambda *args, **more: weights(*args, dtype=torch.float16, **more).float()
programs, volumes, planes = map(pathlib.Path, sys.argv[1:4])
short = ["trainer.max_epochs=2", "trainer.limit_train_batches=4", "trainer.accelerator=cpu"]
models = {
    "masks": ["experiment=im2im/segmentation"],
    "recipe": ["experiment=im2im/nnunet"],
    "classes": ["experiment=im2im/segmentation", "num_classes=3", "model=plain_conv_unet", "model.n_stages=4"],
    "residual": ["experiment=im2im/segmentation", "model=residual_encoder_unet", "model.n_stages=3"],
    "volume": ["experiment=im2im/segmentation_3d"],
    "flat": ["experiment=im2im/segmentation_3d", "model.kernel_size=[[1,3,3],[1,3,3],[3,3,3]]", "model.strides=[[1,1,1],[1,2,2],[2,2,2]]",
             "model.filters=[8,16,32]"],
}


def run(program, *arguments):
    done = subprocess.run([programs / program, *map(str, arguments)], capture_output=True, timeout=900, text=True)
    if done.returncode:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: {done.stderr}")


failed = []
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name, overrides in models.items():
        is_volume = name in ("volume", "flat")
        data = volumes if is_volume else planes
        original = sorted((data / "images").glob("test_*_raw*"))[0]
        run("train", *overrides, f"data.path={data}", *short, f"paths.output_dir={folder / name}")
        checkpoint, archive = folder / name / "checkpoints/best.ckpt", folder / f"Dataset007_{name.title()}.zip"
        # An image that both read: its values, with a spacing of 1 mm.
        run("predict", f"checkpoint.ckpt_path={checkpoint}", f"data.path={original}", f"paths.output_dir={folder / name / 'any'}",
            "predict.format=npy", "predict.save=logits", "predict.overlay=false")
        values = io.imread(original)
        if is_volume:
            image = folder / f"{name}_0000.nii.gz"
            picture = sitk.GetImageFromArray(values)
            picture.SetSpacing((1, 1, 1))
            sitk.WriteImage(picture, str(image))
        else:
            image = folder / f"{name}_0000.tif"
            io.imsave(image, values, check_contrast=False)
        ending = ["nnunet.file_ending=.tif"] if not is_volume else ["nnunet.spacing=[1,1,1]"]
        run("export_model", f"checkpoint.ckpt_path={checkpoint}", "format=nnunet", f"output={archive}", *ending)
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(folder)
        model = next((folder / archive.stem).iterdir())
        predictor = nnUNetPredictor(use_mirroring=False, device=torch.device("cpu"), allow_tqdm=False)
        predictor.initialize_from_trained_model_folder(str(model), (0,))  # strict
        run("export_model", f"checkpoint.ckpt_path={checkpoint}", "format=safetensors", f"output={folder / name / 'own.safetensors'}")
        own = load_file(folder / name / "own.safetensors")
        theirs = predictor.network.state_dict()
        sums = {round(float(t.double().abs().sum()), 9) for t in theirs.values()}
        is_same = all(round(float(t.double().abs().sum()), 9) in sums for key, t in own.items() if "seg_layers" not in key and "output_block" not in key)
        if "conv" in name or name in ("classes", "residual"):
            is_same = is_same and all(torch.equal(t, theirs[key]) for key, t in own.items() if "seg_layers" not in key)
        preprocessor = predictor.configuration_manager.preprocessor_class(verbose=False)
        prepared, _, _ = preprocessor.run_case([str(image)], None, predictor.plans_manager, predictor.configuration_manager, predictor.dataset_json)
        # It sums windows in 16 bits, in which the weights at a volume's corners are noise; here they are summed in 32.
        half, torch.half = torch.half, torch.float32
        there = predictor.predict_logits_from_preprocessed_data(torch.from_numpy(prepared)).float().numpy()
        torch.half = half
        there = there[1:] - there[:1] if there.shape[0] == 2 else there
        off = []
        # nnU-Net's windows: their places, their size, and the same weights where they overlap.
        windows = ["inference_args.spacing=even", "inference_args.overlap=0.5", "inference_args.mode=nnunet", "inference_args.roi_size=null"]
        for model_path, args in ((checkpoint, windows), (archive, [])):
            out = folder / f"{name}_{len(off)}"
            run("predict", f"checkpoint.ckpt_path={model_path}", f"data.path={image}", f"paths.output_dir={out}", "predict.format=npy",
                "predict.save=logits", "predict.overlay=false", *args)
            here = np.load(next(out.glob("*.npy")))
            here = here.reshape((-1,) + there.shape[1:]) if here.size != there.size * 2 else here.reshape((2,) + there.shape[1:])
            here = here[1:] - here[:1] if here.shape[0] == 2 and there.shape[0] == 1 else here
            off.append(abs(here - there).max() / abs(there).max())
        print(f"{name:10} weights {'equal' if is_same else 'DIFFER'}  logits: checkpoint {off[0]:.1e}, archive {off[1]:.1e} of the largest", flush=True)
        if not is_same or max(off) > 2e-2:
            failed.append(name)
sys.exit(", ".join(failed) or 0)
