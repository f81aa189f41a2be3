#!/usr/bin/env python3
"""Writes exported/sides/*.pt2: networks that take some sides alone, though no condition of their graphs says which.

They are what torch.export.save writes of `forward()` in the comments, with all weights 0.1, and without stacks; torch is not needed.
"""

import json
import pathlib
import struct
import zipfile

SYMBOLS = [f"Symbol('{name}', positive=True, integer=True)" for name in ("s31", "s77", "s27")]


def tensor(name):
    return {"as_tensor": {"name": name}}


def shape(*sides):
    sizes = [{"as_int": n} if isinstance(n, int) else {"as_expr": {"expr_str": n, "hint": {"as_int": 32}}} for n in sides]
    return {"dtype": 7, "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None}, "strides": [],
            "storage_offset": {"as_int": 0}, "layout": 7}  # fmt: skip


def call(target, result, **inputs):
    arguments = [{"name": name, "arg": value, "kind": 1} for name, value in inputs.items()]
    return {"target": "torch.ops.aten." + target, "inputs": arguments, "outputs": [tensor(result)], "metadata": {},
            "is_hop_single_tensor_return": None}  # fmt: skip


def whole(*numbers):
    return {"as_ints": list(numbers)}


def write(path, calls, weights, least=2):
    parameters = [{"parameter": {"arg": {"name": name.replace(".", "_")}, "parameter_name": name}} for name in weights]
    signature = {"input_specs": [*parameters, {"user_input": {"arg": tensor("x")}}], "output_specs": [{"user_output": {"arg": tensor("y")}}]}
    image = shape(SYMBOLS[0], 1, *SYMBOLS[1:])
    graph = {"inputs": [tensor("x")], "outputs": [tensor("y")], "nodes": calls, "tensor_values": {"x": image, "y": image},
             "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": True, "custom_obj_values": {}, "sym_float_values": {}}  # fmt: skip
    ranges = {name: {"min_val": low, "max_val": None} for name, low in (("s31", 1), ("s77", least), ("s27", least))}
    program = {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}},
               "opset_version": {"aten": 10}, "range_constraints": ranges, "schema_version": {"major": 8, "minor": 8}, "verifiers": ["TRAINING"],
               "torch_version": "2.11.0", "guards_code": []}  # fmt: skip
    config, files = {}, {"models/model.json": json.dumps(program).encode()}
    for i, (name, sides) in enumerate(weights.items()):
        count, strides = 1, []
        for side in reversed(sides):
            strides.insert(0, {"as_int": count})
            count *= side
        files[f"data/weights/weight_{i}"] = struct.pack(f"<{count}f", *[0.1] * count)
        meta = {**shape(*sides), "requires_grad": True, "strides": strides}
        config[name] = {"path_name": f"weight_{i}", "is_param": True, "use_pickle": False, "tensor_meta": meta}
    files["data/weights/model_weights_config.json"] = json.dumps({"config": config}).encode()
    files |= {"data/constants/model_constants_config.json": b'{"config": {}}', "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo("net/" + name), data)


def strided(side):
    """conv_transpose2d(conv2d(x, stride=side), stride=side)"""
    steps = {"stride": whole(side, side)}
    return [call("conv2d.default", "h", input=tensor("x"), weight=tensor("a_weight"), **steps),
            call("conv_transpose2d.input", "y", input=tensor("h"), weight=tensor("b_weight"), **steps)]  # fmt: skip


def main():
    folder = pathlib.Path(__file__).parent / "exported" / "sides"
    folder.mkdir(exist_ok=True)
    first = {"input": tensor("x"), "weight": tensor("a_weight")}
    for side in (2, 14):
        write(folder / f"strided_{side}.pt2", strided(side), {"a.weight": [2, 1, side, side], "b.weight": [2, 1, side, side]})
    write(folder / "least_4.pt2", strided(4), {"a.weight": [2, 1, 4, 4], "b.weight": [2, 1, 4, 4]}, least=40)
    # interpolate(max_pool2d(conv2d(x), 8), scale_factor=8)
    write(folder / "pooled_8.pt2",
          [call("conv2d.default", "h", **first), call("max_pool2d.default", "p", self=tensor("h"), kernel_size=whole(8, 8)),
           call("upsample_nearest2d.vec", "y", input=tensor("p"), output_size={"as_none": []}, scale_factors={"as_floats": [8.0, 8.0]})],
          {"a.weight": [1, 1, 1, 1]})  # fmt: skip
    # pixel_shuffle(conv2d(x, stride=3), 3)
    write(folder / "shuffled_3.pt2",
          [call("conv2d.default", "h", **first, stride=whole(3, 3)), call("pixel_shuffle.default", "y", self=tensor("h"), upscale_factor={"as_int": 3})],
          {"a.weight": [9, 1, 3, 3]})  # fmt: skip
    write(folder / "any_1.pt2", [call("conv2d.default", "y", **first)], {"a.weight": [1, 1, 1, 1]})


if __name__ == "__main__":
    main()
