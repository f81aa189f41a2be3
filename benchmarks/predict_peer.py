"""One image by MONAI's sliding window: predict_peer.py WEIGHTS IMAGE MASK THREADS DIMS CLASSES FILTERS ROI."""
import sys

import safetensors.torch
import tifffile
import torch
from monai.inferers import SlidingWindowInferer
from monai.networks.nets import DynUNet
from monai.transforms import NormalizeIntensity

weights, image_path, mask_path = sys.argv[1:4]
threads, dims, classes = map(int, sys.argv[4:7])
filters, roi = ([int(number) for number in text.split(",")] for text in sys.argv[7:9])
torch.set_num_threads(threads)
layers = len(filters)
net = DynUNet(dims, 1, classes, [3] * layers, [1] + [2] * (layers - 1), [2] * (layers - 1), filters=filters).eval()
net.load_state_dict(safetensors.torch.load_file(weights), strict=False)
image = torch.from_numpy(tifffile.imread(image_path).squeeze().astype("float32"))[None]
image = torch.as_tensor(NormalizeIntensity(channel_wise=True)(image))[None]
with torch.inference_mode():
    logits = SlidingWindowInferer(roi, 4, overlap=0.25, mode="gaussian")(image, net)
mask = logits[0].argmax(0) if classes > 1 else logits[0, 0] > 0
tifffile.imwrite(mask_path, mask.to(torch.uint8).numpy())
