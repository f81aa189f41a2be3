#!/usr/bin/env python3
"""Writes geometry.safetensors: MONAI's transforms of two images that have affines (and sizes) of their own; and geometry/*.nii:
nibabel's files with each combination of forms and units; and pairs of an image and masks in other orders and directions of axes, as
NIfTI and as a DICOM series with a converter's mask, with models/identity.ts, which finds the mask in the image.

    python tests/golden/make_geometry.py [--output FOLDER]      (needs benchmarks/requirements.txt)

Each case has "steps", a list of {"transform", "options"}, the affines of both keys, image and label, before ("affine_KEY") and after
("affine_KEY_out"), in make_spatial.py's form, and the label after.
"""
import argparse
from pathlib import Path

import monai.transforms as mt
import nibabel
import numpy as np
import pydicom
import torch
from make_golden import Golden
from make_spatial import numbers, oblique, plain
from monai.data import MetaTensor
from monai.transforms.utils import create_rotate

KEYS = ["image", "label"]


def turned(values, affine, order, flips):
    """The same voxels in another order and direction of axes, with the affine that says so."""
    move = np.zeros((4, 4))
    move[3, 3] = 1
    for new, old in enumerate(order):
        move[old, new] = -1 if new in flips else 1
        if new in flips:
            move[old, 3] = values.shape[1 + old] - 1
    result = values.permute(0, *[1 + old for old in order])
    return result.flip([1 + new for new in flips]).contiguous(), affine @ move


def write_forms(folder):
    folder.mkdir(exist_ok=True)
    values = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    rigid = oblique() @ np.diag([0.5, 0.75, 2, 1])
    other = np.diag([-0.5, -0.75, 2, 1.0])
    other[:3, 3] = [12, 30, -8]
    sheared = rigid @ np.array([[1, 0.3, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    for name, sform, qform, units in (("both_same", (rigid, 1), (rigid, 1), ("mm", "sec")), ("both_differ", (rigid, 4), (other, 2), ("mm", None)),
                                      ("qform_only", (None, 0), (rigid, 3), ("micron", "sec")), ("sform_only", (other, 2), (None, 0), ("meter", None)),
                                      ("sheared", (sheared, 2), (None, 0), ("mm", None)), ("none", (None, 0), (None, 0), ("mm", None)),
                                      ("no_unit", (rigid, 2), (rigid, 1), (None, None))):
        image = nibabel.Nifti1Image(values, None)
        image.header.set_zooms((0.5, 0.75, 2))
        image.header.set_sform(*sform)
        image.header.set_qform(*qform)
        image.header.set_xyzt_units(*units)
        image.header["dim"][4:] = 1
        nibabel.save(image, folder / f"{name}.nii")


def converted(values, affine, order, flips):
    """Of (x,y,z)."""
    turn, own = turned(torch.as_tensor(values)[None], affine, order, flips)
    return nibabel.Nifti1Image(turn[0].numpy(), own.astype(np.float32))


def write_pairs(folder):
    rng = np.random.default_rng(3)
    mask = np.zeros((12, 10, 8), np.uint8)  # x, y, z; of no symmetry
    mask[2:8, 1:4, 1:3] = mask[7:10, 2:8, 3:7] = mask[1, 8, 6] = 1
    affine = oblique() @ np.diag([0.8, 1.1, 2.0, 1.0])
    raw = (np.where(mask, 1, -1) * rng.uniform(1, 3, mask.shape)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(raw, affine), folder / "raw.nii.gz")
    orders = {"same": ((0, 1, 2), ()), "flip_x": ((0, 1, 2), (0,)), "flip_xy": ((0, 1, 2), (0, 1)), "flip_z": ((0, 1, 2), (2,)), "permuted": ((2, 0, 1), (1,))}
    for name, (order, flips) in orders.items():
        nibabel.save(converted(mask, affine, order, flips), folder / f"seg_{name}.nii.gz")
    for name, wrong in (("half_voxel", affine * 0), ("spacing", affine * [0.05, 0.05, 0.05, 0]), ("tilted", create_rotate(3, [0, 0, 0.1]) @ affine - affine)):
        own = affine + wrong
        if name == "half_voxel":
            own[:3, 3] += affine[:3, 0] / 2
        nibabel.save(nibabel.Nifti1Image(mask, own), folder / f"seg_{name}.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask, None), folder / "seg_no_forms.nii.gz")
    finer = nibabel.Nifti1Image(mask.repeat(2, 0).repeat(2, 1).repeat(2, 2), affine @ np.array([[0.5, 0, 0, -0.25], [0, 0.5, 0, -0.25], [0, 0, 0.5, -0.25], [0, 0, 0, 1]]))
    nibabel.save(finer, folder / "seg_finer.nii.gz")
    # A DICOM series: rows and columns are those of (y,x), to left and posterior; a converter turns the rows and goes to RAS.
    series = folder / "series"
    series.mkdir(exist_ok=True)
    position, spacing, step = [-20.0, -35.5, 12.25], [1.1, 0.8], 2.0
    for z in range(mask.shape[2]):
        write_slice(series / f"{z}.dcm", raw[:, :, z].T, z, [*position[:2], position[2] + step * z], spacing)
    to_ras = np.diag([-spacing[1], -spacing[0], step, 1.0])
    to_ras[:3, 3] = [-position[0], -position[1], position[2]]
    nibabel.save(converted(mask, to_ras, (0, 1, 2), (1,)), folder / "seg_converter.nii.gz")


def write_slice(path, values, number, position, spacing):
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.MRImageStorage
    meta.MediaStorageSOPInstanceUID = f"1.2.3.{number + 1}"
    d = pydicom.Dataset()
    d.file_meta, d.SOPClassUID, d.SOPInstanceUID = meta, meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    d.Modality, d.SeriesInstanceUID, d.InstanceNumber = "MR", "1.2.3", number + 1
    d.ImagePositionPatient, d.ImageOrientationPatient = position, [1, 0, 0, 0, 1, 0]
    d.PixelSpacing, d.SliceThickness = spacing, 2
    d.Rows, d.Columns = values.shape
    d.SamplesPerPixel, d.PhotometricInterpretation = 1, "MONOCHROME2"
    d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 16, 16, 15, 1
    d.PixelData = (values * 100).astype("<i2").tobytes()
    d.save_as(path, enforce_file_format=True)


class Identity(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, image):
        return image * self.weight


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    torch.manual_seed(5)
    torch.set_num_threads(1)
    golden = Golden("geometry")
    golden.put("image", torch.rand(1, 6, 10, 8))
    label = torch.randint(0, 5, (1, 6, 10, 8)).float()
    affine = (oblique() @ np.diag([2.5, 1.2, 0.8, 1.0])).round(6)
    given = {}
    for name, order, flips in (("mirrored", (0, 1, 2), (0, 2)), ("permuted", (2, 0, 1), (1,))):
        values, own = turned(label, affine, order, flips)
        given[name] = (golden.put(f"label_{name}", values.byte()), own)
    given["finer"] = (golden.put("label_finer", torch.randint(0, 5, (1, 6, 12, 14)).byte()),
                      (affine @ np.diag([1.3, 0.7, 0.6, 1])).round(6))
    both = [
        ("Orientationd", {"axcodes": "RAS"}), ("Orientationd", {"axcodes": "PLS"}),
        ("Spacingd", {"pixdim": [2.0317, 1.0671, 1.1293], "mode": ["bilinear", "nearest"]}),
        ("Flipd", {"spatial_axis": [0, 2]}), ("Rotate90d", {"k": 1, "spatial_axes": [0, 2]}),
        ("Resized", {"spatial_size": [5, 6, 8], "mode": ["trilinear", "nearest"]}),
        ("Zoomd", {"zoom": [1.4, 0.8, 1.2], "mode": ["trilinear", "nearest"]}),
        ("Rotated", {"angle": [0.21, -0.13, 0.32], "mode": ["bilinear", "nearest"], "keep_size": False}),
        ("CenterSpatialCropd", {"roi_size": [4, 5, 4]}), ("SpatialCropd", {"roi_start": [1, 2, 0], "roi_end": [4, 5, 3]}),
        ("SpatialPadd", {"spatial_size": [10, 11, 14]}), ("ResizeWithPadOrCropd", {"spatial_size": [8, 5, 8]}),
        ("BorderPadd", {"spatial_border": [1, 0, 2]}), ("DivisiblePadd", {"k": 4}),
    ]
    pipelines = [[(t, {"keys": KEYS, **o})] for t, o in both]
    pipelines += [
        [("Orientationd", {"keys": ["label"], "axcodes": "LPS"})],
        [("Spacingd", {"keys": ["image"], "pixdim": [2.0317, 1.0671, 1.1293]}),
         ("Spacingd", {"keys": ["label"], "pixdim": [2.0317, 1.0671, 1.1293], "mode": "nearest"})],
        [("Orientationd", {"keys": KEYS, "axcodes": "RAS"}), ("Spacingd", {"keys": KEYS, "pixdim": [1.9313, 1.1171, 1.3727], "mode": ["bilinear", "nearest"]}),
         ("SpatialPadd", {"keys": KEYS, "spatial_size": [12, 12, 12]}), ("Rotate90d", {"keys": KEYS, "spatial_axes": [1, 2]}),
         ("CenterSpatialCropd", {"keys": KEYS, "roi_size": [8, 9, 7]}), ("Flipd", {"keys": KEYS, "spatial_axis": [1]})],
        [("Flipd", {"keys": ["image"], "spatial_axis": [1]}),
         ("ResampleToMatchd", {"keys": ["label"], "key_dst": "image", "mode": "nearest"})],
    ]
    for number, steps in enumerate(pipelines):
        for name, (tensor, own) in given.items():
            data = {"image": MetaTensor(golden.tensors["image"].clone(), affine=affine),
                    "label": MetaTensor(golden.tensors[tensor].float(), affine=own)}
            for transform, options in steps:  # Cytra's codes are for (x,y,z), MONAI's for the tensor's axes, here (z,y,x)
                options = {k: v[::-1] if k == "axcodes" else v for k, v in options.items()}
                data = getattr(mt, transform)(**options)(data)
            golden.add(f"{number}_{name}", {}, {"image": "image", "label": tensor, "label.out": plain(data["label"]).byte()},
                       steps=[{"transform": t, "options": o} for t, o in steps], affine_image=numbers(affine), affine_label=numbers(own),
                       **{f"affine_{k}_out": numbers(np.asarray(data[k].affine).round(7)) for k in KEYS})
    golden.save(parser.parse_args().output)
    output = parser.parse_args().output
    write_forms(output / "geometry")
    write_pairs(output / "geometry")
    torch.jit.script(Identity()).save(output / "models" / "identity.ts")


if __name__ == "__main__":
    main()
