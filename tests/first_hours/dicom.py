"""dicom.py BIN: a scanner's series, a folder for each patient, and a radiologist's masks as NIfTI; then the series of a new patient, whose
mask is also written as a DICOM segmentation, which highdicom reads."""
import pathlib
import sys

import highdicom
import numpy as np
import SimpleITK as sitk

from hour import Hour, dice, discs

if not (pathlib.Path(sys.argv[1]) / "../lib/libcytra_dicom.so").exists():
    print("DICOM is not built")
    sys.exit(77)
hour = Hour("dicom")
SPACING, ORIGIN = (0.8, 0.8, 2.5), (-100.0, 50.0, 12.5)


def placed(values):
    image = sitk.GetImageFromArray(values)
    image.SetSpacing(SPACING)
    image.SetOrigin(ORIGIN)
    return image


def write_series(folder, image):
    """Each plane as a file of its own, in the order of a scanner."""
    folder.mkdir(parents=True)
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for z in range(image.GetDepth()):
        slice = image[:, :, z]
        x, y, height = image.TransformIndexToPhysicalPoint((0, 0, z))
        for tag, value in {"0008|0060": "CT", "0020|000d": "1.2.3", "0020|000e": f"1.2.3.{len(folder.name)}", "0020|0013": str(z + 1),
                           "0008|0018": f"1.2.3.{z + 1}", "0020|0032": f"{x}\\{y}\\{height}", "0020|0037": "1\\0\\0\\0\\1\\0",
                           "0018|0050": str(SPACING[2])}.items():
            slice.SetMetaData(tag, value)
        writer.SetFileName(str(folder / f"IM{z:04d}.dcm"))
        writer.Execute(slice)


(hour.root / "study/masks").mkdir(parents=True)
for i in range(6):
    values, labels = discs(i, (16, 48, 48), 2)
    image, mask = placed(values.astype(np.int16)), placed((labels > 0).astype(np.uint8))
    write_series(hour.root / (f"study/images/patient_{i}" if i < 5 else "new/patient_5"), image)
    if i < 5:
        sitk.WriteImage(mask, str(hour.root / f"study/masks/patient_{i}.nii.gz"))

hour.train("train data.path=study", 8, "[16,32,32]")
((file, overlay),) = hour.predict()
found = sitk.ReadImage(file)
score = dice(sitk.GetArrayFromImage(found) > 0, sitk.GetArrayFromImage(mask) > 0)
hour.expect(score > 0.6, f"Dice {score:.2f}")
hour.expect(found.GetSize() == (48, 48, 16) and np.allclose(found.GetSpacing(), SPACING) and np.allclose(found.GetOrigin(), ORIGIN), "the mask lies on its series")
hour.look(overlay, overlay.name, (48, 48))
said = hour.type("predict checkpoint.ckpt_path=best data.path=new paths.output_dir=segmentations predict.format=dicom trainer.accelerator=cpu")
segmentation = highdicom.seg.segread(hour.root / "segmentations/patient_5.seg.dcm")
hour.expect("prediction: segmentations/patient_5.seg.dcm" in said, said)
planes = segmentation.get_pixels_by_source_instance([f"1.2.3.{z + 1}" for z in range(16)], assert_missing_frames_are_empty=True)
hour.expect(np.array_equal(planes[..., 0], sitk.GetArrayFromImage(found)), "the segmentation has the mask's voxels")
hour.type("predict checkpoint.ckpt_path=best data.path=study/masks predict.format=dicom trainer.accelerator=cpu; test $? = 2")
hour.end()
