#!/usr/bin/env python3
"""check_images.py TEST_IO: has the program test_io write images, and reads them with tifffile, ome-types (which checks the
OME-XML against its schema), nibabel, SimpleITK and NumPy. Runs as a test by read_back.sh."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nibabel
import numpy as np
import ome_types
import SimpleITK
import tifffile


NAMES = {"float32": "float", "float64": "double"}  # of OME


def expected(dtype, shape):
    count = np.arange(np.prod(shape), dtype="i8") * 7 % 120
    array = count / 4 if dtype.startswith("float") else count
    return array.astype(dtype).reshape(shape)


def check(condition, *what):
    if not condition:
        raise SystemExit(f"wrong: {what}")


def check_tiff(path, array):
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        check(len(file.series) == 1 and file.is_ome, path, "series")
        got = series.asarray()
        stored = got.dtype.name
        check(stored == array.dtype.name, path, stored)
        times = 1
        c, z, y, x = array.shape
        axes = ("T" if "_time" in path.name else "") + ("CZYX" if c * z > 1 else "YX")
        check(series.axes == axes and file.byteorder == "<", path, series.axes)
        if "_time" in path.name:
            times = 2
            backwards = np.frombuffer(array.tobytes()[::-1], array.dtype).reshape(array.shape)
            check(np.array_equal(got.reshape((2,) + array.shape)[0].view("u1"), backwards.view("u1")), path, "time point 0")
            check(np.array_equal(got.reshape((2,) + array.shape)[1], array), path, "time point 1")
        else:
            check(np.array_equal(got.reshape(array.shape), array), path, "values")
        for level, smaller in enumerate(series.levels[1:], 1):
            small = smaller.asarray()
            check(small.shape[-2:] == tuple(-(-side // 2**level) for side in array.shape[-2:]), path, small.shape)
            check(abs(small.astype("f8").mean() - array.astype("f8").mean()) < 3, path, "mean of a level")
        check(len(series.levels) == (3 if file.pages[0].is_tiled else 1), path, "levels")
        check(abs(file.pages[0].tags["XResolution"].value[0] / file.pages[0].tags["XResolution"].value[1] - 40) < 1e-6, path)
        ome = ome_types.from_xml(file.ome_metadata, validate=True)
    pixels = ome.images[0].pixels
    check((pixels.size_c, pixels.size_z, pixels.size_y, pixels.size_x, pixels.size_t) == (c, z, y, x, times), path, "sizes")
    check((pixels.physical_size_x, pixels.physical_size_y, pixels.physical_size_z) == (250, 500, 1500), path, "spacing")
    units = {pixels.physical_size_x_unit.value, pixels.physical_size_y_unit.value, pixels.physical_size_z_unit.value}
    check(units == {"µm"} and pixels.type.value == NAMES.get(stored, stored), path, units, pixels.type)
    check([channel.name for channel in pixels.channels] == (["DNA & <more>", "µ"] if c == 2 else [None]), path, "names")


def check_nifti(path, array):
    image = nibabel.load(path)
    data = np.asanyarray(image.dataobj)
    check(data.dtype == array.dtype, path, data.dtype)
    c, z, y, x = array.shape
    check(data.shape == ((x, y, z, 1, c) if c > 1 else (x, y, z)), path, data.shape)
    check(np.array_equal(data.reshape(x, y, z, c).transpose(3, 2, 1, 0), array), path, "values")
    affine = [[0, -0.5, 0, 10], [0.25, 0, 0, 20], [0, 0, 1.5, 30], [0, 0, 0, 1]]
    check(np.allclose(image.affine, affine) and np.allclose(image.get_qform(), affine, atol=1e-6), path, image.affine, image.get_qform())
    check(np.allclose(image.header.get_zooms()[:3], (0.25, 0.5, 1.5)) and image.header.get_xyzt_units()[0] == "mm", path, "zooms")


def check_itk(path, array):
    image = SimpleITK.ReadImage(str(path))
    data = SimpleITK.GetArrayFromImage(image)
    check(data.dtype == array.dtype, path, data.dtype)
    check(np.array_equal(data if len(array) == 1 else np.moveaxis(data, -1, 0), array[0] if len(array) == 1 else array), path, "values")
    place = image.GetOrigin(), image.GetSpacing(), image.GetDirection()  # left, posterior, superior
    right = (-10, -20, 30), (0.25, 0.5, 1.5), (0, 1, 0, -1, 0, 0, 0, 0, 1)
    check(all(np.allclose(got, want) for got, want in zip(place, right)), path, place)


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--gtest_also_run_disabled_tests", "--gtest_filter=Writers.DISABLED_WriteSamples"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "CYTRA_WRITE_SAMPLES": folder})
        paths = sorted(path for path in Path(folder).iterdir() if not path.name.endswith((".raw", ".raw.gz")))
        check(len(paths) == 192, len(paths), "files")
        for path in paths:
            dtype, sizes = path.name.split(".")[0].split("_")[:2]
            array = expected(dtype, (int(sizes[0]), int(sizes[1]), 40, 50))
            if path.suffix == ".npy":
                got = np.load(path)
                check(got.dtype == array.dtype and np.array_equal(got.reshape(array.shape), array), path)
                check(got.ndim == (2 if sizes == "11" else 4), path, got.shape)
            elif "_raw." in path.name:
                check_itk(path, array)
            elif ".nii" in path.name:
                check_nifti(path, array)
            else:
                check_tiff(path, array)
        print(len(paths), "files are right")


if __name__ == "__main__":
    main()
