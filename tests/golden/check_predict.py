"""Compares `predict` with PyTorch + MONAI for the same weights, image and windows.

  predict checkpoint.ckpt_path=CKPT data.path=IMAGE predict.save=logits inference_args.roi_size=null paths.output_dir=OUT
  python tests/golden/check_predict.py CKPT IMAGE OUT/NAME.ome.tif

The checkpoint's weights go into monai.networks.nets.DynUNet as they are; its configuration says the rest.
Exit code 1 when a logit differs by 1e-4 or more.
"""
import sys

import numpy as np
import tifffile
import torch
import yaml
from monai.inferers import sliding_window_inference
from monai.networks.nets import DynUNet
from monai.transforms import NormalizeIntensity
from safetensors import safe_open

checkpoint, image_path, logits_path = sys.argv[1:]
with safe_open(checkpoint, "pt") as file:
    config = yaml.safe_load(file.metadata()["config"])
    weights = {key[len("model."):]: file.get_tensor(key) for key in file.keys() if key.startswith("model.")}
model, window = config["model"], config["task"]["inference_args"]
net = DynUNet(
    model["spatial_dims"], model["in_channels"], model["out_channels"], model["kernel_size"], model["strides"],
    model["upsample_kernel_size"], model["filters"], norm_name=("INSTANCE", {"affine": True}), res_block=model["res_block"],
)
missing, unexpected = net.load_state_dict(weights, strict=False)
assert not unexpected and all(key.startswith("skip_layers.") for key in missing), (missing, unexpected)

image = tifffile.imread(image_path).astype(np.float32)[None]  # (C,[D,]H,W)
image = NormalizeIntensity(channel_wise=True)(image)[None]
with torch.inference_mode():
    expected = sliding_window_inference(
        torch.as_tensor(image), window["roi_size"], window["sw_batch_size"], net.eval(), overlap=window["overlap"],
        mode=window["mode"],
    )[0].numpy()
logits = tifffile.imread(logits_path).reshape(expected.shape)
difference = float(np.abs(logits - expected).max())
print(f"{logits.shape} logits from {expected.min():.3f} to {expected.max():.3f}, largest difference {difference:.2e}")
sys.exit(difference >= 1e-4)
