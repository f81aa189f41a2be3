#!/usr/bin/env python3
"""Writes tests/golden/places/: small files of seven forms, whose headers say where voxels lie in many ways, and cases.json
with what the form's own library reads: SimpleITK for NRRD and MetaImage, nibabel for NIfTI, pydicom for DICOM, ngff-zarr for
OME-Zarr, ImageJ for its TIFFs, and the OME schema's rules for OME-TIFF. A case has the spacing (z, y, x) in um, 0 where it is
not stated, the affine to right, anterior, superior in mm, null where no place is stated, and the values where they count.

Needs numpy, SimpleITK, nibabel, pydicom, tifffile, ngff-zarr, and ImageJ (Debian: imagej, xvfb). tests/io/places_test.cpp reads them.
"""
import json
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import ngff_zarr
import nibabel
import numpy as np
import pydicom
import SimpleITK as sitk
import tifffile
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage

FOLDER = Path(__file__).parent / "places"
LPS = np.array([-1.0, -1, 1])
cases = []


def add(name, spacing_um, affine, **more):
    """Of the spacing along z, y, x and a 3 x 4 affine."""
    affine = None if affine is None else [float(number) + 0.0 for number in np.asarray(affine).ravel()]
    cases.append({"file": name, "spacing_um": [float(side) for side in spacing_um], "affine": affine, **more})


def aligned(name, steps_um, origin_um, **more):
    """Of axes along the world's left, posterior, superior: signed steps and the first voxel's place in um, x first."""
    affine = None
    if origin_um is not None or min(steps_um) < 0:
        affine = np.zeros((3, 4))
        affine[:, :3] = np.diag(LPS * (list(steps_um) + [1000] * (3 - len(steps_um))) / 1000)
        affine[:, 3] = LPS * (list(origin_um or []) + [0] * (3 - len(origin_um or []))) / 1000
    add(name, np.abs(list(steps_um) + [0] * (3 - len(steps_um)))[::-1], affine, **more)


def itk(name, text, is_placed, dims=3, unit_um=1000.0):
    """A file of which SimpleITK reads spacing, origin and direction in the file's unit."""
    (FOLDER / name).write_bytes(text.encode() + bytes(range({2: 12, 3: 24}[dims])))
    image = sitk.ReadImage(str(FOLDER / name))
    steps = np.array(image.GetDirection()).reshape(dims, dims) * image.GetSpacing() * unit_um / 1000
    affine = None
    if is_placed:
        affine = np.zeros((3, 4))
        affine[:dims, :dims] = LPS[:dims, None] * steps
        affine[:dims, 3] = LPS[:dims] * image.GetOrigin() * unit_um / 1000
        if dims == 2:
            up = np.cross(affine[:, 0], affine[:, 1])
            affine[:, 2] = up / np.linalg.norm(up)
    sides = np.linalg.norm(steps, axis=0)[::-1] * 1000
    add(name, np.concatenate([np.zeros(3 - dims), sides]), affine)


def metaimages():
    def one(name, fields, is_placed=True, dims=3, first="ObjectType = Image\n", **more):
        sizes = {2: "4 3", 3: "4 3 2"}[dims]
        itk(f"{name}.mha", f"{first}NDims = {dims}\nDimSize = {sizes}\nElementType = MET_UCHAR\n{fields}ElementDataFile = LOCAL\n",
            is_placed, dims, **more)
    spacing = "ElementSpacing = 1 2 3\n"
    for name, fields in {
        "negative": "ElementSpacing = -1 2 -3\nOffset = 10 20 30\n",
        "negative_alone": "ElementSpacing = 1 -2 3\n",
        "negative_matrix": "ElementSpacing = -1 2 3\nTransformMatrix = 0 1 0 1 0 0 0 0 1\nOffset = 1 2 3\n",
        "size": "ElementSize = 1 2 3\nOffset = 1 2 3\n",
        "size_spacing": "ElementSize = 4 5 6\nElementSpacing = 1 2 3\nOffset = 1 2 3\n",
        "position": "Position = 1 2 3\n" + spacing,
        "origin": "Origin = 1 2 3\n" + spacing,
        "three_origins": "Position = 7 8 9\nOffset = 1 2 3\nOrigin = 4 5 6\n" + spacing,
        "rotation": "Rotation = 0 1 0 -1 0 0 0 0 1\nOffset = 1 2 3\n" + spacing,
        "orientation": "Orientation = 0 1 0 -1 0 0 0 0 1\nOffset = 1 2 3\n" + spacing,
        "letters": "AnatomicalOrientation = RAS\nOffset = 1 2 3\n" + spacing,
        "centre": "CenterOfRotation = 5 5 5\nTransformMatrix = 0 1 0 -1 0 0 0 0 1\nOffset = 1 2 3\n" + spacing,
        "offset": "Offset = 1 2 3\n",
    }.items():
        one("meta_" + name, fields)
    one("meta_plane", "ElementSpacing = 1 -2\nOffset = 3 4\n", dims=2)
    one("meta_spacing", spacing, is_placed=False)
    for name, first in {"data": "BinaryData = True\n", "order": "ElementByteOrderMSB = False\n", "name": "Name = a\n", "id": "ID = 1\n",
                        "blank": "\nObjectType = Image\n", "order2": "BinaryDataByteOrderMSB = False\n", "modality": "Modality = MET_MOD_CT\n"}.items():
        one("first_" + name, spacing, is_placed=False, first=first)


def nrrds():
    def one(name, fields, is_placed=True, dims=3, **more):
        sizes = {2: "4 3", 3: "4 3 2"}[dims]
        itk(f"nrrd_{name}.nrrd", f"NRRD0005\ntype: uint8\ndimension: {dims}\nsizes: {sizes}\nencoding: raw\n{fields}\n", is_placed, dims, **more)
    directions = "space directions: (1,0,0) (0,2,0) (0,0,3)\n"
    origin = "space origin: (1,2,3)\n"
    for name, fields in {
        "negative": "spacings: 1 -2 3\n",
        "mins": "spacings: 1 2 3\naxis mins: 10 20 30\n",
        "mins_cells": "spacings: 1 2 3\ncenterings: cell cell cell\naxis mins: 10 20 30\n",
        "mins_nodes": "spacings: 1 2 3\ncenterings: node node node\naxismins: 10 20 30\n",
        "negative_mins": "spacings: 1 -2 3\naxis mins: 10 20 30\n",
        "ras": "space: right-anterior-superior\n" + directions + origin,
        "las": "space: left-anterior-superior\n" + directions + origin,
        "lps_negative": "space: left-posterior-superior\nspace directions: (-1,0,0) (0,2,0) (0,0,-3)\n" + origin,
        "scanner": "space: scanner-xyz\n" + directions + origin,
        "dimension": "space dimension: 3\n" + directions + origin,
        "no_origin": "space: right-anterior-superior\n" + directions,
        "oblique": "space: left-posterior-superior\nspace directions: (0.8,0.6,0) (1.2,-1.6,0) (0,0,-3)\n" + origin,
    }.items():
        one(name, fields)
    one("plane", "space dimension: 2\nspace directions: (1,0) (0,-2)\nspace origin: (1,2)\n", dims=2)
    one("plane_mins", "spacings: 1 -2\naxis mins: 3 4\n", dims=2)
    one("um", "space: right-anterior-superior\n" + directions + origin + 'space units: "um" "um" "um"\n', unit_um=1.0)
    one("spacings", "spacings: 1 2 3\n", is_placed=False)


def niftis():
    def one(name, sform=None, qform=None, zooms=(0.5, 0.75, 2), units="mm", shape=(4, 3, 2), patch=None, kind=nibabel.Nifti1Image):
        image = kind(np.arange(np.prod(shape), dtype=np.uint8).reshape(shape), None)
        image.header.set_zooms(zooms[:len(shape)])
        image.header.set_sform(*(sform or (None, 0)))
        image.header.set_qform(*(qform or (None, 0)))
        image.header.set_xyzt_units(units)
        path = FOLDER / f"nifti_{name}.nii"
        nibabel.save(image, path)
        if patch:
            bytes_of = bytearray(path.read_bytes())
            struct.pack_into("<" + patch[1], bytes_of, patch[0], *patch[2:])
            path.write_bytes(bytes(bytes_of))
        mm = {"mm": 1, "micron": 1e-3, "meter": 1e3}[units]
        affine = nibabel.load(path).affine[:3] * mm
        sides = np.linalg.norm(affine[:, :3], axis=0)[::-1] * 1000
        add(path.name, sides, affine)
    turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    a, b = np.eye(4), np.eye(4)
    a[:3] = np.column_stack([turn @ np.diag([0.5, 0.75, 2]), [1, 2, 3]])
    b[:3] = np.column_stack([np.diag([-0.5, 0.75, 2]), [4, 5, 6]])
    one("sform", (a, 1))
    one("qform", None, (a, 1))
    one("both", (a, 2), (b, 1))
    one("none")
    one("micron", (a, 1), units="micron")
    one("meter", (a, 1), units="meter")
    one("version_2", (a, 1), kind=nibabel.Nifti2Image)
    one("qfac_0", None, (b, 1), patch=(76, "f", 0.0))
    one("qfac_minus_3", None, (b, 1), patch=(76, "f", -3.0))
    one("qfac_minus_1", None, (b, 1))
    one("sform_minus_1", (a, 1), (b, 1), patch=(254, "h", -1))
    one("sform_7", (a, 1), (b, 1), patch=(254, "h", 7))
    one("sform_5", (a, 1), (b, 1), patch=(254, "h", 5))
    one("side_0", None, (a, 1), patch=(88, "f", 0.0))
    one("side_negative", None, (a, 1), patch=(80, "f", -0.5))


def dicoms():
    def one(name, array, orientation, position, spacing, **more):
        meta = FileMetaDataset()
        meta.TransferSyntaxUID, meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = ExplicitVRLittleEndian, MRImageStorage, "1.2.3"
        image = Dataset()
        image.file_meta = meta
        image.SOPClassUID, image.SOPInstanceUID, image.SeriesInstanceUID = MRImageStorage, "1.2.3", "1.2"
        image.Modality, image.PhotometricInterpretation, image.SamplesPerPixel, image.InstanceNumber = "MR", "MONOCHROME2", 1, 1
        image.Rows, image.Columns = array.shape
        image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 12, 11, 0
        image.PixelSpacing, image.SliceThickness = spacing, 3
        image.ImageOrientationPatient, image.ImagePositionPatient = orientation, position
        image.PixelData = array.astype("<u2").tobytes()
        for key, value in more.items():
            setattr(image, key, value)
        path = FOLDER / f"dicom_{name}.dcm"
        image.save_as(path, enforce_file_format=True)
        read = pydicom.dcmread(path)
        right, down = np.array(read.ImageOrientationPatient).reshape(2, 3).astype(float)
        rows, columns = (float(side) for side in read.PixelSpacing)
        affine = np.column_stack([right * columns, down * rows, np.cross(right, down) * 3, np.array(read.ImagePositionPatient, float)])
        add(path.name, [3000, rows * 1000, columns * 1000], LPS[:, None] * affine, values=read.pixel_array.astype(float).ravel().tolist())
    array = np.array([[0x1230, 0xFFF0, 0x8010], [0x7FFF, 0x000F, 0x1001]], np.uint16)
    axial, tilted = [1, 0, 0, 0, 1, 0], [0.8, 0.6, 0, -0.6, 0.8, 0]
    one("axial", array & 0xFFF, axial, [10, 20, 30], [0.5, 0.75])
    one("tilted", array & 0xFFF, tilted, [-1, 2, 3], [0.5, 0.75])
    one("turned", array & 0xFFF, [-1, 0, 0, 0, -1, 0], [1, 2, 3], [2, 1])
    one("high_bit_15", array, axial, [0, 0, 0], [1, 1], HighBit=15)
    one("high_bit_13", array, axial, [0, 0, 0], [1, 1], HighBit=13)
    one("high_bit_15_signed", array, axial, [0, 0, 0], [1, 1], HighBit=15, PixelRepresentation=1)


# The signed steps and the place of the pixels' centre that OME-XML states; units of length by the schema, um by default for sizes.
def ome_tiffs():
    def one(name, pixels, plane, steps_um, origin_um, image=""):
        path = FOLDER / f"ome_{name}.ome.tif"
        xml = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">' + image +
               f'<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="4" SizeY="3" SizeZ="2" SizeC="1" SizeT="1" {pixels}>'
               f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/><TiffData/>{plane}</Pixels></Image></OME>')
        tifffile.imwrite(path, np.arange(24, dtype=np.uint8).reshape(2, 3, 4), description=xml.encode(), metadata=None, photometric="minisblack")
        aligned(path.name, steps_um, origin_um)
    sides = 'PhysicalSizeX="0.5" PhysicalSizeY="0.25" PhysicalSizeZ="2"'
    one("sides", sides, "", [0.5, 0.25, 2], None)
    one("plane", sides, '<Plane TheZ="0" TheC="0" TheT="0" PositionX="10" PositionY="-20" PositionZ="30" PositionXUnit="&#181;m" '
        'PositionYUnit="µm" PositionZUnit="mm"/>', [0.5, 0.25, 2], [10, -20, 30000])
    one("second_plane_first", sides, '<Plane TheZ="1" TheC="0" TheT="0" PositionX="11" PositionXUnit="nm"/>'
        '<Plane TheZ="0" TheC="0" TheT="0" PositionX="10" PositionXUnit="nm"/>', [0.5, 0.25, 2], [0.01, 0, 0])
    one("reference_frame", sides, '<Plane TheZ="0" TheC="0" TheT="0" PositionX="10" PositionY="20"/>', [0.5, 0.25, 2], None)
    one("stage", sides, "", [0.5, 0.25, 2], [1000, 2000, 0], '<StageLabel Name="a" X="1" Y="2" XUnit="mm" YUnit="mm"/>')
    one("units", 'PhysicalSizeX="500" PhysicalSizeXUnit="nm" PhysicalSizeY="0.00025" PhysicalSizeYUnit="mm" PhysicalSizeZ="20000" PhysicalSizeZUnit="&#197;"',
        "", [0.5, 0.25, 2], None)
    one("pixel", 'PhysicalSizeX="1" PhysicalSizeXUnit="pixel" PhysicalSizeY="1" PhysicalSizeYUnit="pixel"', "", [0, 0, 0], None)


def imagej_tiffs():
    macro = ('open(getArgument()); getVoxelSize(w, h, d, u); x = 0; y = 0; z = 0; toScaled(x, y, z); '
             'print(w + " " + h + " " + d + " " + u + " " + x + " " + y + " " + z);')

    def one(name, text, resolution, unit_um, is_placed, unit=None, is_stack=True):
        path = FOLDER / f"imagej_{name}.tif"
        array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        head = f"ImageJ=1.54f\nimages=2\nslices=2\n{text}" if is_stack else f"ImageJ=1.54f\n{text}"
        tifffile.imwrite(path, array if is_stack else array[0], description=head, metadata=None, photometric="minisblack",
                         resolution=resolution, resolutionunit=unit or "NONE")
        with tempfile.NamedTemporaryFile("w", suffix=".ijm") as file:
            file.write(macro)
            file.flush()
            said = subprocess.run(["xvfb-run", "-a", "java", "-cp", "/usr/share/java/ij.jar", "ij.ImageJ", "-batch", file.name, str(path.resolve())],
                                  capture_output=True, text=True, check=True).stdout
        found = re.search(r"^([\d.e-]+) ([\d.e-]+) ([\d.e-]+) (\S+) (\S+) (\S+) (\S+)$", said, re.MULTILINE)
        steps, place = [float(found[i]) * unit_um for i in (1, 2, 3)], [float(found[i]) * unit_um for i in (5, 6, 7)]
        count = 3 if is_stack else 2
        aligned(path.name, steps[:count], place[:count] if is_placed else None)
    one("micron", "unit=micron\nspacing=2\n", (2, 4), 1, False)
    one("origin", "unit=micron\nspacing=2\nxorigin=10\nyorigin=-20\nzorigin=1\n", (2, 4), 1, True)
    one("negative_spacing", "unit=micron\nspacing=-2\n", (2, 4), 1, False)
    one("no_spacing", "unit=mm\n", (2, 4), 1000, False)
    one("centimetres", "unit=um\nspacing=2\n", (20000, 40000), 1, False, "CENTIMETER")
    one("nanometres", "unit=nm\nspacing=200\nxorigin=3\nyorigin=5\n", (0.02, 0.04), 1e-3, True)
    one("plane", "unit=micron\nxorigin=3\nyorigin=5\n", (2, 4), 1, True, is_stack=False)


def zarrs():
    def one(name, axes, scale, translation=None, more=None, chunks=(2, 3, 4), version="0.4"):
        path = FOLDER / f"zarr_{name}.ome.zarr"
        shutil.rmtree(path, ignore_errors=True)
        (path / "0").mkdir(parents=True)
        transformations = [{"type": "scale", "scale": scale}]
        if translation:
            transformations.append({"type": "translation", "translation": translation})
        image = {"version": version, "axes": axes, "name": name, "datasets": [{"path": "0", "coordinateTransformations": transformations}]}
        if more:
            image["coordinateTransformations"] = more
        (path / ".zgroup").write_text('{"zarr_format": 2}')
        (path / ".zattrs").write_text(json.dumps({"multiscales": [image]}))
        (path / "0" / ".zarray").write_text(json.dumps({"zarr_format": 2, "shape": chunks, "chunks": chunks, "dtype": "|u1", "compressor": None,
                                                         "fill_value": 0, "order": "C", "filters": None, "dimension_separator": "/"}))
        chunk = path / "0" / "/".join("0" for _ in chunks)
        chunk.parent.mkdir(parents=True, exist_ok=True)
        chunk.write_bytes(bytes(range(int(np.prod(chunks)))))
        # ngff-zarr 0.50 reads a dataset's own transformations; those of the image come after them, by the specification.
        level = ngff_zarr.from_ngff_zarr(str(path)).images[0]
        um = {"micrometer": 1, "nanometer": 1e-3, "millimeter": 1e3, "angstrom": 1e-4, "meter": 1e6}
        steps, place = [], []
        for axis in "xyz":
            if axis not in level.dims:
                continue
            unit = um[(level.axes_units or {}).get(axis) or "micrometer"]
            step, origin = level.scale[axis], level.translation[axis]
            k = [entry["name"] for entry in axes].index(axis)
            for transformation in more or []:
                step, origin = (step * transformation["scale"][k], origin * transformation["scale"][k]) if transformation["type"] == "scale" \
                    else (step, origin + transformation["translation"][k])
            steps.append(step * unit)
            place.append(origin * unit)
        is_placed = translation is not None or any(entry["type"] == "translation" for entry in more or [])
        aligned(path.name, steps, place if is_placed else None)
    def axes(*units):
        return [{"name": name, "type": "space", **({"unit": unit} if unit else {})} for name, unit in zip("zyx"[-len(units):], units)]
    um = axes(*["micrometer"] * 3)
    one("scale", um, [2.0, 0.25, 0.5])
    one("translation", um, [2.0, 0.25, 0.5], [30.0, -20.0, 10.0])
    one("negative", um, [2.0, -0.25, 0.5], [30.0, 20.0, 10.0])
    one("units", axes("millimeter", "nanometer", "angstrom"), [0.002, 250.0, 5000.0], [0.03, 20.0, 1000.0])
    one("image_scale", um, [1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [{"type": "scale", "scale": [2.0, 0.25, 0.5]}])
    one("image_translation", um, [2.0, 0.25, 0.5], None, [{"type": "translation", "translation": [1.0, 2.0, 3.0]}])
    one("plane", axes("micrometer", "micrometer"), [0.25, 0.5], [5.0, 6.0], chunks=(3, 4))


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for form in (metaimages, nrrds, niftis, dicoms, ome_tiffs, imagej_tiffs, zarrs):
        form()
    (FOLDER / "cases.json").write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
