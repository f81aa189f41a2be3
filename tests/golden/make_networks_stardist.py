"""Golden values of StarDist's networks, tests/golden/networks/stardist_*.json: Keras' own, with the weights of network_golden.py.

make_networks_stardist.py: needs stardist, csbdeep and tensorflow. The output is the logit of the probability, and the
distances, each repeated over the voxels of the grid. scripts/convert_stardist.py says which of Keras' weights is which.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
import convert_stardist as convert  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from stardist.models import Config2D, Config3D, StarDist2D, StarDist3D  # noqa: E402
from stardist.rays3d import Rays_GoldenSpiral  # noqa: E402

IMAGE, OUTPUT, SAMPLES = 1_000_003, 2_000_003, 64


def pattern(shape, seed):
    """network_golden.py's."""
    x = (np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64) * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    x = ((x ^ (x >> np.uint64(16))) * 0x45D9F3B) & 0xFFFFFFFF
    return ((x ^ (x >> np.uint64(16))) / 2**31 - 1).reshape(shape)


def value(name, shape, seed):
    """fill()'s of network_golden.py."""
    p = pattern(shape, seed)
    if name.endswith("running_mean"):
        return 0.1 * p
    if name.endswith("running_var"):
        return 1 + 0.5 * np.abs(p)
    if len(shape) >= 2:
        return p * (3 * shape[0] / p.size) ** 0.5
    return 1 + 0.2 * p if name.endswith("weight") else 0.1 * p


def ours(array):
    """Keras' kernel in torch's order."""
    return np.moveaxis(array, (-1, -2), (0, 1)) if array.ndim > 2 else array


def variables(keras, config, dims):
    """{our name: the variable of Keras}: the converter's mapping, of numbers that tell the weights apart."""
    numbers, weights = {}, {}
    for layer in keras.layers:
        for variable in layer.weights:
            numbers[len(numbers)] = variable
            part = variable.path.split("/")[-1]
            weights.setdefault(layer.name, {})[part] = np.full([1] * len(variable.shape), len(numbers) - 1)
    state = convert.state_of(config, weights, dims)
    return {name: numbers[int(np.ravel(number)[0])] for name, number in state.items() if "num_batches" not in name}


def case(name, kind, config, shape, mode="eval"):
    tf.keras.backend.clear_session()
    with tempfile.TemporaryDirectory() as folder:
        keras = kind(config, name="model", basedir=folder).keras_model
        saved = json.loads((Path(folder) / "model" / "config.json").read_text())
    keras.get_layer("prob").activation = tf.keras.activations.linear
    dims = len(shape) - 2
    options, _ = convert.options_of(saved, dims)
    of_keras = variables(keras, saved, dims)
    names = sorted([*of_keras, *(n.replace("running_var", "num_batches_tracked") for n in of_keras if n.endswith("running_var"))])
    parameters = []
    for seed, weight in enumerate(names):
        size = list(ours(of_keras[weight].numpy()).shape) if weight in of_keras else []
        parameters.append([weight, size])
        if weight in of_keras:
            filled = value(weight, size, seed)
            of_keras[weight].assign(np.moveaxis(filled, (0, 1), (-1, -2)) if len(size) > 2 else filled)
    image = tf.constant(np.moveaxis(pattern(shape, IMAGE), 1, -1), tf.float32)
    trained = {n: v for n, v in of_keras.items() if "running" not in n}
    with tf.GradientTape() as tape:
        tape.watch(image)
        output = tf.concat(keras(image, training=mode == "train"), -1)
        for axis, times in enumerate(config.grid, 1):
            output = tf.repeat(output, times, axis)
        output = tf.transpose(output, [0, dims + 1, *range(1, dims + 1)])
        loss = tf.reduce_sum(tf.cast(output, tf.float64) * pattern(output.shape, OUTPUT))
    gradients = tape.gradient(loss, [image, *(v.value for v in trained.values())])
    gradients = [np.asarray(g, np.float64) for g in gradients]
    gradients = [np.moveaxis(gradients[0], -1, 1), *map(ours, gradients[1:])]
    flat = np.asarray(output, np.float64).ravel()
    entry = {
        "name": name, "peer": f"stardist.models.{kind.__name__}", "model": options, "mode": mode, "image": list(shape),
        "parameters": parameters,
        "outputs": [{"shape": list(output.shape), "largest": float(np.abs(flat).max()),
                     "values": flat[:: max(1, flat.size // SAMPLES)][:SAMPLES].tolist()}],
        "gradients": {n: [float(np.linalg.norm(g)), float((g * pattern(g.shape, 0)).sum())]
                      for n, g in zip(["", *trained], gradients)}}
    (HERE / "networks" / f"{name}.json").write_text(json.dumps(entry, separators=(",", ":")) + "\n")
    print(name, keras.count_params(), tuple(output.shape), float(np.abs(flat).max()))


SMALL = dict(unet_n_filter_base=4, net_conv_after_unet=6)
case("stardist_2d", StarDist2D, Config2D(n_rays=8, **SMALL), [2, 1, 16, 24])
case("stardist_grid_2d", StarDist2D, Config2D(n_rays=8, n_channel_in=3, grid=(2, 2), **SMALL), [2, 3, 32, 16])
case("stardist_grid4_2d", StarDist2D, Config2D(
    n_rays=6, grid=(4, 2), unet_n_depth=2, unet_n_conv_per_depth=3, unet_batch_norm=True, unet_last_activation="linear",
    unet_kernel_size=(5, 3), unet_activation="elu", unet_n_filter_base=4, net_conv_after_unet=0, unet_prefix="my_"), [1, 1, 32, 32])
case("stardist_3d", StarDist3D, Config3D(
    rays=Rays_GoldenSpiral(6, (2, 1, 1)), anisotropy=(2, 1, 1), grid=(1, 2, 2), unet_pool=(1, 2, 2), **SMALL), [1, 1, 4, 16, 8])
RESNET = dict(backbone="resnet", resnet_n_filter_base=4, net_conv_after_resnet=6, anisotropy=(2, 1, 1), rays=Rays_GoldenSpiral(6, (2, 1, 1)))
case("stardist_resnet_3d", StarDist3D, Config3D(grid=(1, 2, 2), **RESNET), [1, 1, 5, 8, 12])
case("stardist_resnet_norm_3d", StarDist3D, Config3D(
    grid=(2, 4, 4), resnet_n_blocks=3, resnet_n_conv_per_block=2, resnet_batch_norm=True, n_channel_in=2, **RESNET),
    [2, 2, 4, 8, 8], mode="train")
