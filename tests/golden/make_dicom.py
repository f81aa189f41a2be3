#!/usr/bin/env python3
"""make_dicom.py [REAL_FOLDER]: writes tests/golden/dicom/, small DICOM files and series as pydicom and its codecs write
them, and cases.json: what pydicom reads of each (the values scaled by apply_modality_lut), and where MONAI's PydicomReader
puts them. REAL_FOLDER holds pydicom's own test files; they are not copied, only what is in them is noted.

Needs pydicom, pylibjpeg with its three plugins, pyjpegls, imagecodecs, monai.
"""
import json
import shutil
import sys
import warnings
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
from monai.data import PydicomReader
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.dataelem import DataElement
from pydicom.encaps import encapsulate
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_data_element
from pydicom.pixels import apply_modality_lut
from pydicom.sequence import Sequence
from pydicom.uid import (DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian,
                         JPEG2000Lossless, JPEGBaseline8Bit, JPEGLosslessSV1, JPEGLSLossless, RLELossless)

warnings.simplefilter("ignore")
FOLDER = Path(__file__).parent / "dicom"
CT = "1.2.840.10008.5.1.4.1.1.2"
cases = []
ORIENTATION = {"axial": [1, 0, 0, 0, 1, 0], "sagittal": [0, 1, 0, 0, 0, -1]}
a, b = np.deg2rad(20), np.deg2rad(10)
ORIENTATION["oblique"] = [float(f"{v:.9f}") for v in (np.cos(a), np.sin(a), 0, -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), np.sin(b))]


def values(dtype, shape, top=251):
    grid = np.indices(shape)
    weights = [149, 31, 7, 3, 97][-len(shape):]
    return (sum(w * g for w, g in zip(weights, grid)) % top).astype(dtype)


def dataset(array, stored=None, **more):
    """array: (rows, columns), (frames, rows, columns) or with RGB behind"""
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID = CT, "1.2.3.4." + str(len(cases) + 1) + str(more.get("InstanceNumber", ""))
    ds.SeriesInstanceUID, ds.SeriesDescription, ds.StudyInstanceUID, ds.Modality = "1.2.3.9", "a test", "1.2.3.8", "CT"
    ds.PatientName, ds.PatientID = "Nobody", "0"
    colour = array.shape[-1] == 3
    rows = array.shape[:-1] if colour else array.shape
    ds.Rows, ds.Columns = rows[-2:]
    if len(rows) > 2:
        ds.NumberOfFrames = rows[0]
    ds.SamplesPerPixel = 3 if colour else 1
    ds.PhotometricInterpretation = "RGB" if colour else "MONOCHROME2"
    if colour:
        ds.PlanarConfiguration = 0
    ds.BitsAllocated = 8 * array.itemsize
    ds.BitsStored = stored or ds.BitsAllocated
    ds.HighBit, ds.PixelRepresentation = ds.BitsStored - 1, int(array.dtype.kind == "i")
    for key, value in more.items():
        setattr(ds, key, value)
    return ds


def save(name, ds, pixels, syntax=ExplicitVRLittleEndian, encoded=None):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
    if encoded is not None:
        ds.PixelData = encapsulate(encoded)
        ds["PixelData"].VR = "OB"
        ds["PixelData"].is_undefined_length = True
    else:
        order = ">" if syntax == ExplicitVRBigEndian else "<"
        data = pixels if isinstance(pixels, bytes) else pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
        ds.PixelData = data + b"\0" * (len(data) % 2)
        ds["PixelData"].VR = "OB" if ds.BitsAllocated <= 8 else "OW"
    little, implicit = syntax != ExplicitVRBigEndian, syntax == ImplicitVRLittleEndian
    ds.save_as(path, enforce_file_format=True, little_endian=little, implicit_vr=implicit) if not encoded else \
        ds.save_as(path, enforce_file_format=True)
    return path


def scaled(ds, array):
    """The values, as the smallest integers that hold the scale of all stored ones; else float32."""
    slope, offset = float(ds.get("RescaleSlope", 1)), float(ds.get("RescaleIntercept", 0))
    plain = array.dtype.newbyteorder("=")
    if slope == 1 and offset == 0:
        return array.astype(plain)
    lut = apply_modality_lut(array, ds)
    if slope % 1 or offset % 1:
        return lut.astype("f4")
    bits, signed = ds.BitsStored, ds.PixelRepresentation
    ends = [-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1]
    ends += [slope * e + offset for e in ends]
    for dtype in ("i2", "u2", "i4"):
        if np.iinfo(dtype).min <= min(ends) and max(ends) <= np.iinfo(dtype).max:
            return lut.astype(dtype)
    return lut.astype("f4")


def czyx(ds, array):
    """C Z Y X of pydicom's (frames) rows columns (samples)"""
    if ds.SamplesPerPixel == 3:
        array = np.moveaxis(array, -1, 0)
        return array[:, None] if array.ndim == 3 else array
    return array[None, None] if array.ndim == 2 else array[None]


def monai_affine(path):
    """Voxel (x, y, z) to RAS; MONAI's array is (x, y, z), too, with swap_ij."""
    reader = PydicomReader()
    _, meta = reader.get_data(reader.read(str(path)))
    return np.asarray(meta["affine"], "f8")


def case(name, array, affine=None, spacing=None, **more):
    array = np.ascontiguousarray(array)
    array = array.astype(array.dtype.newbyteorder("<"))
    entry = {"file": name, "dtype": array.dtype.name, "shape": array.shape, "crc32": zlib.crc32(array.tobytes()),
             "middle": float(array.reshape(-1)[array.size // 2])}
    if affine is not None:
        entry["affine"] = np.asarray(affine, "f8")[:3].ravel().tolist()
    if spacing is not None:
        entry["spacing_um"] = [float(f"{1000 * s:.9g}") for s in spacing]
    cases.append({**entry, **more})


def single(name, array, ds, syntax=ExplicitVRLittleEndian, encoded=None, pixels=None, **more):
    path = save(name, ds, array if pixels is None else pixels, syntax, encoded)
    read = pydicom.dcmread(path)
    case(name, czyx(read, scaled(read, read.pixel_array)), **more)


def singles():
    signed, wide = values("i2", (11, 14), 3000) - 900, values("u2", (11, 14), 60000)
    for short, syntax in [("implicit", ImplicitVRLittleEndian), ("explicit", ExplicitVRLittleEndian),
                          ("big", ExplicitVRBigEndian), ("deflated", DeflatedExplicitVRLittleEndian)]:
        single(f"{short}.dcm", signed, dataset(signed, RescaleSlope="1", RescaleIntercept="-1024"), syntax)
        bytes8 = values("u1", (2, 7, 9))
        single(f"{short}_u8_odd.dcm", bytes8, dataset(bytes8), syntax)
        rgb = values("u1", (6, 7, 3))
        single(f"{short}_rgb.dcm", rgb, dataset(rgb), syntax)
    single("i8.dcm", values("i1", (5, 6), 120) - 60, dataset(values("i1", (5, 6))))
    single("u32.dcm", values("u4", (5, 6)) * 10 ** 7, dataset(values("u4", (5, 6))))
    single("u12.dcm", values("u2", (9, 8), 4096), dataset(wide[:9, :8], 12, RescaleSlope="2", RescaleIntercept="-1024"))
    single("i12.dcm", (values("i2", (9, 8), 4096) - 2048), dataset(signed[:9, :8], 12))
    single("offset_needs_32_bits.dcm", wide, dataset(wide, RescaleSlope="1", RescaleIntercept="-1024"))
    single("fraction.dcm", wide, dataset(wide, RescaleSlope="0.25", RescaleIntercept="-3.5"))
    single("inverted.dcm", values("u1", (5, 6)), dataset(values("u1", (5, 6)), PhotometricInterpretation="MONOCHROME1"))
    palette = dataset(values("u1", (5, 6), 4), PhotometricInterpretation="PALETTE COLOR")
    for colour in ("Red", "Green", "Blue"):
        setattr(palette, f"{colour}PaletteColorLookupTableDescriptor", [4, 0, 8])
        setattr(palette, f"{colour}PaletteColorLookupTableData", b"\1\2\3\4")
    single("palette.dcm", values("u1", (5, 6), 4), palette)
    rgb = values("u1", (6, 8, 3))
    single("planar.dcm", rgb, dataset(rgb, PlanarConfiguration=1), pixels=np.moveaxis(rgb, -1, 0).copy())
    single("ybr_full.dcm", rgb, dataset(rgb, PhotometricInterpretation="YBR_FULL"))
    half = np.stack([rgb[:, ::2, 0], rgb[:, 1::2, 0], rgb[:, ::2, 1], rgb[:, ::2, 2]], -1)
    single("ybr_422.dcm", rgb, dataset(rgb, PhotometricInterpretation="YBR_FULL_422"), pixels=half.copy())
    bits = values("u1", (3, 5, 7), 2)
    single("bits.dcm", bits, dataset(bits, BitsAllocated=1, BitsStored=1, HighBit=0),
           pixels=np.packbits(bits.ravel(), bitorder="little").tobytes())
    cine = values("u1", (4, 6, 5))
    path = save("cine.dcm", dataset(cine, FrameTime="40", FrameIncrementPointer=0x00181063), cine)
    for t in range(4):
        case("cine.dcm", pydicom.dcmread(path).pixel_array[t][None, None], timepoint=t, timepoints=4)


def compressed():
    images = {"u8": values("u1", (3, 33, 34)), "u16": values("u2", (2, 33, 34), 60000), "i16": values("i2", (33, 34), 3000) - 900,
              "u12": values("u2", (33, 34), 4096), "rgb": values("u1", (2, 33, 34, 3))}
    for name, array in images.items():
        stored = 12 if name == "u12" else None
        for short, syntax in [("rle", RLELossless), ("jls", JPEGLSLossless), ("j2k", JPEG2000Lossless)]:
            ds = dataset(array, stored)
            ds.PixelData = array.tobytes()
            ds.file_meta = FileMetaDataset()
            ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
            ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = CT, ds.SOPInstanceUID
            ds.compress(syntax, generate_instance_uid=False)
            ds.save_as(FOLDER / f"{short}_{name}.dcm", enforce_file_format=True)
            read = pydicom.dcmread(FOLDER / f"{short}_{name}.dcm")
            assert (read.pixel_array == array).all()
            case(f"{short}_{name}.dcm", czyx(read, read.pixel_array))
        if name in ("i16",):
            continue
        frames = array if array.ndim == (4 if name == "rgb" else 3) else array[None]
        lossless = [imagecodecs.ljpeg_encode(f, bitspersample=stored or 8 * f.itemsize) for f in frames] if name != "rgb" else None
        if lossless:
            single(f"jpeg_lossless_{name}.dcm", array, dataset(array, stored), JPEGLosslessSV1, lossless)
    grey = (np.indices((16, 24)).sum(0) * 5).astype("u1")
    single("jpeg_grey.dcm", grey, dataset(grey), JPEGBaseline8Bit, [imagecodecs.jpeg8_encode(grey, 90)], tolerance=1)
    colour = np.stack([grey, grey[::-1], grey[:, ::-1]], -1).copy()
    single("jpeg_ybr.dcm", colour, dataset(colour, PhotometricInterpretation="YBR_FULL"), JPEGBaseline8Bit,
           [imagecodecs.jpeg8_encode(colour, 90, subsampling="444")], tolerance=2)


def series():
    rng = np.random.default_rng(3)
    for name, orientation, gap in [("axial", "axial", 2.5), ("sagittal", "sagittal", 1.25), ("oblique", "oblique", 3.0)]:
        volume, o = values("i2", (6, 9, 7), 2000), ORIENTATION[orientation]
        normal = np.cross(o[:3], o[3:])
        names = rng.permutation(6)
        for z in range(6):
            position = [f"{v:.6f}" for v in np.array([-12.5, 30.25, 7]) + z * gap * normal]
            ds = dataset(volume[z], RescaleSlope="1", RescaleIntercept="-1000", PixelSpacing=[0.7, 0.5], SliceThickness="9",
                         ImageOrientationPatient=o, ImagePositionPatient=position, InstanceNumber=z + 1)
            save(f"{name}/IM{names[z]:03d}", ds, volume[z], ImplicitVRLittleEndian if z % 2 else ExplicitVRLittleEndian)
        slices = sorted((pydicom.dcmread(p) for p in (FOLDER / name).iterdir()),
                        key=lambda s: np.dot(normal, [float(v) for v in s.ImagePositionPatient]))
        array = np.stack([scaled(s, s.pixel_array) for s in slices])[None]
        case(name, array, monai_affine(FOLDER / name), [gap, 0.7, 0.5])
    (FOLDER / "axial" / "LICENSE.txt").write_text("not an image\n")
    # Two series and three time points of one of them
    for series, times in (("1.2.3.1", 1), ("1.2.3.2", 3)):
        volume = values("u1", (times, 2, 5, 4))
        for t in range(times):
            for z in range(2):
                ds = dataset(volume[t, z], SeriesInstanceUID=series, SeriesDescription=f"times {times}", PixelSpacing=[1, 1],
                             ImageOrientationPatient=ORIENTATION["axial"], ImagePositionPatient=[0, 0, 10 - z],
                             InstanceNumber=1 + z * times + t)
                save(f"two_series/{series}_{t}{z}.dcm", ds, volume[t, z])
        more = {"timepoints": times} if times > 1 else {}
        for t in range(times):
            case("two_series", volume[t, ::-1][None], [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 9], [0, 0, 0, 1]], [1, 1, 1],
                 scene=int(series[-1]) - 1, scenes=2, **(more | {"timepoint": t} if more else {}))


def enhanced_dataset():
    volume = values("u2", (4, 6, 5), 4000)
    ds = dataset(volume)
    del ds.SeriesDescription
    shared, frames = Dataset(), []
    measures, plane = Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.3, 0.4], "5"
    plane.ImageOrientationPatient = ORIENTATION["oblique"]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = Sequence([measures]), Sequence([plane])
    o = ORIENTATION["oblique"]
    normal, order = np.cross(o[:3], o[3:]), [2, 0, 3, 1]  # places of the frames
    for z in order:
        position, scale, frame = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [f"{v:.6f}" for v in np.array([1, 2, 3]) + 1.5 * z * normal]
        scale.RescaleSlope, scale.RescaleIntercept, scale.RescaleType = "0.5", str(z), "US"
        frame.PlanePositionSequence, frame.PixelValueTransformationSequence = Sequence([position]), Sequence([scale])
        frames.append(frame)
    ds.SharedFunctionalGroupsSequence, ds.PerFrameFunctionalGroupsSequence = Sequence([shared]), Sequence(frames)
    return ds, volume, order


def enhanced_case(name, ds, volume, order, syntax):
    o = ORIENTATION["oblique"]
    read = pydicom.dcmread(save(name, ds, volume, syntax)).pixel_array
    sorted_ = np.stack([read[order.index(z)] * 0.5 + z for z in range(4)]).astype("f4")[None]
    rows, columns = np.array(o[:3]) * 0.4, np.array(o[3:]) * 0.3
    affine = np.diag([-1.0, -1, 1]) @ np.column_stack([rows, columns, 1.5 * np.cross(o[:3], o[3:]), [1, 2, 3]])
    case(name, sorted_, affine, [1.5, 0.3, 0.4])


def enhanced():
    ds, volume, order = enhanced_dataset()
    for short, syntax in (("explicit", ExplicitVRLittleEndian), ("implicit", ImplicitVRLittleEndian)):
        enhanced_case(f"enhanced_{short}.dcm", ds, volume, order, syntax)


def as_unknown(ds, *keywords, undefined=False):
    """The type UN, as a program writes what it does not know: the value as in implicit VR, little-endian."""
    for keyword in keywords:
        if keyword not in ds:
            continue
        buffer = DicomBytesIO()
        buffer.is_little_endian, buffer.is_implicit_VR = True, True
        write_data_element(buffer, ds[keyword])
        pydicom.config.replace_un_with_known_vr = False
        ds[keyword] = DataElement(ds[keyword].tag, "UN", buffer.getvalue()[8:])
        pydicom.config.replace_un_with_known_vr = True
        ds[keyword].is_undefined_length = undefined
    return ds


PLACE = ("RescaleSlope", "RescaleIntercept", "PixelSpacing", "ImagePositionPatient", "ImageOrientationPatient", "SliceThickness")


def unknown():
    array, o = values("i2", (11, 14), 3000) - 900, ORIENTATION["oblique"]
    normal = np.cross(o[:3], o[3:])
    affine = np.diag([-1.0, -1, 1]) @ np.column_stack([np.array(o[:3]) * 0.5, np.array(o[3:]) * 0.7, 3 * normal, [1, 2, 3]])
    facts = {"RescaleSlope": "2", "RescaleIntercept": "-1000", "PixelSpacing": [0.7, 0.5], "SliceThickness": "3",
             "ImageOrientationPatient": o, "ImagePositionPatient": [1, 2, 3]}
    for name, syntax, more in [("un", ExplicitVRLittleEndian, ("Rows", "Columns", "BitsStored", "NumberOfFrames")),
                               ("un_big", ExplicitVRBigEndian, ()), ("un_deflated", DeflatedExplicitVRLittleEndian, ())]:
        single(f"{name}.dcm", array, as_unknown(dataset(array, **facts), *PLACE, *more), syntax, affine=affine,
               spacing=[3, 0.7, 0.5])
    ds = as_unknown(dataset(array, **facts), *PLACE)
    ds.PixelData = array.tobytes()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = CT, ds.SOPInstanceUID
    ds.compress(RLELossless, generate_instance_uid=False)
    ds.save_as(FOLDER / "un_rle.dcm", enforce_file_format=True)
    read = pydicom.dcmread(FOLDER / "un_rle.dcm")
    case("un_rle.dcm", czyx(read, scaled(read, read.pixel_array)), affine, [3, 0.7, 0.5])
    for length in ("defined", "undefined"):
        ds, volume, order = enhanced_dataset()
        as_unknown(ds, "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence", undefined=length == "undefined")
        enhanced_case(f"un_enhanced_{length}.dcm", ds, volume, order, ExplicitVRLittleEndian)


def doses():
    """Frames that lie where GridFrameOffsetVector says, relative to the first one or at their z."""
    volume = values("u4", (5, 4, 6)) * 1000
    for name, o, offsets in [("dose_relative", ORIENTATION["oblique"], [0, 3, 6, 9, 12]),
                             ("dose_down", ORIENTATION["axial"], [0, -2.5, -5, -7.5, -10]),
                             ("dose_absolute", ORIENTATION["axial"], [-40, -37.5, -35, -32.5, -30])]:
        position = np.array([1.0, 2, -40])
        step = np.cross(o[:3], o[3:]) if offsets[0] == 0 else np.array([0, 0, 1.0])
        ds = dataset(volume, PixelSpacing=[0.7, 0.5], ImageOrientationPatient=o, ImagePositionPatient=position.tolist(),
                     GridFrameOffsetVector=offsets, FrameIncrementPointer=0x3004000C, DoseGridScaling="0.001")
        save(f"{name}.dcm", ds, volume)
        read = pydicom.dcmread(FOLDER / f"{name}.dcm").pixel_array
        along = np.sign(offsets[1] - offsets[0])
        first = position + step * (min(offsets) - offsets[0])
        gap = abs(offsets[1] - offsets[0])
        affine = np.diag([-1.0, -1, 1]) @ np.column_stack([np.array(o[:3]) * 0.5, np.array(o[3:]) * 0.7, gap * step, first])
        case(f"{name}.dcm", read[::int(along)][None], affine, [gap, 0.7, 0.5])


def bare():
    """Without a preamble, and without file meta information, too; nothing but pydicom's force reads these."""
    array = values("i2", (11, 14), 3000) - 900
    for name, implicit, little in [("implicit", True, True), ("explicit", False, True), ("big", False, False)]:
        ds = dataset(array, RescaleSlope="1", RescaleIntercept="-1024")
        ds.PixelData = array.astype("<i2" if little else ">i2").tobytes()
        ds["PixelData"].VR = "OW"
        ds.save_as(FOLDER / f"bare_{name}.dcm", enforce_file_format=False, implicit_vr=implicit, little_endian=little)
        read = pydicom.dcmread(FOLDER / f"bare_{name}.dcm", force=True)
        read.file_meta.TransferSyntaxUID = [ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian][implicit + little]
        case(f"bare_{name}.dcm", czyx(read, scaled(read, read.pixel_array)))
    whole = (FOLDER / "explicit.dcm").read_bytes()
    (FOLDER / "no_preamble.dcm").write_bytes(whole[132:])
    read = pydicom.dcmread(FOLDER / "no_preamble.dcm", force=True)
    case("no_preamble.dcm", czyx(read, scaled(read, read.pixel_array)))


def real(folder):
    for path in sorted(Path(folder).glob("*.dcm")):
        read = pydicom.dcmread(path)
        array = czyx(read, scaled(read, read.pixel_array))
        cases.append({"real": True})
        case(path.name, array, real=True)
        cases.pop(-2)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    singles()
    compressed()
    series()
    enhanced()
    unknown()
    doses()
    bare()
    if len(sys.argv) > 1:
        real(sys.argv[1])
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
