"""One image by MONAI's sliding window: predict_peer.py WEIGHTS.safetensors IMAGE.tif MASK.tif THREADS."""
import sys

import safetensors.torch
import tifffile
import torch
from monai.inferers import SlidingWindowInferer
from monai.networks.nets import DynUNet
from monai.transforms import NormalizeIntensity

weights, image_path, mask_path, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
torch.set_num_threads(threads)
net = DynUNet(2, 1, 1, [3] * 4, [1, 2, 2, 2], [2] * 3, filters=[32, 64, 128, 256]).eval()
net.load_state_dict(safetensors.torch.load_file(weights), strict=False)
image = torch.from_numpy(tifffile.imread(image_path).squeeze().astype("float32"))[None]
image = torch.as_tensor(NormalizeIntensity(channel_wise=True)(image))[None]
with torch.inference_mode():
    logits = SlidingWindowInferer((512, 512), 4, overlap=0.25, mode="gaussian")(image, net)
tifffile.imwrite(mask_path, (logits[0, 0] > 0).to(torch.uint8).numpy())
