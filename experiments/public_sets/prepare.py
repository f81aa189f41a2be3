#!/usr/bin/env python3
"""prepare.py OUT: what the MNI152 template in nilearn's wheel (pip downloads it) needs before `train` (README.md
beside this file): halves of the head, and classes from its tissue maps. Needs numpy and nibabel.
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np


def mni152(out):
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


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    mni152(folder)
