#!/usr/bin/env python3
"""Writes tests/golden/torch: files of torch.save as users have them, and expected.safetensors with what they hold.

    python tests/golden/make_torch_files.py      (needs benchmarks/requirements.txt)

expected.safetensors: tensors "FILE/NAME"; metadata "places": where in each file the state dict lies.
"""
import collections
import json
import os
import pickle
import warnings
from pathlib import Path

import monai
import torch
from monai.networks.nets import DynUNet
from safetensors.torch import save_file

from make_golden import sort_metadata

folder = Path(__file__).parent / "torch"
expected, places = {}, {}


class System:
    """What unpickling it would run: a shell command that leaves a file behind."""

    def __reduce__(self):
        return os.system, ("touch cytra_was_here",)


def save(name, value, state=None, place="", **options):
    torch.save(value, folder / name, **options)
    if state is None:
        return
    places[name] = place
    for key, tensor in state.items():
        expected[f"{name}/{key}"] = tensor.detach().clone(memory_format=torch.contiguous_format)


def main():
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    state = net.state_dict()
    save("plain.pth", state, state)
    save("legacy.pth", state, state, _use_new_zipfile_serialization=False)
    for protocol in (3, 4, 5):
        save(f"protocol{protocol}.pth", dict(state), state, pickle_protocol=protocol)

    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.rand(2, 1, 5, 5)).sum().backward()
    optimizer.step()
    state = {"net." + key: value for key, value in net.state_dict().items()}
    hyper = {"lr": 1e-3, "name": "caf\u00e9", "betas": (0.9, 0.999), "seed": 2**70, "low": -3, "at": torch.device("cpu"),
             "type": torch.float32, "size": torch.Size([1, 2]), "path": Path("a"), "none": None, "tags": {"a", "b"}}
    lightning = {"epoch": 3, "global_step": 300, "pytorch-lightning_version": "2.5.0", "state_dict": state, "loops": {},
                 "callbacks": {"ModelCheckpoint{'monitor': 'val/loss'}": {"best_model_score": torch.tensor(0.5)}},
                 "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [collections.defaultdict(dict)],
                 "hyper_parameters": hyper, "object": System()}
    save("lightning.ckpt", lightning, state, "state_dict")
    save("nnunet.pth", {"network_weights": state, "current_epoch": 7, "init_args": hyper}, state, "network_weights")
    parameters = dict(net.named_parameters())
    save("nested.pth", {"epoch": 1, "model": {"ema": {}, "state_dict": parameters}}, parameters, "model.state_dict")

    base = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    mixed = {
        "transposed": base.permute(2, 0, 1), "strided": base[:, 1::2, ::3], "tail": base[2], "shared": base,
        "channels_last": torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        "one": torch.tensor(1.5), "empty": torch.zeros(0, 3), "flat": base.view(-1)[7:9], "column": base[:1, :, :1],
        "half": torch.rand(3).half(), "bfloat16": torch.rand(3).bfloat16(), "double": torch.rand(2).double(),
        "int64": torch.tensor([-(2**62), 5]), "int32": torch.tensor([-7, 8], dtype=torch.int32),
        "int16": torch.tensor([-9], dtype=torch.int16), "int8": torch.tensor([-1, 2], dtype=torch.int8),
        "uint8": torch.tensor([200, 3], dtype=torch.uint8), "uint16": torch.tensor([60000], dtype=torch.uint16),
        "uint32": torch.tensor([4000000000], dtype=torch.uint32), "bool": torch.tensor([True, False, True]),
        "parameter": torch.nn.Parameter(torch.rand(2)),
    }
    save("mixed.pth", mixed, mixed)
    old = {key: value for key, value in mixed.items() if key not in ("uint16", "uint32")}
    save("mixed_legacy.pth", old, old, _use_new_zipfile_serialization=False)

    # What must be refused, each with its reason.
    save("malicious.pth", System())
    save("malicious_legacy.pth", System(), _use_new_zipfile_serialization=False)
    save("module.pth", net)
    save("tensor.pth", base)
    save("list.pth", [base])
    save("no_tensors.pth", {"epoch": 1, "optimizer": {"state": {}}})
    save("expanded.pth", {"a": torch.ones(1).expand(1000)})
    save("complex.pth", {"a": torch.zeros(2, dtype=torch.complex64)})
    save("sparse.pth", {"a": torch.eye(2).to_sparse()})
    save("metatensor.pth", {"a": monai.data.MetaTensor(torch.eye(2))})
    torch.jit.script(torch.nn.ReLU()).save(folder / "torchscript.pt")
    (folder / "plain.pkl").write_bytes(pickle.dumps({"a": [1.5]}))

    # MONAI's network of dynunet_2d.safetensors, as a trainer would save it.
    torch.manual_seed(1)
    dynunet = DynUNet(2, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), (4, 6, 8), norm_name=("INSTANCE", {"affine": True})).eval()
    save("dynunet.pth", {"state_dict": {"_orig_mod.module." + k: v for k, v in dynunet.state_dict().items()}})
    expected["dynunet.input"] = torch.rand(1, 1, 16, 24)
    with torch.no_grad():
        expected["dynunet.logits"] = dynunet(expected["dynunet.input"])

    path = folder / "expected.safetensors"
    save_file(expected, path, {"places": json.dumps(places), "torch": torch.__version__.split("+")[0]})
    sort_metadata(path)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{len(list(folder.iterdir()))} files, {size} bytes")


if __name__ == "__main__":
    main()
