#!/usr/bin/env python3
"""prepare.py SET SOURCE OUT: what two of the public sets need before `train` (README.md beside this file).

  prepare.py mni152 - OUT            the template in nilearn's wheel (pip downloads it): halves of the head, classes from its tissue maps
  prepare.py dsb2018 STAGE1_TRAIN OUT   a label image from the PNGs of the single nuclei
Needs numpy, and nibabel or pillow and tifffile.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np


def mni152(_, out):
    import nibabel

    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder, "nilearn==0.14.1"]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
            for kind in ("t1", "gm", "wm"):
                name = f"nilearn/datasets/data/mni_icbm152_{kind}_tal_nlin_sym_09a_converted.nii.gz"
                (pathlib.Path(folder) / f"{kind}.nii.gz").write_bytes(wheel.read(name))
        t1, grey, white = (nibabel.load(f"{folder}/{kind}.nii.gz") for kind in ("t1", "gm", "wm"))
        grey, white = (np.asarray(image.dataobj).astype(int) for image in (grey, white))
        tissue = np.where(grey + white < 128, 0, np.where(grey >= white, 1, 2)).astype(np.uint8)
        for split, side in (("train", slice(20, 98)), ("valid", slice(98, 176))):
            for column, values in (("raw", np.asarray(t1.dataobj)), ("seg", tissue)):
                image = t1.slicer[side, 40:180, 60:108]
                nibabel.save(nibabel.Nifti1Image(values[side, 40:180, 60:108], image.affine), out / f"{split}_{column}.nii.gz")
            (out / f"{split}.csv").write_text(f"raw,seg\n{split}_raw.nii.gz,{split}_seg.nii.gz\n")


def dsb2018(source, out):
    import tifffile
    from PIL import Image

    for name in ("raw", "seg"):
        (out / name).mkdir()
    for folder in sorted(pathlib.Path(source).iterdir()):
        masks = [np.asarray(Image.open(path)) > 0 for path in sorted(folder.glob("masks/*.png"))]
        labels = np.zeros(masks[0].shape, np.uint16)
        for number, mask in enumerate(masks, 1):
            labels[mask] = number
        tifffile.imwrite(out / f"seg/{folder.name}.tif", labels)
        shutil.copy(next(folder.glob("images/*.png")), out / f"raw/{folder.name}.png")


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[3])
    out.mkdir(parents=True)
    {"mni152": mni152, "dsb2018": dsb2018}[sys.argv[1]](sys.argv[2], out)
