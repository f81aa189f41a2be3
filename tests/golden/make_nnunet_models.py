"""Models in nnU-Net's folders with random weights, and what nnU-Net 2.8.1 makes of images with them.

pip install torch==2.11.0 nnunetv2==2.8.1 safetensors; python make_nnunet_models.py
"""
import json
import os
import pathlib
import shutil

for name in ("raw", "preprocessed", "results"):
    os.environ[f"nnUNet_{name}"] = "/tmp/nnunet"
import numpy as np
import SimpleITK as sitk
import torch
from nnunetv2.inference import predict_from_raw_data as prediction
from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
from safetensors.numpy import save_file
from skimage import io

here = pathlib.Path(__file__).parent / "nnunet_models"
SPLINE = {"is_seg": False, "order": 3, "order_z": 0, "force_separate_z": None}


def network(dims, stages, blocks, residual=False, **more):
    last = f"{dims}d"
    return {
        "network_class_name": "dynamic_network_architectures.architectures.unet."
        + ("ResidualEncoderUNet" if residual else "PlainConvUNet"),
        "arch_kwargs": {
            "n_stages": stages, "features_per_stage": [4 * 2**i for i in range(stages)], "conv_op": f"torch.nn.modules.conv.Conv{last}",
            ("n_blocks_per_stage" if residual else "n_conv_per_stage"): blocks, "n_conv_per_stage_decoder": [1] * (stages - 1),
            "conv_bias": True, "norm_op": f"torch.nn.modules.instancenorm.InstanceNorm{last}",
            "norm_op_kwargs": {"eps": 1e-05, "affine": True}, "dropout_op": None, "dropout_op_kwargs": None,
            "nonlin": "torch.nn.LeakyReLU", "nonlin_kwargs": {"inplace": True}, **more},
        "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"]}


def make(dataset, configuration, settings, labels, channels, reader, ending, order=(0, 1, 2), intensities=None, regions=None, folds=1):
    folder = here / dataset / f"nnUNetTrainer__nnUNetPlans__{configuration}"
    folder.mkdir(parents=True)
    back = [int(i) for i in np.argsort(order)]
    plans = {
        "dataset_name": dataset, "plans_name": "nnUNetPlans", "original_median_spacing_after_transp": [1, 1, 1],
        "original_median_shape_after_transp": [1, 1, 1], "image_reader_writer": reader, "transpose_forward": list(order),
        "transpose_backward": back, "configurations": {
            "parent": {"data_identifier": "x", "preprocessor_name": "DefaultPreprocessor", "batch_size": 2,
                       "median_image_size_in_voxels": [1, 1, 1], "batch_dice": False,
                       "resampling_fn_seg": "resample_data_or_seg_to_shape", "resampling_fn_seg_kwargs": {**SPLINE, "is_seg": True, "order": 1},
                       "resampling_fn_probabilities": "resample_data_or_seg_to_shape",
                       "resampling_fn_probabilities_kwargs": {**SPLINE, "order": 1},
                       "resampling_fn_data": "resample_data_or_seg_to_shape", "resampling_fn_data_kwargs": SPLINE},
            configuration: {"inherits_from": "parent", **settings}},
        "experiment_planner_used": "ExperimentPlanner", "label_manager": "LabelManager",
        "foreground_intensity_properties_per_channel": intensities or {str(i): {} for i in range(channels)}}
    description = {"channel_names": {str(i): f"channel {i}" for i in range(channels)}, "labels": labels, "numTraining": 1, "file_ending": ending}
    if regions:
        description["regions_class_order"] = regions
    for name, content in (("plans.json", plans), ("dataset.json", description)):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")
    manager = PlansManager(json.loads((folder / "plans.json").read_text()))
    chosen = manager.get_configuration(configuration)
    for fold in range(folds):
        net = nnUNetTrainer.build_network_architecture(manager, chosen, channels, manager.get_label_manager(description).num_segmentation_heads, True)
        for parameter in net.parameters():
            if parameter.dim() == 1:
                torch.nn.init.uniform_(parameter, 0.5, 1.5) if parameter.numel() > 3 else torch.nn.init.uniform_(parameter, -0.2, 0.2)
        (folder / f"fold_{fold}").mkdir()
        torch.save({"network_weights": net.state_dict(), "optimizer_state": {}, "trainer_name": "nnUNetTrainer", "current_epoch": 1,
                    "init_args": {"configuration": configuration, "fold": fold}, "inference_allowed_mirroring_axes": (0, 1)},
                   folder / f"fold_{fold}" / "checkpoint_final.pth")
    return folder


def expected(folder, files, name, values, logits=True):
    """The image as the network gets it, its logits and the labels, in nnU-Net's order of axes."""
    predictor = nnUNetPredictor(use_mirroring=False, device=torch.device("cpu"), allow_tqdm=False)
    predictor.initialize_from_trained_model_folder(str(folder), None)
    preprocessor = predictor.configuration_manager.preprocessor_class(verbose=False)
    data, _, properties = preprocessor.run_case([str(f) for f in files], None, predictor.plans_manager,
                                                predictor.configuration_manager, predictor.dataset_json)
    values[name + ".prepared"] = np.ascontiguousarray(data.astype(np.float32))
    if not logits:
        return
    # It sums windows in 16 bits, in which the weights at an image's corners are noise; here they are summed in 32.
    sums, torch.half, weights = torch.half, torch.float32, prediction.compute_gaussian
    prediction.compute_gaussian = lambda *args, **more: weights(*args, dtype=torch.float16, **more).float()
    made = predictor.predict_logits_from_preprocessed_data(torch.from_numpy(data))
    torch.half, prediction.compute_gaussian = sums, weights
    values[name + ".logits"] = made.numpy().astype(np.float32)
    from nnunetv2.inference.export_prediction import convert_predicted_logits_to_segmentation_with_correct_shape as convert
    values[name + ".labels"] = np.ascontiguousarray(
        convert(made, predictor.plans_manager, predictor.configuration_manager, predictor.label_manager, properties).astype(np.uint8))


def smooth(rng, shape):
    values = rng.random([n // 3 + 2 for n in shape])
    for axis, n in enumerate(shape):
        at = np.linspace(0, values.shape[axis] - 1, n)
        low = np.minimum(at.astype(int), values.shape[axis] - 2)
        part = (at - low).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        values = values.take(low, axis) * (1 - part) + values.take(low + 1, axis) * part
    return values


def write_volume(path, values, spacing):
    image = sitk.GetImageFromArray(values)
    image.SetSpacing(spacing[::-1])
    image.SetOrigin((5, -3, 2))
    sitk.WriteImage(image, str(path), True)


def main():
    shutil.rmtree(here, ignore_errors=True)
    (here / "images").mkdir(parents=True)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    values = {}
    # Planes: two folds, classes.
    planes = make("Dataset001_Planes", "2d", {
        "patch_size": [32, 48], "spacing": [1, 1], "normalization_schemes": ["ZScoreNormalization"], "use_mask_for_norm": [False],
        "architecture": network(2, 3, [2, 2, 2], kernel_sizes=[[3, 3]] * 3, strides=[[1, 1], [2, 2], [2, 2]])},
        {"background": 0, "cell": 1, "edge": 2}, 1, "NaturalImage2DIO", ".png", folds=2)
    picture = (250 * smooth(rng, (50, 61))).astype(np.uint8)
    picture[:5] = 0
    io.imsave(here / "images" / "plane_0000.png", picture, check_contrast=False)
    expected(planes, [here / "images" / "plane_0000.png"], "planes", values)
    # Volumes of two channels, whose second axis goes first: a CT, and what is not 0 of the other.
    volume_settings = {
        "patch_size": [8, 16, 16], "spacing": [3.0, 1.0, 1.25],
        "normalization_schemes": ["CTNormalization", "ZScoreNormalization"], "use_mask_for_norm": [False, True],
        "architecture": network(3, 2, [1, 2], residual=True, kernel_sizes=[[1, 3, 3], [3, 3, 3]], strides=[[1, 1, 1], [1, 2, 2]])}
    ct = {"0": {"mean": 40.5, "std": 310.25, "percentile_00_5": -300.0, "percentile_99_5": 420.0, "median": 0, "min": -900, "max": 900},
          "1": {"mean": 1, "std": 1, "percentile_00_5": 0, "percentile_99_5": 1, "median": 0, "min": 0, "max": 1}}
    volumes = make("Dataset002_Volumes", "3d_fullres", volume_settings, {"background": 0, "organ": 1}, 2, "SimpleITKIO", ".nii.gz",
                   order=(1, 0, 2), intensities=ct)
    for case, spacing, shape in (("same", (1.0, 3.0, 1.25), (26, 13, 24)), ("finer", (0.75, 1.5, 1.25), (24, 16, 20))):
        files = []
        for channel in range(2):
            image = (1400 * smooth(rng, shape) - 600).astype(np.int16)
            if channel == 1:
                image = np.abs(image)
                image[8:12, 4:7, 6:9] = 0  # a hole
            image[:3], image[:, -2:], image[..., :4] = 0, 0, 0
            files.append(here / "images" / f"{case}_{channel:04}.nii.gz")
            write_volume(files[-1], image, spacing)
        expected(volumes, files, case, values, logits=True)
    # Planes of a volume, along its second axis, resampled within the planes.
    slices = make("Dataset003_Slices", "2d", {
        "patch_size": [16, 16], "spacing": [1.0, 1.0], "normalization_schemes": ["ZScoreNormalization"], "use_mask_for_norm": [False],
        "architecture": network(2, 2, [1, 1], kernel_sizes=[[3, 3]] * 2, strides=[[1, 1], [2, 2]])},
        {"background": 0, "organ": 1}, 1, "SimpleITKIO", ".nii.gz", order=(1, 0, 2))
    expected(slices, [here / "images" / "same_0000.nii.gz"], "slices", values)
    # Other ways of resampling.
    for number, (case, fn, kwargs, spacing) in enumerate((
            ("spline", "resample_data_or_seg_to_shape", {**SPLINE, "order": 3}, [1.1, 1.3, 0.9]),
            ("torch", "resample_torch_fornnunet", {"is_seg": False, "force_separate_z": None, "memefficient_seg_resampling": False}, [4.0, 1.0, 1.0]),
            ("simple", "resample_torch_simple", {"is_seg": False}, [1.0, 1.2, 0.7]))):
        folder = make(f"Dataset01{number}_{case.title()}", "3d_fullres", {
            **volume_settings, "spacing": spacing, "resampling_fn_data": fn, "resampling_fn_data_kwargs": kwargs,
            "normalization_schemes": ["RescaleTo01Normalization", "NoNormalization"], "use_mask_for_norm": [False, False]},
            {"background": 0, "organ": 1}, 2, "SimpleITKIO", ".nii.gz")
        files = [here / "images" / f"finer_{channel:04}.nii.gz" for channel in range(2)]
        if case == "simple":  # it has other arguments than nnU-Net's prediction gives
            from nnunetv2.preprocessing.resampling.resample_torch import resample_torch_simple
            import nnunetv2.preprocessing.preprocessors.default_preprocessor as module
            del module
            from nnunetv2.utilities.plans_handling import plans_handler
            plans_handler.recursive_find_resampling_fn_by_name = lambda name, find=plans_handler.recursive_find_resampling_fn_by_name: (
                (lambda data, shape, *_, **kw: resample_torch_simple(data, shape, **kw)) if name == "resample_torch_simple" else find(name))
        expected(folder, files, case, values, logits=False)
        plans = json.loads((folder / "plans.json").read_text())["configurations"]["3d_fullres"]
        (here / f"{case}.json").write_text(json.dumps({key: plans[key] for key in (
            "normalization_schemes", "use_mask_for_norm", "spacing", "resampling_fn_data", "resampling_fn_data_kwargs")}) + "\n")
        shutil.rmtree(folder.parent)
    save_file(values, here / "expected.safetensors")


main()
