"""MONAI's sliding window around a model that does nothing: sliding_window_peer.py DIMS OVERLAP CLASSES REPEATS. One JSON line."""
import json
import sys
import time

import torch
from monai.inferers import sliding_window_inference

dims, overlap, classes, repeats = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
image = torch.rand(1, 1, 2048, 2048) if dims == 2 else torch.rand(1, 1, 128, 256, 256)
roi = (512, 512) if dims == 2 else (64, 128, 128)


def model(windows):
    return windows if classes == 1 else windows.expand(-1, classes, *windows.shape[2:]).contiguous()


def peak_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


base, least = peak_mb(), 1e9
with torch.inference_mode():
    for i in range(repeats + 1):
        begin = time.process_time()
        output = sliding_window_inference(image, roi, 4, model, overlap, "gaussian")
        least = min(least, time.process_time() - begin) if i else least
        del output
print(json.dumps({"cpu_ms": least * 1e3, "peak_mb": peak_mb() - base}))
