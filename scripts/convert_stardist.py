#!/usr/bin/env python3
"""Makes a checkpoint of a StarDist model: `predict checkpoint.ckpt_path=OUT.ckpt data.path=image.tif` gives its labels.

    scripts/convert_stardist.py FOLDER OUT.ckpt

FOLDER holds config.json, weights_best.h5 (else another .h5) and perhaps thresholds.json, as StarDist writes them. Needs numpy
and h5py. Grid, rays, anisotropy, thresholds, channels and the normalization (percentiles 1 and 99.8 of each channel) are in
the checkpoint. Classes of a model with n_classes are left out.
"""
import json
import sys
from pathlib import Path

import h5py
import numpy as np


def fail(text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


def layers(config, dims):
    """Our layers and Keras' names of them, None where Keras numbers them, in the order in which StarDist makes them."""
    grid, steps = list(config["grid"]), 0
    while 2**steps < max(grid):
        steps += 1
    if config["backbone"] == "resnet":
        yield from (("first.no_0.conv", None), ("first.no_1.conv", None))
        for block in range(config["resnet_n_blocks"]):
            yield from ((f"block_{block}.inner.no_{i}.same.conv", None) for i in range(config["resnet_n_conv_per_block"]))
            if block < steps:
                yield f"block_{block}.shortcut.conv", None
    else:
        count, depth, prefix = config["unet_n_conv_per_depth"], config["unet_n_depth"], config.get("unet_prefix", "")
        yield from ((f"grid_{step}.no_{i}.conv", None) for step in range(steps) for i in range(count))
        yield from ((f"down_level_{n}.no_{i}.conv", f"{prefix}down_level_{n}_no_{i}") for n in range(depth) for i in range(count))
        last = [*range(count - 1), count]  # csbdeep's number of the last one
        yield from ((f"middle.no_{i}.conv", f"{prefix}middle_{last[i]}") for i in range(count))
        yield from ((f"up_level_{n}.no_{i}.conv", f"{prefix}up_level_{n}_no_{last[i]}")
                    for n in reversed(range(depth)) for i in range(count))
    if config[f"net_conv_after_{config['backbone']}"] > 0:
        yield "features.no_0.conv", "features"
    yield from (("prob", "prob"), ("dist", "dist"))


def read_weights(path):
    """{layer: {kernel, bias ...: array}} of a file of Keras 2, weights alone or a whole model."""
    found = {}
    with h5py.File(path) as file:
        root = file.get("model_weights", file)
        if "layers" in root:
            fail(f"{path}: Keras 3's own layout; expected StarDist's: model.keras_model.save_weights('weights_best.h5')")
        for layer in root:
            def take(name, data, layer=layer):
                if isinstance(data, h5py.Dataset):
                    found.setdefault(layer, {})[name.split("/")[-1].split(":")[0]] = data[()]
            if isinstance(root[layer], h5py.Group):
                root[layer].visititems(take)
    return found


def numbered(weights, kind):
    """Layers that Keras named by itself: conv2d, conv2d_1, conv2d_2 ..."""
    names = [name for name in weights if name == kind or name.startswith(kind + "_") and name[len(kind) + 1:].isdigit()]
    return sorted(names, key=lambda name: int(name[len(kind) + 1:] or 0))


def state_of(config, weights, dims):
    """The weights under our names, in torch's order of axes."""
    state, convs, norms = {}, numbered(weights, f"conv{dims}d"), numbered(weights, "batch_normalization")
    left = set(weights) - set(convs + norms) - {"features_class", "prob_class"}  # classes are left out
    has_norms = config[f"{config['backbone']}_batch_norm"]
    for name, keras in layers(config, dims):
        left.discard(keras)
        keras = keras or convs.pop(0)
        for part, array in weights[keras].items():
            kernel = part == "kernel"
            state[f"{name}.{'weight' if kernel else part}"] = np.moveaxis(array, (-1, -2), (0, 1)) if kernel else array
        if has_norms and name.split(".")[0].split("_")[0] in ("down", "middle", "up", "block") and "shortcut" not in name:
            norm, to = weights[norms.pop(0)], name.removesuffix(".conv").removesuffix(".same") + ".norm."
            state.update({to + ours: norm[part] for ours, part in (
                ("weight", "gamma"), ("bias", "beta"), ("running_mean", "moving_mean"), ("running_var", "moving_variance"))})
            state[to + "num_batches_tracked"] = np.int64(0)
    if left or convs or norms:
        fail(f"layers that config.json does not name: {', '.join(sorted(left) + convs + norms)}")
    return state


def options_of(config, dims):
    """The network's options, and the anisotropy of its rays."""
    backbone, anisotropy = config["backbone"], None
    if dims == 3:
        rays = config["rays_json"]
        if rays["name"] != "Rays_GoldenSpiral":
            fail(f"{rays['name']}: expected Rays_GoldenSpiral")
        anisotropy = rays["kwargs"].get("anisotropy")

    def known(activation):
        if activation not in ("relu", "elu", "selu", "gelu", "tanh", "sigmoid", "swish", "silu", "mish", "linear"):
            fail(f"the activation {activation}: expected relu, elu, selu, gelu, tanh, sigmoid, swish, silu, mish or linear")
        return "" if activation == "linear" else activation

    activation = known(config[f"{backbone}_activation"])
    options = {
        "_target_": "StarDist", "spatial_dims": dims, "in_channels": config["n_channel_in"],
        "out_channels": config["n_rays"] + 1, "backbone": backbone, "grid": list(config["grid"]),
        "kernel_size": list(config[f"{backbone}_kernel_size"]), "n_filter_base": config[f"{backbone}_n_filter_base"],
        "activation": activation, "batch_norm": config[f"{backbone}_batch_norm"],
        "net_conv_after": config[f"net_conv_after_{backbone}"]}
    if backbone == "resnet":
        return {**options, "n_depth": config["resnet_n_blocks"], "n_conv_per_depth": config["resnet_n_conv_per_block"]}, anisotropy
    if config.get("unet_expansion", 2) != 2:
        fail(f"unet_expansion {config['unet_expansion']}: expected 2")
    return {**options, "n_depth": config["unet_n_depth"], "n_conv_per_depth": config["unet_n_conv_per_depth"],
            "pool": list(config["unet_pool"]), "last_activation": known(config.get("unet_last_activation") or config["unet_activation"]),
            "dropout": config.get("unet_dropout") or 0}, anisotropy


def configuration(config, thresholds, dims):
    model, anisotropy = options_of(config, dims)
    pool = [side ** model["n_depth"] for side in model["pool"]] if "pool" in model else [1] * dims
    stars = {"prob_thresh": thresholds.get("prob") or 0.5, "nms_thresh": thresholds.get("nms") or 0.4, "grid": model["grid"],
             "divisor": [a * b for a, b in zip(pool, model["grid"])], "anisotropy": anisotropy}
    scale = {"_target_": "ScaleIntensityRangePercentilesd", "keys": ["raw"], "lower": 1, "upper": 99.8, "b_min": 0, "b_max": 1,
             "channel_wise": True}
    transforms = [{"_target_": "LoadImaged", "keys": ["raw", "seg"], "spatial_dims": dims}, scale]
    return {
        "spatial_dims": dims, "raw_im_channels": model["in_channels"], "source_col": "raw", "target_col": "seg",
        "task": {
            "_target_": "InstanceTask", "x_key": "raw", "y_key": "seg", "method": "stars", "anisotropy": anisotropy,
            "model": model, "decoder": {"_target_": "InstanceDecoder", "method": "stars", "stars": stars},
            "inference_args": {"roi_size": [0] * dims, "sw_batch_size": 1, "padding_mode": "reflect"}},
        "data": {"transforms": {"valid": transforms}}}


def write_checkpoint(path, state, config):
    """A file of safetensors with the configuration in its metadata."""
    types = {"float32": "F32", "int64": "I64", "float16": "F16"}
    about = {"format": "pt", "cytra_format": "1", "config": json.dumps(config)}
    header, start = {"__metadata__": about}, 0
    for name, array in state.items():
        header[name] = {"dtype": types[array.dtype.name], "shape": array.shape, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in state.values():
            file.write(np.ascontiguousarray(array).tobytes())


def training(out, config, dims):
    """The command line that goes on from the checkpoint."""
    options, anisotropy = options_of(config, dims)
    words = {"spatial_dims": dims, "raw_im_channels": options["in_channels"], "task.anisotropy": anisotropy}
    words.update({f"model.{key}": value for key, value in options.items() if key not in ("_target_", "spatial_dims", "in_channels")})
    given = " ".join(f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in words.items() if value is not None)
    return f"train experiment=im2im/stardist {given} data.path=my_data checkpoint.ckpt_path={out} checkpoint.weights_only=true"


def main():
    if len(sys.argv) != 3:
        fail(__doc__)
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = sorted(folder.glob("*.h5"), key=lambda file: ("best" not in file.name, file.name))
    if not (folder / "config.json").is_file() or not files:
        fail(f"{folder}: expected a folder with config.json and weights_best.h5")
    config = json.loads((folder / "config.json").read_text())
    dims = len(config["net_input_shape"]) - 1
    config = {  # what the first versions of StarDist did not write
        "backbone": "unet", "grid": [1] * dims, "unet_n_conv_per_depth": 2, "unet_pool": [2] * dims, "unet_activation": "relu",
        "unet_batch_norm": False, "net_conv_after_unet": 128, **config}
    thresholds = folder / "thresholds.json"
    thresholds = json.loads(thresholds.read_text()) if thresholds.is_file() else {}
    state = state_of(config, read_weights(files[0]), dims)
    write_checkpoint(out, state, configuration(config, thresholds, dims))
    print(f"{out}: {sum(array.size for array in state.values())} numbers of {files[0].name}. To train it on:\n{training(out, config, dims)}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyError, IndexError, TypeError, ValueError) as error:
        fail(f"{sys.argv[1]}: expected a model that StarDist wrote: {error!r}")
