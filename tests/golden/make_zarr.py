#!/usr/bin/env python3
"""Writes tests/golden/zarr/: small Zarr images and what is in them. Run it twice:

with zarr 2.18:                  v2/ and v2.json
with zarr 3.1 and ome-zarr 0.18: v3/ and v3.json

The value at (t, c, z, y, x) is (13 t + 97 c + 31 z + 7 y + 3 x) mod 251. The JSON has, for each image and selection,
what io::open_image should tell, and the CRC-32 of the pixels (C, Z, Y, X; little-endian).
"""
import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import zarr

HERE = Path(__file__).parent / "zarr"
IS_V3 = int(zarr.__version__.split(".")[0]) >= 3
FOLDER = HERE / ("v3" if IS_V3 else "v2")
cases = []


def values(dtype, t=1, c=1, z=1, y=12, x=17, offset=0):
    t, c, z, y, x = np.ogrid[:t, :c, :z, :y, :x]
    return ((13 * t + 97 * c + 31 * z + 7 * y + 3 * x) % 251 + offset).astype(dtype)


def expect(path, pixels, dtype=None, spacing=(0, 0, 0), names=(), scenes=1, levels=1, timepoints=1, **selection):
    """`pixels`: the selected C, Z, Y, X."""
    pixels = np.ascontiguousarray(pixels, dtype=np.dtype(dtype or pixels.dtype).newbyteorder("<"))
    assert pixels.ndim == 4
    cases.append({"path": path, "selection": selection, "dtype": pixels.dtype.name, "shape": list(pixels.shape),
                  "spacing": list(spacing), "names": list(names), "scenes": scenes, "levels": levels,
                  "timepoints": timepoints, "crc": zlib.crc32(pixels.tobytes())})


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


AXES = {"t": {"name": "t", "type": "time", "unit": "second"}, "c": {"name": "c", "type": "channel"},
        "z": {"name": "z", "type": "space", "unit": "nanometer"},
        "y": {"name": "y", "type": "space", "unit": "micrometer"},
        "x": {"name": "x", "type": "space", "unit": "millimeter"}}


def multiscales(axes, scales, version=None, top=None):
    datasets = [{"path": str(i), "coordinateTransformations": [
        {"type": "scale", "scale": scale}, {"type": "translation", "translation": [0.5] * len(axes)}]}
        for i, scale in enumerate(scales)]
    image = {"axes": [AXES[axis] for axis in axes], "datasets": datasets}
    if version:
        image["version"] = version
    if top:
        image["coordinateTransformations"] = [{"type": "scale", "scale": top}]
    return [image]


def make_v2():
    from numcodecs import LZ4, Blosc, GZip, Zlib, Zstd

    def write(name, array, chunks, **options):
        options.setdefault("compressor", Zstd(1))
        stored = zarr.open_array(str(FOLDER / name), mode="w", shape=array.shape, chunks=chunks, dtype=array.dtype, **options)
        stored[...] = array
        return stored

    def plain(name, array, chunks, dtype=None, **options):
        write(name, array, chunks, **options)
        expect("v2/" + name, array.reshape((1,) * (4 - array.ndim) + array.shape), dtype)

    plain("blosc_lz4_u16", values("u2", z=3)[0, 0], (2, 5, 8), compressor=Blosc("lz4", 5, Blosc.SHUFFLE))
    plain("blosc_zstd_bit_f32", values("f4", z=3)[0, 0], (1, 12, 8), dimension_separator="/",
          compressor=Blosc("zstd", 3, Blosc.BITSHUFFLE))
    plain("blosc_blosclz_u8", values("u1", y=40, x=50)[0, 0, 0], (40, 50), compressor=Blosc("blosclz", 9, Blosc.NOSHUFFLE))
    plain("blosc_lz4hc_i16", values("i2", y=40, x=50)[0, 0, 0], (20, 50), compressor=Blosc("lz4hc", 9, Blosc.SHUFFLE))
    plain("blosc_zlib_f64", values("f8", y=40, x=50)[0, 0, 0], (20, 50), compressor=Blosc("zlib", 9, Blosc.SHUFFLE))
    plain("zlib_i16_big_fortran", values(">i2", z=3, offset=-100)[0, 0], (2, 5, 8), compressor=Zlib(1), order="F")
    plain("gzip_f64_big", values(">f8", c=2, z=3)[0] + 0.5, (1, 2, 12, 8), compressor=GZip(1))
    plain("zstd_u32", values("u4", y=12)[0, 0, 0] + np.uint32(1 << 31), (5, 17), compressor=Zstd(1))
    plain("lz4_i32_fortran", values("i4", c=2, z=3, offset=-7)[0], (2, 1, 6, 9), compressor=LZ4(), order="F", dimension_separator="/")
    plain("none_bool", values("u1")[0, 0, 0] % 3 == 0, (12, 17), "u1", compressor=None)
    plain("i64", values("i8", offset=-3)[0, 0, 0] * 1000000, (8, 8), "i4")
    plain("u64_big", values(">u8")[0, 0, 0] + 4000000000, (8, 8), "u4")
    plain("f16", values("f2")[0, 0, 0] / 7, (8, 8), "f4")
    plain("u32_big_none", values(">u4")[0, 0, 0], (12, 8), compressor=None)
    special = np.array([[np.inf, -np.inf, np.nan, 6e-8], [65504, -6.1e-5, -0.0, 1]], "f2")
    plain("f16_special", special, (2, 4), "f4")
    for name, dtype, fill in [("nan", "f4", np.nan), ("inf", "f8", -np.inf), ("seven", "i2", -7), ("half", "f2", 0.5),
                              ("u64", "u8", 2**32 - 1), ("none", "u2", None)]:
        stored = zarr.open_array(str(FOLDER / f"fill_{name}"), mode="w", shape=(2, 9, 11), chunks=(1, 4, 4), dtype=dtype,
                                 compressor=None, fill_value=fill)
        whole = np.full((2, 9, 11), 0 if fill is None else fill, dtype)
        whole[1, 4:8, 0:4] = values(dtype, y=4, x=4)[0, 0, 0]
        stored[1, 4:8, 0:4] = whole[1, 4:8, 0:4]
        expect(f"v2/fill_{name}", whole[None], {"f2": "f4", "u8": "u4"}.get(dtype))
    series = values("u1", t=2, c=2, z=2, y=5, x=6)
    write("tczyx", series, (1, 1, 2, 5, 6))
    expect("v2/tczyx", series[1], timepoints=2, timepoint=1)
    expect("v2/tczyx", series[0][[1]], timepoints=2, timepoint=0, channels=[1])

    def group(name, attributes):
        put(FOLDER / name / ".zgroup", {"zarr_format": 2})
        put(FOLDER / name / ".zattrs", attributes)

    # Axes and units; both levels of transformations; omero.
    image = values("u2", t=2, c=3, z=2, y=8, x=10)
    omero = {"channels": [{"label": label, "color": "FF0000"} for label in ("DNA", "\u00b5-Tub", "third")]}
    group("ome_tczyx.zarr", {"multiscales": multiscales("tczyx", [[1, 1, 1500, 0.5, 0.00025], [1, 1, 1500, 1, 0.0005]], "0.4"),
                             "omero": omero})
    write("ome_tczyx.zarr/0", image, (1, 2, 1, 8, 8), dimension_separator="/")
    write("ome_tczyx.zarr/1", image[..., ::2, ::2], (1, 1, 1, 4, 5), dimension_separator="/")
    names = ["DNA", "\u00b5-Tub", "third"]
    expect("v2/ome_tczyx.zarr", image[0], spacing=(1.5, 0.5, 0.25), names=names, levels=2, timepoints=2, timepoint=0)
    expect("v2/ome_tczyx.zarr", image[1][[2, 0, 1]], spacing=(1.5, 0.5, 0.25), names=[names[i] for i in (2, 0, 1)],
           levels=2, timepoints=2, timepoint=1, channels=[2, 0, 1])
    expect("v2/ome_tczyx.zarr", image[1, :, :, ::2, ::2], spacing=(1.5, 1, 0.5), names=names, levels=2, timepoints=2,
           timepoint=1, level=1)
    expect("v2/ome_tczyx.zarr/1", image[1, :, :, ::2, ::2], timepoints=2, timepoint=1)
    group("ome_cyx.zarr", {"multiscales": multiscales("cyx", [[1, 2, 0.002]], "0.4", [1, 0.25, 0.25])})
    write("ome_cyx.zarr/0", image[0, :, 0], (1, 8, 10), dimension_separator="/")
    expect("v2/ome_cyx.zarr", image[0, :, [0]].swapaxes(0, 1), spacing=(0, 0.5, 0.5))
    group("ome_v3_axes.zarr", {"multiscales": [{"version": "0.3", "axes": ["t", "y", "x"], "datasets": [{"path": "a/b"}]}]})
    write("ome_v3_axes.zarr/a/b", image[:, 0, 0], (1, 8, 10), dimension_separator="/")
    expect("v2/ome_v3_axes.zarr", image[1, :1, :1], timepoints=2, timepoint=1)
    group("ome_odd_axes.zarr", {"multiscales": [{"version": "0.4", "axes": [
        {"name": axis, "type": "space", "unit": "angstrom"} for axis in "xyz"],
        "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [10000, 20000, 30000]}]}]}]})
    write("ome_odd_axes.zarr/0", image[0, 0], (2, 3, 4), dimension_separator="/")
    expect("v2/ome_odd_axes.zarr", image[0, 0].T[None], spacing=(3, 2, 1))

    # bioformats2raw: with the order in OME, and without.
    for name, order in [("series.zarr", ["1", "0"]), ("numbered.zarr", None)]:
        group(name, {"bioformats2raw.layout": 3})
        group(name + "/OME", {"series": order} if order else {})
        for i in range(2):
            group(f"{name}/{i}", {"multiscales": multiscales("yx", [[1, 0.001]], "0.4")})
            write(f"{name}/{i}/0", image[0, i, 0], (8, 10), dimension_separator="/")
        for scene in range(2):
            which = int(order[scene]) if order else scene
            expect("v2/" + name, image[0, [which], :1], spacing=(0, 1, 1), scenes=2, scene=scene)


def make_v3():
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

    def write(name, array, chunks, **options):
        options.setdefault("compressors", ZstdCodec(level=1))
        stored = zarr.create_array(str(FOLDER / name), shape=array.shape, chunks=chunks, dtype=array.dtype, zarr_format=3,
                                   overwrite=True, **options)
        stored[...] = array
        return stored

    def plain(name, array, chunks, dtype=None, **options):
        write(name, array, chunks, **options)
        expect("v3/" + name, array.reshape((1,) * (4 - array.ndim) + array.shape), dtype)

    plain("zstd_u16", values("u2", z=3)[0, 0], (2, 5, 8))
    plain("gzip_f32_big", values("f4", z=3)[0, 0], (1, 12, 8), compressors=GzipCodec(level=1), serializer=BytesCodec(endian="big"))
    plain("blosc_i16", values("i2", y=40, x=50, offset=-99)[0, 0, 0], (20, 50), compressors=BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle", typesize=2))
    plain("crc_u8", values("u1")[0, 0, 0], (12, 8), compressors=[ZstdCodec(level=1, checksum=True), Crc32cCodec()])
    plain("two_compressions_f64", values("f8")[0, 0, 0], (12, 8), compressors=[GzipCodec(level=1), BloscCodec(cname="zstd", typesize=8)])
    plain("none_bool", values("u1")[0, 0, 0] % 3 == 0, (12, 17), "u1", compressors=None)
    plain("transpose_i32", values("i4", c=2, z=3)[0], (1, 2, 7, 9), filters=[TransposeCodec(order=(2, 0, 3, 1))])
    plain("transpose_twice_u32", values("u4", c=2, z=3)[0], (1, 2, 7, 9), filters=[TransposeCodec(order=(2, 0, 3, 1)), TransposeCodec(order=(1, 2, 0, 3))])
    plain("key_v2_dot", values("u1", z=3)[0, 0], (2, 5, 8), chunk_key_encoding={"name": "v2", "separator": "."})
    plain("key_default_dot", values("u1", z=3)[0, 0], (2, 5, 8), chunk_key_encoding={"name": "default", "separator": "."})
    plain("i64", values("i8", offset=-3)[0, 0, 0] * 1000000, (8, 8), "i4")
    plain("u64", values("u8")[0, 0, 0] + 4000000000, (8, 8), "u4")
    plain("f16", values("f2")[0, 0, 0] / 7, (8, 8), "f4")
    plain("shard_u16", values("u2", z=5, y=20)[0, 0], (2, 5, 8), shards=(4, 10, 16))
    sharding = dict(chunk_shape=(2, 5, 8), codecs=[BytesCodec(endian="big"), GzipCodec(level=1)])
    plain("shard_start_i16", values("i2", z=5, y=20)[0, 0], (4, 10, 16), compressors=None,
          serializer=ShardingCodec(**sharding, index_location="start", index_codecs=[BytesCodec(endian="little")]))
    plain("shard_big_index_u32", values("u4", z=5, y=20)[0, 0], (4, 10, 16), compressors=None,
          serializer=ShardingCodec(**sharding, index_codecs=[BytesCodec(endian="big"), Crc32cCodec()]))
    inner = ShardingCodec(chunk_shape=(1, 5, 4), codecs=[TransposeCodec(order=(2, 1, 0)), BytesCodec(), ZstdCodec(level=1), Crc32cCodec()])
    plain("shard_nested_f32", values("f4", z=5, y=20)[0, 0], (4, 10, 16), compressors=None,
          serializer=ShardingCodec(chunk_shape=(2, 5, 8), codecs=[inner], index_location="start"))
    plain("shard_transposed_u8", values("u1", z=5, y=20)[0, 0], (4, 10, 16), compressors=None, filters=[TransposeCodec(order=(2, 0, 1))],
          serializer=ShardingCodec(chunk_shape=(2, 2, 2), codecs=[BytesCodec(), GzipCodec(level=1)]))
    plain("shard_compressed_u8", values("u1", z=5, y=20)[0, 0], (4, 10, 16), compressors=[GzipCodec(level=1)],
          serializer=ShardingCodec(chunk_shape=(2, 5, 8), codecs=[BytesCodec()]))
    for name, dtype, fill, shards in [("nan", "f4", np.nan, None), ("inf_shard", "f8", -np.inf, (2, 8, 8)),
                                      ("seven_shard", "i2", -7, (1, 8, 8)), ("half", "f2", 0.1, None), ("bool", "?", True, None)]:
        stored = zarr.create_array(str(FOLDER / f"fill_{name}"), shape=(2, 9, 11), chunks=(1, 4, 4), shards=shards, dtype=dtype,
                                   fill_value=fill, overwrite=True, compressors=None)
        whole = np.full((2, 9, 11), fill, dtype)
        whole[1, 4:8, 0:4] = values(dtype, y=4, x=4)[0, 0, 0]
        stored[1, 4:8, 0:4] = whole[1, 4:8, 0:4]
        expect(f"v3/fill_{name}", whole[None], {"f2": "f4", "?": "u1"}.get(dtype))
    write("named_xyz", values("u1", z=3)[0, 0].T, (8, 8, 3), dimension_names=("x", "y", "z"))
    expect("v3/named_xyz", values("u1", z=3)[0])

    # What ome-zarr-py writes: image, labels, plate; 0.4 and 0.5.
    from ome_zarr.format import FormatV04, FormatV05
    from ome_zarr.writer import write_image, write_labels, write_plate_metadata, write_well_metadata
    image = values("u2", c=2, z=3, y=32, x=48)[0]
    sizes = {"scale": {"c": 1, "z": 500, "y": 0.25, "x": 0.00025},
             "axes_units": {"z": "nanometer", "y": "micrometer", "x": "millimeter"}}
    window = {"start": 0, "end": 9, "min": 0, "max": 9}
    omero = {"channels": [{"label": label, "color": "00FF00", "window": window} for label in ("one", "two")]}
    for form, name, zarr_format in [(FormatV04(), "ome_0.4.zarr", 2), (FormatV05(), "ome_0.5.zarr", 3)]:
        group = zarr.open_group(str(FOLDER / name), mode="w", zarr_format=zarr_format)
        write_image(image, group, axes="czyx", fmt=form, scale_factors=[2], storage_options={"chunks": (1, 2, 32, 48)},
                    omero=omero, **sizes)
        labels = (image[:1] % 5).astype("u4")
        write_labels(labels, group, "cells", axes="czyx", fmt=form, scale_factors=[2], **sizes,
                     storage_options={"chunks": (1, 3, 32, 48)})
        opened = zarr.open_group(str(FOLDER / name), mode="r")
        expect("v3/" + name, image, spacing=(0.5, 0.25, 0.25), names=["one", "two"], levels=2)
        expect("v3/" + name, opened["s1"][...], spacing=(0.5, 0.5, 0.5), names=["one", "two"], levels=2, level=1)
        levels = len(list((FOLDER / name / "labels/cells").glob("s*")))  # more than were asked for
        expect(f"v3/{name}/labels/cells", labels, spacing=(0.5, 0.25, 0.25), levels=levels)
        plate = name.replace("ome", "plate")
        group = zarr.open_group(str(FOLDER / plate), mode="w", zarr_format=zarr_format)
        write_plate_metadata(group, ["A", "B"], ["1"], ["A/1", "B/1"], fmt=form)
        fields = {}
        for w, well in enumerate(("A", "B")):
            node = group.require_group(f"{well}/1")
            write_well_metadata(node, ["0", "1"], fmt=form)
            for field in range(2):
                pixels = values("u1", y=10, x=11, offset=10 * w + field)[0, 0, 0]
                write_image(pixels, node.require_group(str(field)), axes="yx", fmt=form, scale_factors=[], storage_options={"chunks": (10, 11)})
                fields[w, field] = pixels[None, None]
        for scene in range(4):
            expect("v3/" + plate, fields[divmod(scene, 2)], scenes=4, scene=scene)
        expect(f"v3/{plate}/B/1", fields[1, 1], scenes=2, scene=1)
        expect(f"v3/{plate}/B/1/0", fields[1, 0])


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (make_v3 if IS_V3 else make_v2)()
    lines = ",\n".join(json.dumps(case) for case in cases)
    FOLDER.with_suffix(".json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
