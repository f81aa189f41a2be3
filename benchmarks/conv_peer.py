"""PyTorch's convolution of 3 pixels a side: conv_peer.py THREADS PASSES N C K SIDES...

Milliseconds (median of the passes) of the output and of the gradients of the input and of the weight, each in the faster of
PyTorch's two layouts, as one JSON line. Memory is kept for the next output, as it is in a training.
"""
import json
import os
import statistics
import sys
import time

KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TOP_PAD_": "200000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
if not KEPT.items() <= os.environ.items():  # the C library reads them when a process begins
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEPT)

import torch

threads, passes, samples, channels, out, *sides = map(int, sys.argv[1:])
torch.set_num_threads(threads)
convolve = torch.nn.functional.conv3d if len(sides) == 3 else torch.nn.functional.conv2d
ones, none = [1] * len(sides), [0] * len(sides)


def milliseconds(work):
    times = []
    for run in range(passes + 1):
        start = time.perf_counter()
        work()
        if run > 0:  # the first one warms up
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def of_layout(layout):
    image = torch.randn(samples, channels, *sides).contiguous(memory_format=layout)
    grad = torch.randn(samples, out, *sides).contiguous(memory_format=layout)
    weight = torch.randn(out, channels, *[3] * len(sides)).contiguous(memory_format=layout)

    def gradients(*needs):
        torch.ops.aten.convolution_backward(grad, image, weight, None, ones, ones, ones, False, none, 1, needs)

    return {
        "forward": milliseconds(lambda: convolve(image, weight, padding=1)),
        "data": milliseconds(lambda: gradients(True, False, False)),
        "weight": milliseconds(lambda: gradients(False, True, False)),
    }


with torch.inference_mode():
    last = torch.channels_last_3d if len(sides) == 3 else torch.channels_last
    layouts = [of_layout(torch.contiguous_format), of_layout(last)]
print(json.dumps({name: round(min(times[name] for times in layouts), 3) for name in layouts[0]}))
