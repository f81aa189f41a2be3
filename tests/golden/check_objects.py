#!/usr/bin/env python3
"""Compares the outlines that Cytra writes as GeoJSON and as ImageJ ROIs with the labels that they are of.

check_objects.py build/release/tests/test_io; runs as a test by read_back.sh, with shapely 2.2 and roifile 2026.2.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import roifile
import shapely
from shapely.geometry import Polygon, shape


def fill(geometry, height, width):
    y, x = np.mgrid[:height, :width] + 0.5
    return shapely.contains_xy(geometry, x.ravel(), y.ravel()).reshape(height, width)


def geometry_of(roi):
    """Of a ROI: rings on pixel corners, holes the other way round."""
    if roi.multi_coordinates is None:
        return Polygon(roi.coordinates())
    rings = [Polygon(ring) for ring in roi.coordinates(multi=True)]
    filled = rings[0]
    for ring in rings[1:]:
        filled = filled.symmetric_difference(ring)  # what even-odd filling is
    return filled


def check(name, labels, is_stack):
    objects = {(z, label) for z, plane in enumerate(labels) for label in np.unique(plane) if label}
    features = json.loads(Path(f"{name}.geojson").read_text())["features"]
    seen = set()
    for feature in features:
        geometry = shape(feature["geometry"])
        assert geometry.is_valid, (name, shapely.is_valid_reason(geometry))
        z, label = feature["geometry"].get("plane", {}).get("z", 0), int(feature["properties"]["name"])
        assert ("plane" in feature["geometry"]) == is_stack
        assert geometry.area == (labels[z] == label).sum()
        assert np.array_equal(fill(geometry, *labels[z].shape), labels[z] == label)
        seen.add((z, label))
    assert seen == objects and len(features) == len(objects), name
    rois = roifile.roiread(f"{name}.zip")
    seen = set()
    for roi in rois:
        z = max(roi.position, roi.z_position) - 1 if is_stack else 0
        label = int(roi.name.split("-")[-1])
        assert np.array_equal(fill(geometry_of(roi), *labels[z].shape), labels[z] == label), (name, roi.name)
        seen.add((z, label))
    assert seen == objects and len(rois) == len(objects), name


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--gtest_also_run_disabled_tests", "--gtest_filter=Objects.DISABLED_WriteSamples"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "CYTRA_WRITE_SAMPLES": folder})
        names = sorted(Path(folder).glob("[0-9].npy"))
        assert len(names) == 8
        for path in names:
            labels = np.load(path)
            check(path.with_suffix(""), labels.reshape((-1, *labels.shape[-2:])), labels.ndim == 3)
        many = roifile.roiread(f"{folder}/many.zip")
        assert len(many) == (np.load(f"{folder}/many.npy") > 0).sum() == 75000
        assert all(Polygon(roi.coordinates()).area == 1 for roi in many[::1000])
    print("GeoJSON and ImageJ ROIs: as the labels")


if __name__ == "__main__":
    main()
