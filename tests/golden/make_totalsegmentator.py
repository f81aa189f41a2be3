"""TotalSegmentator's folders with small networks of random weights, and what TotalSegmentator 2.18 makes of an image.

pip install torch==2.12.1 nnunetv2==2.8.1 TotalSegmentator==2.18.0; python make_totalsegmentator.py [--models | --16]
Biases are tuned so that each class fills about 0.5 % of the voxels or more. nnU-Net sums windows in 16 bits; here it sums in 32. --models predicts
with the models that are there; --16 does so with sums of 16 bits, and says how many voxels differ.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

here = pathlib.Path(__file__).parent / "totalsegmentator"
for name in ("raw", "preprocessed", "results"):
    os.environ[f"nnUNet_{name}"] = str(here)
import nibabel as nib
import numpy as np
import torch
from nnunetv2.inference import predict_from_raw_data as prediction
from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
from totalsegmentator.map_tasks_config import TASK_ID_WEIGHTS_CONFIGS as FOLDERS
from totalsegmentator.map_to_binary import class_map, class_map_5_parts
from totalsegmentator.nnunet import nnUNet_predict_image
from totalsegmentator.resampling import change_spacing

SPLINE = {"is_seg": False, "order": 3, "order_z": 0, "force_separate_z": None}


def sum_in_32_bits():
    weights, half, run = prediction.compute_gaussian, torch.half, nnUNetPredictor.predict_sliding_window_return_logits
    prediction.compute_gaussian = lambda *args, **more: weights(*args, **{**more, "dtype": torch.float32})
    prediction.compute_gaussian.cache_clear = weights.cache_clear

    def run_in_32_bits(*args):  # files are read and written by the name of torch.half
        torch.half = torch.float32
        try:
            return run(*args)
        finally:
            torch.half = half
    nnUNetPredictor.predict_sliding_window_return_logits = run_in_32_bits


def make(task, names, spacing, patch, intensities, trainer, folds=1):
    folder = here / FOLDERS[task]["foldername"] / f"{trainer}__nnUNetPlans__3d_fullres"
    folder.mkdir(parents=True)
    plans = {
        "dataset_name": FOLDERS[task]["foldername"], "plans_name": "nnUNetPlans", "original_median_spacing_after_transp": [1, 1, 1],
        "original_median_shape_after_transp": [1, 1, 1], "image_reader_writer": "SimpleITKIO", "transpose_forward": [0, 1, 2],
        "transpose_backward": [0, 1, 2], "configurations": {"3d_fullres": {
            "data_identifier": "x", "preprocessor_name": "DefaultPreprocessor", "batch_size": 2, "patch_size": patch, "spacing": [spacing] * 3,
            "median_image_size_in_voxels": [1, 1, 1], "batch_dice": False,
            "normalization_schemes": ["CTNormalization"], "use_mask_for_norm": [False],
            "resampling_fn_seg": "resample_data_or_seg_to_shape", "resampling_fn_seg_kwargs": {**SPLINE, "is_seg": True, "order": 1},
            "resampling_fn_probabilities": "resample_data_or_seg_to_shape", "resampling_fn_probabilities_kwargs": {**SPLINE, "order": 1},
            "resampling_fn_data": "resample_data_or_seg_to_shape", "resampling_fn_data_kwargs": SPLINE,
            "architecture": {
                "network_class_name": "dynamic_network_architectures.architectures.unet.PlainConvUNet",
                "arch_kwargs": {
                    "n_stages": 2, "features_per_stage": [6, 8], "conv_op": "torch.nn.modules.conv.Conv3d", "n_conv_per_stage": [1, 1],
                    "n_conv_per_stage_decoder": [1], "conv_bias": True, "norm_op": "torch.nn.modules.instancenorm.InstanceNorm3d",
                    "norm_op_kwargs": {"eps": 1e-05, "affine": True}, "dropout_op": None, "dropout_op_kwargs": None,
                    "nonlin": "torch.nn.LeakyReLU", "nonlin_kwargs": {"inplace": True}, "kernel_sizes": [[3, 3, 3]] * 2,
                    "strides": [[1, 1, 1], [2, 2, 2]]},
                "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"]}}},
        "experiment_planner_used": "ExperimentPlanner", "label_manager": "LabelManager",
        "foreground_intensity_properties_per_channel": {"0": {**intensities, "median": 0, "min": -1024, "max": 3000}}}
    description = {"channel_names": {"0": "CT"}, "labels": {"background": 0, **{name: i + 1 for i, name in enumerate(names)}},
                   "numTraining": 1, "file_ending": ".nii.gz"}
    for name, content in (("plans.json", plans), ("dataset.json", description)):
        (folder / name).write_text(json.dumps(content) + "\n")
    manager = PlansManager(plans)
    networks = []
    for fold in range(folds):
        net = nnUNetTrainer.build_network_architecture(manager, manager.get_configuration("3d_fullres"), 1, len(names) + 1, True)
        for parameter in net.parameters():
            if parameter.dim() == 1:
                torch.nn.init.uniform_(parameter, 0.5, 1.5) if parameter.numel() < 10 else torch.nn.init.zeros_(parameter)
        networks.append(net)
        (folder / f"fold_{fold}").mkdir()
    return folder, networks


def save(folder, networks, biases=None):
    for fold, net in enumerate(networks):
        if biases is not None:
            net.decoder.seg_layers[-1].bias.data = torch.from_numpy(biases).float()
        torch.save({"network_weights": net.state_dict(), "optimizer_state": {}, "trainer_name": folder.name.split("__")[0], "current_epoch": 1,
                    "init_args": {"configuration": "3d_fullres", "fold": fold}, "inference_allowed_mirroring_axes": (0, 1, 2)},
                   folder / f"fold_{fold}" / "checkpoint_final.pth")


def logits_of(folder, low, image):
    """(K,voxels): of the image's voxels in the part that nnU-Net takes, as labels come back to them; and that part's share."""
    predictor = nnUNetPredictor(tile_step_size=0.8, use_mirroring=False, device=torch.device("cpu"), allow_tqdm=False)
    predictor.initialize_from_trained_model_folder(str(folder), None)
    preprocessor = predictor.configuration_manager.preprocessor_class(verbose=False)
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "s01_0000.nii.gz"
        nib.save(low, path)
        data, _, properties = preprocessor.run_case([str(path)], None, predictor.plans_manager, predictor.configuration_manager, predictor.dataset_json)
    logits = predictor.predict_logits_from_preprocessed_data(torch.from_numpy(data)).numpy()
    for axis, (begin, end) in enumerate(properties["bbox_used_for_cropping"]):
        n, m = nib.as_closest_canonical(image).shape[2 - axis], low.shape[2 - axis]
        source = np.floor(np.arange(n) * ((m - 1) / (n - 1)) + 0.5).astype(int)
        logits = logits.take(source[(source >= begin) & (source < end)] - begin, axis + 1)
    return logits.reshape(len(logits), -1), logits[0].size / np.prod(image.shape)


def tuned(logits, shares):
    """Biases by which class k is the largest in a share shares[k] of the voxels."""
    biases, logits, shares = torch.zeros(len(logits), 1), torch.from_numpy(np.ascontiguousarray(logits)), torch.from_numpy(shares).float()
    for step in range(1400):
        some = logits[:, step % 7::7] if step < 1200 else logits
        counts = torch.bincount((some + biases).argmax(0), minlength=len(logits)) / some.shape[1]
        biases += (logits.std() * 0.5 / (1 + step / 100) * (shares - counts) / shares.max())[:, None]
    return biases[:, 0].numpy()


def resampled(image, spacing):
    return change_spacing(nib.as_closest_canonical(nib.Nifti1Image(image.get_fdata(), image.affine)), spacing, order=1, dtype=np.int32)


def smooth(rng, shape, step):
    from scipy import ndimage
    return ndimage.zoom(rng.random([n // step + 3 for n in shape]), [n / (n // step + 3) for n in shape], order=1)[tuple(slice(n) for n in shape)]


def write_image(rng):
    """A volume whose axes go posterior, superior and left, tilted a little, with an empty border and steps that no spacing shares."""
    shape = (46, 21, 52)
    values = (1500 * smooth(rng, shape, 5) + 500 * smooth(rng, shape, 2) - 900).astype(np.int16)
    values[:4], values[..., -5:] = 0, 0
    turn = np.array([[np.cos(0.1), -np.sin(0.1), 0], [np.sin(0.1), np.cos(0.1), 0], [0, 0, 1]])
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.array([[0, 0, -1.15], [-1.3, 0, 0], [0, 2.9, 0]])
    affine[:3, 3] = (20, 31, -45)
    image = nib.Nifti1Image(values, affine)
    nib.save(image, here / "ct.nii.gz")
    return nib.load(here / "ct.nii.gz")


def predicted(image, tasks, spacing, trainer):
    made, _, _ = nnUNet_predict_image(image, None, tasks, folds=None, trainer=trainer, resample=spacing, task_name="total", device="cpu", quiet=True,
                                      nr_threads_saving=1)
    return made


def report(labels):
    shares = np.bincount(np.asarray(labels.dataobj).ravel().astype(int), minlength=118) / np.prod(labels.shape)
    print("least and largest share of a class: %.4f %.4f, background %.3f" % (shares[1:].min(), shares[1:].max(), shares[0]))


def make_models(image):
    # Five parts; the last ones go over the first.
    low = resampled(image, 1.5)
    parts = list(zip((291, 292, 293, 294, 295), class_map_5_parts.values()))
    taken = 0
    for number, (task, names) in reversed(list(enumerate(parts))):
        folder, networks = make(task, list(names.values()), 1.5, [[16, 16, 16], [16, 24, 16]][number % 2],
                                {"mean": 50.0 + 20 * number, "std": 400.0 + 30 * number, "percentile_00_5": -800.0 + 50 * number, "percentile_99_5": 900.0},
                                "nnUNetTrainerNoMirroring", folds=1 + (number == 1))
        save(folder, networks)
        logits, part = logits_of(folder, low, image)
        free = np.ones(logits.shape[1], bool) if number == 4 else free
        share = 0.0062 / part / free.mean()
        shares = np.full(len(names) + 1, share)
        shares[0] = 1 - share * len(names)
        biases = tuned(logits[:, free], shares)
        save(folder, networks, biases)
        free = free & ((logits + biases[:, None]).argmax(0) == 0)
    # One model of all classes.
    folder, networks = make(297, list(class_map["total"].values()), 3.0, [8, 16, 16],
                            {"mean": 70.0, "std": 420.0, "percentile_00_5": -700.0, "percentile_99_5": 950.0}, "nnUNetTrainer_4000epochs_NoMirroring")
    save(folder, networks)
    logits, _ = logits_of(folder, resampled(image, 3.0), image)
    save(folder, networks, tuned(logits, np.full(118, 1 / 118)))


def predict_in_one_process(self, source, output, save_probabilities=False, overwrite=True, **unused):
    return self.predict_from_files_sequential(source, output, save_probabilities, overwrite)


def main():
    nnUNetPredictor.predict_from_files = predict_in_one_process
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if "--16" not in sys.argv:
        sum_in_32_bits()
    if len(sys.argv) == 1:
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        make_models(write_image(np.random.default_rng(0)))
    image = nib.load(here / "ct.nii.gz")
    for name, tasks, spacing, trainer in (("total", [291, 292, 293, 294, 295], 1.5, "nnUNetTrainerNoMirroring"),
                                          ("fast", 297, 3.0, "nnUNetTrainer_4000epochs_NoMirroring")):
        labels = predicted(image, tasks, spacing, trainer)
        if "--16" in sys.argv:
            print(name, "differs in", np.mean(np.asarray(labels.dataobj) != np.asarray(nib.load(here / f"{name}.nii.gz").dataobj)))
            continue
        report(labels)
        nib.save(nib.Nifti1Image(np.asarray(labels.dataobj).astype(np.uint8), image.affine), here / f"{name}.nii.gz")


if __name__ == "__main__":
    main()
