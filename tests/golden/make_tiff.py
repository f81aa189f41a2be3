#!/usr/bin/env python3
"""Writes tests/golden/tiff/*.tif; needs tifffile and imagecodecs.

The value at (c, z, y, x) is (97 c + 31 z + 7 y + 3 x) mod 251; tests/io/tiff/tiff_test.cpp computes the same.
"""
from pathlib import Path

import numpy as np
import tifffile

FOLDER = Path(__file__).parent / "tiff"


def values(dtype, c=1, z=1, y=12, x=17):
    c, z, y, x = np.ogrid[:c, :z, :y, :x]
    return ((97 * c + 31 * z + 7 * y + 3 * x) % 251).astype(dtype)


def write(name, array, **options):
    tifffile.imwrite(FOLDER / name, array, **options)


def main():
    FOLDER.mkdir(exist_ok=True)
    plain = {"metadata": None}
    write("lzw_u8.tif", values("u1")[0, 0], compression="lzw", **plain)
    write("deflate_predictor_u16.tif", values("u2")[0, 0], compression="zlib", predictor=True, rowsperstrip=5, **plain)
    write("tiled_i16_zyx.tif", values("i2", z=2, y=20)[0] - 100, tile=(16, 16), compression="zlib")
    write("big_endian_f32_bigtiff.tif", values("f4", z=2)[0] + 0.5, byteorder=">", bigtiff=True, compression="zlib", predictor=True, **plain)
    ome = {"axes": "CZYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 1500, "PhysicalSizeXUnit": "µm",
           "PhysicalSizeYUnit": "µm", "PhysicalSizeZUnit": "nm", "Channel": {"Name": ["DNA & more", "Aktin"]}}
    write("ome_czyx_u16.ome.tif", values("u2", c=2, z=3, y=6, x=8), metadata=ome, compression="zlib")
    write("imagej_zcyx_u16.tif", values("u2", c=2, z=3, y=6, x=8).swapaxes(0, 1), imagej=True, resolution=(4, 2),
          metadata={"axes": "ZCYX", "spacing": 1.5, "unit": "um"})
    write("rgb_u8.tif", np.moveaxis(values("u1", c=3)[:, 0], 0, -1), photometric="rgb", compression="packbits")
    write("rgb_planar_u8.tif", values("u1", c=3)[:, 0], photometric="rgb", planarconfig="separate", compression="zlib")
    write("shaped_zcyx_u32.tif", values("u4", c=2, z=3, y=6, x=8).swapaxes(0, 1), metadata={"axes": "ZCYX"}, compression="zlib")


if __name__ == "__main__":
    main()
