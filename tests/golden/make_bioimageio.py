"""Packages of bioimage.io, which bioimageio.core 0.11 tests, and its preprocessing and postprocessing.

pip install torch==2.11.0 monai bioimageio.core "pydantic<2.12" onnx onnxruntime safetensors stardist cellpose; python make_bioimageio.py
"""
import pathlib
import shutil
import warnings

import numpy as np
import torch
import yaml
from monai.networks.nets import BasicUNet
from safetensors.numpy import save_file
from torch import nn

warnings.filterwarnings("ignore")
here = pathlib.Path(__file__).parent / "bioimageio"


class Steps(nn.Module):
    """Two convolutions of images whose axes are torch's, or end with the channels, or have neither batch nor channels."""

    def __init__(self, channels, outputs, dims, order=None):
        super().__init__()
        conv = nn.Conv2d if dims == 2 else nn.Conv3d
        self.first, self.last = conv(channels, 3, 3, padding=1), conv(3, outputs, 1)
        self.order = order

    def forward(self, image):
        if self.order == "plane":
            return self.last(torch.relu(self.first(image[None, None])))[0, 0]
        if self.order == "last":
            image = image.permute(0, 3, 1, 2)
        result = self.last(torch.relu(self.first(image)))
        return result.permute(0, 2, 3, 1) if self.order == "last" else result


def axis(text, **more):
    kind = {"b": "batch", "c": "channel"}.get(text, "space")
    given = {"type": kind}
    if kind == "space":
        given["id"] = text
    return {**given, **more}


def common(name, version):
    return {
        "format_version": version, "type": "model", "name": f"Test of {name}", "description": "A model for tests.", "license": "MIT",
        "authors": [{"name": "Cytra"}], "cite": [{"text": "none", "url": "https://example.com/"}], "documentation": "README.md",
        "tags": ["test"], "timestamp": "2026-11-27T00:00:00Z", "covers": [],
        "git_repo": "https://example.com/"}


def operations(descriptions, image, dims, reference=None):
    """What bioimageio.core makes of an array with these axes; `reference`: the values of the tensor "raw"."""
    from bioimageio.core.proc_ops import get_proc
    from bioimageio.core.stat_calculators import compute_measures
    from bioimageio.core import Sample, Tensor, AxisId
    from bioimageio.spec.model import v0_5
    from bioimageio.spec.model.v0_5 import InputTensorDescr, BatchAxis, ChannelAxis, SpaceInputAxis, TensorId
    from pydantic import TypeAdapter
    from bioimageio.core.common import MemberId
    axes = []
    for d, size in zip(dims, image.shape):
        if d == "batch":
            axes.append(BatchAxis())
        elif d == "channel":
            axes.append(ChannelAxis(channel_names=[f"c{i}" for i in range(size)]))
        else:
            axes.append(SpaceInputAxis(id=v0_5.AxisId(d), size=size))
    for text in descriptions:
        proc = TypeAdapter(v0_5.PostprocessingDescr).validate_python(text)
        tensor = InputTensorDescr.model_construct(id=TensorId("image"), axes=axes)
        operator = get_proc(proc, tensor)
        sample = Sample(members={MemberId("image"): Tensor(image, dims=tuple(AxisId(d) for d in dims))}, stat={}, id=None)
        if reference is not None:
            sample.members[MemberId("raw")] = Tensor(reference, dims=tuple(AxisId(d) for d in dims))
        sample.stat = compute_measures(operator.required_measures, [sample])
        operator(sample)
        image = sample.members[MemberId("image")].data.transpose(*dims).values.astype(np.float32)
    return image


def golden_operations():
    cases = {
        "zero_mean": [{"id": "zero_mean_unit_variance", "kwargs": {"axes": ["channel", "y", "x"]}}],
        "zero_mean_channels": [{"id": "zero_mean_unit_variance", "kwargs": {"axes": ["y", "x"]}}],
        "zero_mean_all": [{"id": "zero_mean_unit_variance"}],
        "range": [{"id": "scale_range", "kwargs": {"axes": ["channel", "y", "x"], "min_percentile": 1.5, "max_percentile": 99.2}}],
        "range_channels": [{"id": "scale_range", "kwargs": {"axes": ["y", "x"], "max_percentile": 90.0}}],
        "range_rows": [{"id": "scale_range", "kwargs": {"axes": ["channel", "x"], "max_percentile": 90.0}}],
        "clip": [{"id": "clip", "kwargs": {"min": -0.5, "max": 1.0}}],
        "clip_percentiles": [{"id": "clip", "kwargs": {"min_percentile": 3.0, "max_percentile": 91.0, "axes": ["y", "x"]}}],
        "fixed": [{"id": "fixed_zero_mean_unit_variance", "kwargs": {"mean": 0.25, "std": 2.0}}],
        "fixed_channels": [{"id": "fixed_zero_mean_unit_variance", "kwargs": {"axis": "channel", "mean": [0.5, -1.0], "std": [2.0, 0.5]}}],
        "linear": [{"id": "scale_linear", "kwargs": {"gain": 3.0, "offset": -1.0}}],
        "linear_channels": [{"id": "scale_linear", "kwargs": {"axis": "channel", "gain": [3.0, 0.5], "offset": [1.0, 2.0]}}],
        "binarize": [{"id": "binarize", "kwargs": {"threshold": 0.1}}],
        "sigmoid": [{"id": "sigmoid"}],
        "softmax": [{"id": "softmax"}],
        "cast": [{"id": "scale_linear", "kwargs": {"gain": 50.0, "offset": 0.5}}, {"id": "ensure_dtype", "kwargs": {"dtype": "int16"}}],
        "chain": [{"id": "scale_range", "kwargs": {"axes": ["y", "x"]}}, {"id": "clip", "kwargs": {"min": 0.1, "max": 0.9}},
                  {"id": "scale_linear", "kwargs": {"gain": 2.0, "offset": -1.0}}],
    }
    image = np.random.default_rng(3).normal(size=(1, 2, 9, 11)).astype(np.float32) * np.float32([1, 4]).reshape(1, 2, 1, 1)
    arrays = {"image": image[0]}
    for name, case in cases.items():
        arrays[name] = np.ascontiguousarray(operations(case, image, ("batch", "channel", "y", "x"))[0])
    volume = np.random.default_rng(4).normal(size=(1, 1, 4, 5, 6)).astype(np.float32)
    arrays["volume"] = volume[0]
    case = [{"id": "zero_mean_unit_variance", "kwargs": {"axes": ["y", "x"]}}]
    cases["planes"] = case
    arrays["planes"] = np.ascontiguousarray(operations(case, volume, ("batch", "channel", "z", "y", "x"))[0])
    reference = np.random.default_rng(5).normal(3, 7, size=image.shape).astype(np.float32)
    arrays["reference"] = reference[0]
    for name, identity, kwargs in (
            ("mean_variance", "scale_mean_variance", {}),
            ("mean_variance_channels", "scale_mean_variance", {"axes": ["y", "x"], "eps": 0.01}),
            ("range_reference", "scale_range", {"axes": ["y", "x"], "min_percentile": 2.0, "max_percentile": 95.0})):
        case = [{"id": identity, "kwargs": {**kwargs, "reference_tensor": "raw"}}]
        arrays[name] = np.ascontiguousarray(operations(case, image, ("batch", "channel", "y", "x"), reference)[0])
        cases[name] = [{"id": identity, "kwargs": {**kwargs, "reference_tensor": "input"}}]
    save_file(arrays, here / "operations.safetensors")
    (here / "operations.yaml").write_text(yaml.safe_dump(cases))


def package(name, version, network, image, inputs, outputs, formats, before, after, architecture=None):
    """`image`: of the network's axes; before/after: numpy functions that do what the description says."""
    folder = here / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("A model for tests.\n")
    network.eval()
    tensor = torch.from_numpy(before(image))
    with torch.no_grad():
        result = after(network(tensor).numpy()).astype(np.float32)
    np.save(folder / "test_input.npy", image)
    np.save(folder / "test_output.npy", result)
    weights = {}
    if "torchscript" in formats:
        torch.jit.trace(network, tensor).save(folder / "weights.pt")
        weights["torchscript"] = {"source": "weights.pt", "pytorch_version": torch.__version__.split("+")[0]}
        strip_places(folder / "weights.pt")
    if "onnx" in formats:
        free = {i: f"side{i}" for i in range(tensor.dim()) if i != 1 and "fixed" not in formats}
        torch.onnx.export(network, tensor, folder / "weights.onnx", input_names=["input"], output_names=["output"],
                          dynamic_axes={"input": free, "output": free}, opset_version=17, dynamo=False)
        weights["onnx"] = {"source": "weights.onnx", "opset_version": 17, **({"parent": "torchscript"} if weights else {})}
    if "pytorch_state_dict" in formats:
        torch.save(network.state_dict(), folder / "weights.pt")
        weights["pytorch_state_dict"] = {"source": "weights.pt", "architecture": architecture, "pytorch_version": torch.__version__.split("+")[0]}
    if version.startswith("0.4"):
        for entry in weights.values():
            entry.pop("pytorch_version", None)
        more = {"inputs": [inputs], "outputs": [outputs], "test_inputs": ["test_input.npy"], "test_outputs": ["test_output.npy"]}
    else:
        inputs["test_tensor"] = {"source": "test_input.npy"}
        outputs["test_tensor"] = {"source": "test_output.npy"}
        more = {"inputs": [inputs], "outputs": [outputs]}
    (folder / "rdf.yaml").write_text(yaml.safe_dump({**common(name, version), **more, "weights": weights}, sort_keys=False))
    from bioimageio.core import test_model
    summary = test_model(folder / "rdf.yaml")
    print(name, summary.status)
    if summary.status != "passed":
        summary.display()


def strip_places(path):
    """Removes the paths of the Python sources that torch keeps for messages."""
    import zipfile
    with zipfile.ZipFile(path) as archive:
        parts = [(info, archive.read(info)) for info in archive.infolist() if not info.filename.endswith(".debug_pkl")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for info, data in parts:
            archive.writestr(info.filename, data)


class Stored(nn.Module):
    """A network whose output for its only image is known: the image's first channel is added with weight 0."""

    def __init__(self, output, grid, is_last):
        super().__init__()
        self.output, self.grid, self.is_last = nn.Parameter(torch.from_numpy(output), requires_grad=False), grid, is_last

    def forward(self, image):
        dims = image.dim() - 2
        part = (slice(None), slice(0, 1)) + (slice(None, None, self.grid),) * dims
        weight = image[part] * 0
        shape = list(weight.shape)
        shape[1] = self.output.shape[0]
        made = weight + nn.functional.interpolate(self.output[None].float(), shape[2:], mode="nearest")
        return made.movedim(1, -1) if self.is_last else made


def discs(shape, centres):
    grid = np.indices(shape)
    labels = np.zeros(shape, np.int32)
    for number, (*centre, radius) in enumerate(centres, 1):
        labels[sum((g - c) ** 2 for g, c in zip(grid, centre)) < radius**2] = number
    return labels


def noise(shape, scale, seed):
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def labels_of(identity, kwargs, output):
    """What bioimageio.core makes of a network's output (1,K,...)."""
    from bioimageio.core import AxisId, Sample, Tensor
    from bioimageio.core.common import MemberId
    from bioimageio.core.proc_ops import get_proc
    from bioimageio.spec.model import v0_5
    from pydantic import TypeAdapter
    space = ("y", "x") if output.ndim == 4 else ("z", "y", "x")
    is_last = identity == "stardist_postprocessing"  # bioimageio.core makes such labels
    dims = tuple(map(AxisId, ("batch", *space, "channel") if is_last else ("batch", "channel", *space)))
    proc = TypeAdapter(v0_5.PostprocessingDescr).validate_python({"id": identity, "kwargs": kwargs})
    tensor = v0_5.OutputTensorDescr.model_construct(id=v0_5.TensorId("labels"), axes=[])
    sample = Sample(members={MemberId("labels"): Tensor(output, dims=dims)}, stat={}, id=None)
    get_proc(proc, tensor)(sample)
    return sample.members[MemberId("labels")].transpose(dims).to_numpy()


def objects():
    """Packages whose networks make flows and stars; their test outputs are those of bioimageio.core's postprocessing."""
    from cellpose import dynamics
    from stardist.geometry import star_dist, star_dist3D
    from stardist.rays3d import Rays_GoldenSpiral
    from stardist.utils import edt_prob

    plane = discs((48, 64), [(9, 10, 7), (10, 24, 6), (28, 13, 9), (32, 34, 8), (37, 50, 7), (13, 45, 9), (13, 57, 6)])
    volume = discs((8, 16, 24), [(3, 4, 5, 3.6), (4, 5, 15, 3.7), (4, 12, 6, 3.5), (4, 11, 18, 3.8)])

    def stars(labels, count, grid, anisotropy=None):
        distances = star_dist(labels, count) if labels.ndim == 2 else star_dist3D(labels, Rays_GoldenSpiral(count, anisotropy))
        probability = edt_prob(labels) + noise(labels.shape, 0.02, 1)
        rank = probability[labels > 0].argsort().argsort()
        probability[labels > 0] = np.linspace(0.05, 0.99, rank.size)[rank]  # no two alike: their order gives the numbers
        field = np.moveaxis(distances, -1, 0) + noise((count, *labels.shape), 0.1, 2)
        field = np.concatenate([probability[None].clip(0, 1), field.clip(1e-3)])
        return np.ascontiguousarray(field[(slice(None),) + (slice(None, None, grid),) * labels.ndim]).astype(np.float32)

    flows = dynamics.masks_to_flows_gpu(plane)[0] * 5
    flows = np.concatenate([flows, np.where(plane > 0, 2.0, -2.0)[None]]).astype(np.float32)
    cases = {
        "stars": ("stardist_postprocessing", stars(plane, 16, 1), 1,
                  {"grid": [1, 1], "b": 2, "n_rays": 16, "prob_threshold": 0.5, "nms_threshold": 0.4}),
        "stars_grid": ("stardist_postprocessing", stars(plane, 16, 2), 2,
                       {"grid": [2, 2], "b": [[1, 2], [0, 3]], "n_rays": 16, "prob_threshold": 0.4, "nms_threshold": 0.3}),
        "stars_volume": ("stardist_postprocessing", stars(volume, 24, 1, (2.0, 1.0, 1.0)), 1,
                         {"grid": [1, 1, 1], "b": 1, "n_rays": 24, "prob_threshold": 0.5, "nms_threshold": 0.4, "anisotropy": [2.0, 1.0, 1.0]}),
        "flows": ("cellpose_flow_dynamics", flows + noise(flows.shape, 0.2, 3), 1,
                  {"cellprob_threshold": 0.0, "flow_threshold": 0.4, "do_3D": False, "min_size": 15}),
    }
    for name, (identity, output, grid, kwargs) in cases.items():
        shape = plane.shape if output.ndim == 3 else volume.shape
        letters = "yx" if output.ndim == 3 else "zyx"
        is_last = identity == "stardist_postprocessing"
        channel, space = [axis("c", channel_names=["labels"])], [axis(l, size={"tensor_id": "raw", "axis_id": l}) for l in letters]
        package(name, "0.5.4", Stored(output.astype(np.float16), grid, is_last), noise((1, 1, *shape), 1, 4),
                {"id": "raw", "axes": [axis("b"), axis("c", channel_names=["raw"]), *(axis(l, size={"min": 8, "step": 8}) for l in letters)]},
                {"id": "labels", "axes": [axis("b"), *(space + channel if is_last else channel + space)],
                 "postprocessing": [{"id": identity, "kwargs": kwargs}]},
                ["torchscript"], lambda image: image, lambda made: labels_of(identity, kwargs, made))


def zero_mean(image, axes):
    image = image.astype(np.float64)
    return ((image - image.mean(axes, keepdims=True)) / (image.std(axes, keepdims=True) + 1e-6)).astype(np.float32)


def packages():
    random = np.random.default_rng(1)
    torch.manual_seed(1)

    def same(image):
        return image.astype(np.float32)

    def sigmoid(image):
        return 1 / (1 + np.exp(-image))

    space = {"size": {"min": 8, "step": 8}}
    of = lambda letter: {"size": {"tensor_id": "raw", "axis_id": letter}, "halo": 2}
    package("masks", "0.5.4", Steps(1, 1, 2), random.normal(100, 20, (1, 1, 24, 32)).astype(np.uint8),
            {"id": "raw", "axes": [axis("b"), axis("c", channel_names=["raw"]), axis("y", **space), axis("x", **space)],
             "preprocessing": [{"id": "ensure_dtype", "kwargs": {"dtype": "float32"}},
                               {"id": "zero_mean_unit_variance", "kwargs": {"axes": ["channel", "y", "x"]}}]},
            {"id": "mask", "axes": [axis("b"), axis("c", channel_names=["mask"]), axis("y", **of("y")), axis("x", **of("x"))],
             "postprocessing": [{"id": "sigmoid"}]},
            ["torchscript", "onnx"], lambda image: zero_mean(image, (1, 2, 3)), sigmoid)

    def scaled(image):
        low, high = np.quantile(image, [0.02, 0.97], axis=(1, 2), keepdims=True)
        return ((image - low) / (high - low + 1e-6)).astype(np.float32)

    package("channels_last", "0.5.4", Steps(2, 3, 2, "last"), random.normal(size=(1, 16, 24, 2)).astype(np.float32),
            {"id": "raw", "axes": [axis("b"), axis("y", **space), axis("x", **space), axis("c", channel_names=["a", "b"])],
             "preprocessing": [{"id": "scale_range", "kwargs": {"axes": ["y", "x"], "min_percentile": 2.0, "max_percentile": 97.0}}]},
            {"id": "values", "axes": [axis("b"), axis("y", **of("y")), axis("x", **of("x")), axis("c", channel_names=["a", "b", "c"])],
             "postprocessing": [{"id": "scale_linear", "kwargs": {"gain": 2.0, "offset": 1.0}}]},
            ["torchscript"], scaled, lambda image: 2 * image + 1)
    package("volume", "0.4.10", Steps(2, 2, 3), random.normal(size=(1, 2, 8, 16, 16)).astype(np.float32),
            {"name": "raw", "axes": "bczyx", "data_type": "float32", "shape": {"min": [1, 2, 8, 16, 16], "step": [0, 0, 4, 16, 16]},
             "preprocessing": [{"name": "zero_mean_unit_variance", "kwargs": {"mode": "fixed", "axes": "zyx", "mean": [0.5, -0.5], "std": [2.0, 0.5]}}]},
            {"name": "classes", "axes": "bczyx", "data_type": "float32", "halo": [0, 0, 2, 4, 4],
             "shape": {"reference_tensor": "raw", "scale": [1, 1, 1, 1, 1], "offset": [0, 0, 0, 0, 0]},
             "postprocessing": [{"name": "clip", "kwargs": {"min": -0.25, "max": 0.25}}]},
            ["torchscript"],
            lambda image: ((image - np.float32([0.5, -0.5]).reshape(1, 2, 1, 1, 1)) / (np.float32([2.0, 0.5]) + 1e-6).reshape(1, 2, 1, 1, 1)).astype(np.float32),
            lambda image: image.clip(-0.25, 0.25))
    package("plane", "0.4.10", Steps(1, 1, 2, "plane"), random.normal(size=(20, 28)).astype(np.float32),
            {"name": "raw", "axes": "yx", "data_type": "float32", "shape": [20, 28]},
            {"name": "mask", "axes": "yx", "data_type": "float32", "shape": [20, 28],
             "postprocessing": [{"name": "sigmoid"}, {"name": "binarize", "kwargs": {"threshold": 0.52}}]},
            ["torchscript"], same, lambda image: (sigmoid(image) > 0.52).astype(np.float32))
    package("onnx", "0.5.4", Steps(1, 2, 2), random.normal(size=(1, 1, 16, 24)).astype(np.float32),
            {"id": "raw", "axes": [axis("b", size=1), axis("c", channel_names=["raw"]), axis("y", size=16), axis("x", size=24)]},
            {"id": "classes", "axes": [axis("b"), axis("c", channel_names=["a", "b"]), axis("y", size=16), axis("x", size=24)],
             "postprocessing": [{"id": "softmax"}]},
            ["onnx", "fixed"], same, lambda image: np.exp(image) / np.exp(image).sum(1, keepdims=True))
    package("state_dict", "0.5.4", BasicUNet(spatial_dims=2, in_channels=1, out_channels=1, features=(4, 4, 4, 4, 4, 4)),
            random.normal(size=(1, 1, 32, 48)).astype(np.float32),
            {"id": "raw", "axes": [axis("b"), axis("c", channel_names=["raw"]), axis("y", size={"min": 32, "step": 16}), axis("x", size={"min": 32, "step": 16})]},
            {"id": "values", "axes": [axis("b"), axis("c", channel_names=["a"]), axis("y", size={"tensor_id": "raw", "axis_id": "y"}),
                                      axis("x", size={"tensor_id": "raw", "axis_id": "x"})]},
            ["pytorch_state_dict"], same, lambda image: image,
            {"import_from": "monai.networks.nets", "callable": "BasicUNet",
             "kwargs": {"spatial_dims": 2, "in_channels": 1, "out_channels": 1, "features": [4, 4, 4, 4, 4, 4]}})


here.mkdir(exist_ok=True)
golden_operations()
packages()
objects()
