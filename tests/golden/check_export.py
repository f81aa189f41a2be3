"""Compares both files of `export_model` with each other, by PyTorch + MONAI, for several batches and sides.

  export_model checkpoint.ckpt_path=CKPT output=WEIGHTS
  export_model checkpoint.ckpt_path=CKPT format=torchscript output=MODEL
  python tests/golden/check_export.py WEIGHTS MODEL

Exit code 1 when a logit differs by 1e-4 or more.
"""
import math
import sys

import torch
import yaml
from monai.networks.nets import DynUNet
from safetensors import safe_open

weights_path, model_path = sys.argv[1:]
with safe_open(weights_path, "pt") as file:
    config = yaml.safe_load(file.metadata()["config"])
    weights = {key: file.get_tensor(key) for key in file.keys()}
model = config["task"]["model"]
net = DynUNet(
    model["spatial_dims"], model["in_channels"], model["out_channels"], model["kernel_size"], model["strides"],
    model["upsample_kernel_size"], model["filters"], norm_name=("INSTANCE", {"affine": True}), res_block=model["res_block"],
)
missing, unexpected = net.load_state_dict(weights, strict=False)
assert not unexpected and all(key.startswith("skip_layers.") for key in missing), (missing, unexpected)
net.eval()

extra = {"config": ""}
traced = torch.jit.load(model_path, "cpu", _extra_files=extra)
assert yaml.safe_load(extra["config"]) == config
side = math.prod(stride if isinstance(stride, int) else stride[0] for stride in model["strides"])
worst = 0
for batch, counts in ((2, (4, 4, 4)), (1, (4, 6, 8)), (5, (2, 2, 2)), (1, (12, 3, 2))):
    image = torch.rand(batch, model["in_channels"], *(side * count for count in counts[: model["spatial_dims"]]))
    with torch.inference_mode():
        difference = float((traced(image) - net(image)).abs().max())
    print(f"{tuple(image.shape)}: largest difference {difference:.2e}")
    worst = max(worst, difference)
sys.exit(worst >= 1e-4)
