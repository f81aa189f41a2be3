#!/usr/bin/env python3
"""Compares what Cytra writes as OME-Zarr with python's zarr, and its metadata with ome-zarr-models.

check_zarr.py build/release/tests/test_io; runs as a test by read_back.sh, with zarr 3.1 and ome-zarr-models 1.7 (everything); zarr 2.18 by hand (what is 0.4).
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import zarr

IS_V3 = int(zarr.__version__.split(".")[0]) >= 3


def values(c, z, y, x):
    c, z, y, x = np.ogrid[:c, :z, :y, :x]
    return (97 * c + 31 * z + 7 * y + 3 * x) % 251 // 2


def shrink(array, factors, nearest):
    if nearest:
        return array[tuple(slice(None, None, f) for f in factors)]
    total = np.zeros([-(-n // f) for n, f in zip(array.shape, factors)])
    count = np.zeros_like(total)
    for shift in np.ndindex(*factors):
        part = array[tuple(slice(s, None, f) for s, f in zip(shift, factors))].astype("f8")
        where = tuple(slice(0, n) for n in part.shape)
        total[where] += part
        count[where] += 1
    mean = total / count
    return (mean if array.dtype.kind == "f" else np.floor(mean + 0.5)).astype(array.dtype)


def check(path, group, expected, factors, nearest):
    attributes = dict(group.attrs)
    ome = attributes.get("ome", attributes)
    image = ome["multiscales"][0]
    names = [axis["name"] for axis in image["axes"]]
    is_stack = "z" in names
    spacing = {"z": 1, "y": 0.25, "x": 0.25} if is_stack else {}
    assert names == (["z", "y", "x"] if nearest else list("czyx")) if is_stack else names == ["y", "x"]
    unit = {"unit": "micrometer"} if is_stack else {}
    expected_axes = [{"name": n, "type": "channel"} if n == "c" else {"name": n, "type": "space", **unit} for n in names]
    assert image["axes"] == expected_axes, image["axes"]
    assert ome.get("version", image.get("version")) == ("0.4" if path.name.startswith("v4") else "0.5")
    assert len(image["datasets"]) == 3
    for level, dataset in enumerate(image["datasets"]):
        array = group[dataset["path"]]
        assert array.dtype == expected.dtype and array.dtype.name == path.name.split("_")[1], (path, array.dtype)
        np.testing.assert_array_equal(array[...], expected, str(path))
        total = {name: 2 ** level for name in "yx"} | {"c": 1, "z": 1}
        scale, *more = dataset["coordinateTransformations"]
        assert scale == {"type": "scale", "scale": [spacing.get(n, 1) * total[n] for n in names]}, scale
        if level:
            assert more[0]["translation"] == [spacing.get(n, 1) * (total[n] - 1) / 2 for n in names], more
        if IS_V3 and array.metadata.zarr_format == 3:
            assert list(array.metadata.dimension_names) == names
        expected = shrink(expected, factors, nearest)
    if is_stack and not nearest:
        assert [c["label"] for c in ome["omero"]["channels"]] == ["DNA", "\u00b5-Tubulin"]
        assert ome["omero"]["channels"][0]["window"]["end"] == 125


def validate(group, is_v4, is_label):
    import ome_zarr_models.v04 as v04
    import ome_zarr_models.v05 as v05
    models = v04 if is_v4 else v05
    if is_label:
        from ome_zarr_models.v04.image_label import ImageLabel as Label04
        from ome_zarr_models.v05.image_label import ImageLabel as Label05
        (Label04 if is_v4 else Label05).from_zarr(group)
    else:
        models.Image.from_zarr(group)


def main():
    with tempfile.TemporaryDirectory() as name:
        run = [sys.argv[1], "--gtest_also_run_disabled_tests", "--gtest_filter=ZarrWrite.DISABLED_ForPython"]
        subprocess.run(run, check=True, env={**os.environ, "CYTRA_ZARR_OUT": name}, stdout=subprocess.DEVNULL)
        done = 0
        for path in sorted(Path(name).iterdir()):
            is_v4 = path.name.startswith("v4")
            if not IS_V3 and not is_v4:
                continue
            dtype = path.name.split("_")[1]
            group = zarr.open_group(str(path), mode="r")
            is_stack = path.name.endswith("_stack.zarr")
            whole = (values(2, 5, 40, 70) if is_stack else values(1, 1, 130, 90)[0, 0]).astype(dtype)
            check(path, group, whole, [1] * (whole.ndim - 2) + [2, 2], False)
            if IS_V3:
                validate(group, is_v4, False)
            if is_stack and not dtype.startswith("f"):
                cells = zarr.open_group(str(path / "labels/cells"), mode="r")
                check(path, cells, whole[0], [1, 2, 2], True)
                attributes = dict(zarr.open_group(str(path / "labels"), mode="r").attrs)
                assert attributes.get("ome", attributes)["labels"] == ["cells"]
                if IS_V3:
                    validate(cells, is_v4, True)
            done += 1
        assert done == (192 if IS_V3 else 64), done
        print(f"{done} images agree with zarr {zarr.__version__}")


if __name__ == "__main__":
    main()
