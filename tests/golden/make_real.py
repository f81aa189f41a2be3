#!/usr/bin/env python3
"""make_real.py FOLDER: writes tests/golden/real.json, what tifffile, nibabel and Pillow read from the real images.

The images are not part of the repository; tests/io/images_test.cpp skips without them.
"""
import json
import sys
import zlib
from pathlib import Path

import nibabel
import numpy as np
import tifffile
from PIL import Image


def tiff(path):
    """[(timepoint, C Z Y X)], spacing"""
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        array, axes = series.asarray(), series.axes.replace("QQ", "CZ").replace("Q", "Z").replace("S", "C")
        spacing = None
        if file.is_imagej:
            meta, page = file.imagej_metadata, file.pages[0]
            unit = {"um": 1, "micron": 1, "\\u00B5m": 1, "mm": 1000}.get(str(meta.get("unit")), 0)
            x, y = (page.tags[name].value if name in page.tags else None for name in ("XResolution", "YResolution"))
            if unit and x:
                spacing = [meta.get("spacing", 0) * unit, y[1] / y[0] * unit, x[1] / x[0] * unit]
    for axis in "TCZYX":
        if axis not in axes:
            array, axes = array[None], axis + axes
    return array.transpose([axes.index(a) for a in "TCZYX"]), {"spacing_um": spacing} if spacing else {}


def nifti(path):
    image = nibabel.load(path)
    array = np.asanyarray(image.dataobj)
    if image.dataobj.slope != 1 or image.dataobj.inter != 0:
        array = array.astype("f4")
    array = array.reshape(array.shape + (1,) * (5 - array.ndim)).transpose(3, 4, 2, 1, 0)
    unit = {"mm": 1, "micron": 1e-3, "meter": 1e3, "unknown": 1}[image.header.get_xyzt_units()[0]]
    more = {}
    if image.header["sform_code"] > 0 or image.header["qform_code"] > 0:
        more["affine"] = (image.affine[:3] * unit).ravel().tolist()
        more["spacing_um"] = (np.linalg.norm(image.affine[:3, :3], axis=0)[::-1] * 1000 * unit).tolist()
    return array, more


def picture(path):
    image = Image.open(path)
    array = np.asarray(image)
    array = array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)
    if path.suffix == ".png" and image.mode in ("RGBA", "LA"):
        array = array[:-1]  # alpha is left out
    return array[None, :, None], {}


def main():
    root, cases = Path(sys.argv[1]), []
    readers = {".tif": tiff, ".tiff": tiff, ".nii": nifti, ".gz": nifti, ".png": picture, ".jpg": picture}
    for path in sorted(root.rglob("*")):
        if path.suffix not in readers or not path.is_file():
            continue
        array, more = readers[path.suffix](path)
        ours = {"int64": "i4", "uint64": "u4", "float16": "f4", "bool": "u1"}.get(array.dtype.name)
        array = array.astype(ours) if ours else array.astype(array.dtype.newbyteorder("<"))
        for t in range(len(array)):
            entry = {"file": path.relative_to(root).as_posix(), "dtype": array.dtype.name, "shape": array.shape[1:],
                     "crc32": zlib.crc32(np.ascontiguousarray(array[t]).tobytes()), **more}
            if len(array) > 1:
                entry |= {"timepoint": t, "timepoints": len(array)}
            cases.append(entry)
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (Path(__file__).parent / "real.json").write_text(f"[\n{lines}\n]\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
