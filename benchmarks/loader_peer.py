"""torch's DataLoader doing what bench_loader does: loader_peer.py FOLDER WORKERS EPOCHS numpy|monai. One JSON line."""
import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import tifffile
import torch
from torch.utils.data import DataLoader, Dataset

folder, workers, epochs, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


class NumpyImages(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = tifffile.imread(self.paths[index])
        y, x = np.random.randint(0, image.shape[0] - 255), np.random.randint(0, image.shape[1] - 255)
        patch = image[y : y + 256, x : x + 256]
        if np.random.rand() < 0.5:
            patch = patch[::-1]
        if np.random.rand() < 0.5:
            patch = patch[:, ::-1]
        if np.random.rand() < 0.5:
            patch = np.rot90(patch, np.random.randint(1, 4))
        patch = patch.astype(np.float32)
        patch = (patch - patch.mean()) / patch.std()
        return torch.from_numpy(np.ascontiguousarray(patch)[None])


def monai_images(paths):
    from monai.data import Dataset as MonaiDataset
    from monai import transforms as T

    def load(path):
        return torch.from_numpy(tifffile.imread(path).astype(np.float32)[None])

    return MonaiDataset(
        paths,
        T.Compose(
            [
                load,
                T.RandSpatialCrop(roi_size=(256, 256), random_size=False),
                T.RandFlip(prob=0.5, spatial_axis=0),
                T.RandFlip(prob=0.5, spatial_axis=1),
                T.RandRotate90(prob=0.5),
                T.NormalizeIntensity(),
                T.ToTensor(track_meta=False),
            ]
        ),
    )


class Empty(Dataset):
    def __init__(self, count):
        self.sample = torch.zeros(1, 1, 1)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.sample


def loader_of(dataset):
    return DataLoader(
        dataset, batch_size=16, num_workers=workers, shuffle=True, persistent_workers=workers > 0, prefetch_factor=2 if workers else None
    )


def family():
    """This process and its children."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return [str(me), *children]


def memory_mb():
    """Memory of all processes; what they share is counted once."""
    total = 0
    for process in family():
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            pass
    return total / 1024


peak = 0.0
running = True


def watch():
    global peak
    while running:
        peak = max(peak, memory_mb())
        time.sleep(0.1)


paths = sorted(map(str, Path(folder).glob("*.tif")))
loader = loader_of(monai_images(paths) if kind == "monai" else NumpyImages(paths))
watcher = threading.Thread(target=watch)
watcher.start()
for _ in loader:
    pass
begin = time.perf_counter()
images = 0
for _ in range(epochs):
    for batch in loader:
        images += batch.shape[0]
seconds = time.perf_counter() - begin
running = False
watcher.join()
del loader
empty = loader_of(Empty(16 * 500))
for _ in empty:
    pass
begin = time.perf_counter()
batches = sum(1 for _ in empty)
overhead = time.perf_counter() - begin
print(
    json.dumps(
        {"ms_per_image": seconds * 1e3 / images, "peak_mb": peak, "us_per_empty_batch": overhead * 1e6 / batches}
    )
)
