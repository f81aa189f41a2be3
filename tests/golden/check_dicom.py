#!/usr/bin/env python3
"""check_dicom.py TEST_IO: makes series with pydicom, has the program test_io write a segmentation of each, whose labels are the values
of the series, and reads them with highdicom: pixels by source and as a volume, affine, names, references. Runs as a test by read_back.sh."""
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import highdicom
import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian

if not (Path(sys.argv[1]).parents[1] / "lib/libcytra_dicom.so").exists():
    print("DICOM is not built")
    sys.exit(77)
CT, ENHANCED, XRAY = "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1", "1.2.840.10008.5.1.4.1.1.1"
a, b = np.deg2rad(20), np.deg2rad(10)
OBLIQUE = [float(f"{v:.9f}") for v in (np.cos(a), np.sin(a), 0, -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), np.sin(b))]
AXIAL = [1, 0, 0, 0, 1, 0]
TISSUE = highdicom.sr.CodedConcept("85756007", "SCT", "Tissue")
count = 0


def check(condition, *what):
    if not condition:
        raise SystemExit(f"wrong: {what}")


def volume(planes=6, rows=7, columns=5, labels=4):
    """Labels, some planes without any, some without one."""
    array = np.random.default_rng(1).integers(0, labels, (planes, rows, columns)).astype("u2")
    if planes > 3:
        array[[0, 3]] = 0
        array[2][array[2] == 2] = 0
    return array


def dataset(name, sop_class=CT, **more):
    global count
    count += 1
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID, ds.Modality = sop_class, f"1.2.3.4.{count}", "CT"
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = "1.2.3.8", f"1.2.3.9.{name.__hash__() % 10 ** 9}", "1.2.3.7"
    ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = "Dupont^Anne", "A 1", "19700203", "F"
    ds.StudyDate, ds.StudyTime, ds.StudyID, ds.AccessionNumber, ds.ReferringPhysicianName = "20240506", "070809.5", "7", "9", ""
    ds.PositionReferenceIndicator, ds.SamplesPerPixel, ds.PhotometricInterpretation = "", 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 0
    for key, value in more.items():
        setattr(ds, key, value)
    return ds


def save(path, ds, pixels, syntax=ExplicitVRLittleEndian):
    ds.Rows, ds.Columns = pixels.shape[-2:]
    if pixels.ndim == 3:
        ds.NumberOfFrames = len(pixels)
    ds.PixelData = pixels.tobytes() + b"\0" * (pixels.nbytes % 2)
    ds["PixelData"].VR = "OW"
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
    path.parent.mkdir(exist_ok=True)
    ds.save_as(path, enforce_file_format=True, little_endian=True, implicit_vr=syntax == ImplicitVRLittleEndian)


def series(folder, array, orientation, heights=None, down=False, **more):
    """A file for each plane, numbered upwards or downwards; every second one in implicit VR."""
    normal = np.cross(orientation[:3], orientation[3:])
    for z, pixels in enumerate(array):
        height = 2.5 * z if heights is None else heights[z]
        number = len(array) - z if down else z + 1
        place = [float(f"{v:.6f}") for v in np.array([-12.5, 30.25, 7]) + height * normal]
        ds = dataset(folder.name, PixelSpacing=[0.7, 0.5], SliceThickness=9, ImageOrientationPatient=list(orientation),
                     ImagePositionPatient=place, InstanceNumber=number, **more)
        save(folder / f"{number:03d}.dcm", ds, pixels, ImplicitVRLittleEndian if z % 2 else ExplicitVRLittleEndian)


def enhanced(path, array):
    """Frames in another order than their places."""
    ds = dataset(path.name, ENHANCED, InstanceNumber=1)
    shared, measures, plane, frames = Dataset(), Dataset(), Dataset(), []
    measures.PixelSpacing, measures.SliceThickness, plane.ImageOrientationPatient = [0.7, 0.5], 1.5, OBLIQUE
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [plane]
    order = [2, 0, 3, 1, 5, 4]
    for z in order:
        position, frame = Dataset(), Dataset()
        position.ImagePositionPatient = [float(f"{v:.6f}") for v in 1.5 * z * np.cross(OBLIQUE[:3], OBLIQUE[3:])]
        frame.PlanePositionSequence = [position]
        frames.append(frame)
    ds.SharedFunctionalGroupsSequence, ds.PerFrameFunctionalGroupsSequence = [shared], frames
    save(path, ds, array[order])


def make(folder):
    for i, (first, second) in enumerate(itertools.permutations(np.eye(3), 2)):
        for signs in itertools.product((1, -1), repeat=2):
            for down in (False, True):
                name = f"turned_{i}{signs[0]:+}{signs[1]:+}{'_down' if down else ''}"
                series(folder / name, volume(), [*first * signs[0], *second * signs[1]], down=down)
    series(folder / "oblique", volume(), OBLIQUE)
    series(folder / "oblique_gaps", volume(), OBLIQUE, heights=[0, 2, 4.6, 7, 9, 11.8])
    series(folder / "hundred", volume(12, 33, 31, 101), AXIAL)
    series(folder / "one", volume(1), OBLIQUE)
    series(folder / "empty", np.zeros((3, 7, 5), "u2"), AXIAL)
    series(folder / "plane", volume(), OBLIQUE)
    series(folder / "channels", volume(labels=8), OBLIQUE)
    series(folder / "objects", volume(labels=300), OBLIQUE)
    series(folder / "unnamed", volume(), OBLIQUE)
    series(folder / "latin", volume(), OBLIQUE, SpecificCharacterSet="ISO_IR 100", PatientName="M\u00fcller^J\u00f6rg")
    for t in range(2):
        array = volume(labels=3) + np.uint16(t)
        for z in range(6):
            ds = dataset("times", PixelSpacing=[0.7, 0.5], ImageOrientationPatient=AXIAL, ImagePositionPatient=[0, 0, 3.0 * z],
                         InstanceNumber=2 * z + t)
            save(folder / "times" / f"{t}{z}.dcm", ds, array[z])
    enhanced(folder / "enhanced.dcm", volume())
    ds = dataset("xray", XRAY, InstanceNumber=1)
    save(folder / "xray.dcm", ds, volume(1)[0])


def sources_of(path):
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    sources = [pydicom.dcmread(file) for file in files]
    if path.name == "plane":
        sources = [ds for ds in sources if ds.InstanceNumber == 2]
    if path.name == "times":
        sources = [ds for ds in sources if ds.InstanceNumber % 2]
    return sources


def expect(path):
    name = path.name.split(".")[0]
    sources = sources_of(path)
    seg = highdicom.seg.segread(f"{path}.seg.dcm")
    first = sources[0]
    for key in ("PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyDate", "StudyTime", "StudyID", "AccessionNumber"):
        check(seg[key].value == first[key].value, path, key)
    check(str(seg.PatientName) == str(first.PatientName), path, seg.PatientName)
    check(seg.SeriesInstanceUID != first.SeriesInstanceUID and seg.SOPInstanceUID.startswith("2.25."), path)
    check(seg.segmentation_type == highdicom.seg.SegmentationTypeValues.BINARY, path)
    (referenced,) = seg.ReferencedSeriesSequence
    uids = [str(item.ReferencedSOPInstanceUID) for item in referenced.ReferencedInstanceSequence]
    check(referenced.SeriesInstanceUID == first.SeriesInstanceUID and sorted(uids) == sorted(str(ds.SOPInstanceUID) for ds in sources), path)
    top = max(int(ds.pixel_array.max()) for ds in sources)
    names = [f"t\u00eate {i}" for i in (range(3) if name == "channels" else range(1, max(top, 1) + 1))]
    if name in ("objects", "unnamed"):
        names = [f"{'object' if name == 'objects' else 'class'}_{i}" for i in range(1, top + 1)]
    segments = [seg.get_segment_description(i) for i in seg.segment_numbers]
    check([segment.segment_label for segment in segments] == names, path, [segment.segment_label for segment in segments])
    check(seg.segment_numbers == range(1, len(names) + 1) or list(seg.segment_numbers) == list(range(1, len(names) + 1)), path)
    for segment in segments:
        check(segment.algorithm_type.value == "AUTOMATIC" and segment.SegmentAlgorithmName == "Cytra", path)
        check(segment.segmented_property_type == segment.segmented_property_category == TISSUE, path)
    by_source = {}
    for ds in sources:
        if name == "enhanced":
            pixels = ds.pixel_array
            got = seg.get_pixels_by_source_frame(ds.SOPInstanceUID, list(range(1, len(pixels) + 1)), assert_missing_frames_are_empty=True)
        else:
            pixels = ds.pixel_array[None]
            got = seg.get_pixels_by_source_instance([ds.SOPInstanceUID], assert_missing_frames_are_empty=True)
        if name == "channels":
            wanted = np.stack([pixels >> c & 1 for c in range(3)], -1)
        else:
            wanted = pixels[..., None] == np.arange(1, len(names) + 1)
        check(np.array_equal(got, wanted), path, "pixels")
        by_source[str(ds.SOPInstanceUID)] = pixels
    if name == "xray":
        return
    check(seg.FrameOfReferenceUID == first.FrameOfReferenceUID, path)
    if name == "enhanced":
        check_volume(path, seg, highdicom.imread(path).get_volume(apply_real_world_transform=False), names)
    elif "gaps" in name:
        for frame in seg.PerFrameFunctionalGroupsSequence:
            uid = frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
            (ds,) = [ds for ds in sources if ds.SOPInstanceUID == uid]
            check(frame.PlanePositionSequence[0].ImagePositionPatient == ds.ImagePositionPatient, path)
        check(seg.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient == OBLIQUE, path)
    elif name not in ("one", "plane"):
        check_volume(path, seg, highdicom.get_volume_from_series(sources), names)


def check_volume(path, seg, source, names):
    """The segments lie in the voxels of the source, as highdicom places both."""
    got = seg.get_volume(allow_missing_positions=True)
    between = np.linalg.inv(source.affine) @ got.affine
    check(np.allclose(between, np.round(between), atol=1e-5), path, between)
    index = np.indices(got.spatial_shape).reshape(3, -1)
    at = np.round(between[:3, :3] @ index + between[:3, 3:]).astype(int)
    values = source.array[tuple(at)].reshape(got.spatial_shape).astype(int)
    numbers = np.arange(len(names))
    wanted = values[..., None] >> numbers & 1 if path.name == "channels" else values[..., None] == numbers + 1
    check(np.array_equal(got.array, wanted), path, "volume")
    check((got.array.sum() == wanted.sum()) and wanted.sum() == (source.array > 0).sum() or path.name == "channels", path, "all of it")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        subprocess.run([sys.argv[1], "--gtest_also_run_disabled_tests", "--gtest_filter=DicomSegmentation.DISABLED_WriteSamples"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "CYTRA_WRITE_SAMPLES": name})
        paths = sorted(path for path in folder.iterdir() if not path.name.endswith(".seg.dcm"))
        check(len(paths) == 61, len(paths), "series")
        for path in paths:
            expect(path)
        print(len(paths), "segmentations are right")


if __name__ == "__main__":
    main()
