#!/usr/bin/env python3
"""Trains a tiny StarDist2D on generated discs and writes stardist/model.ckpt by scripts/convert_stardist.py, stardist/image.npy and
stardist/labels.npy: StarDist's own predict_instances() of that image, whose sides no pooling divides.

make_stardist_model.py: needs stardist, csbdeep, tensorflow. Each training gives another model.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
from csbdeep.utils import normalize  # noqa: E402
from make_stars import objects  # noqa: E402
from stardist.models import Config2D, StarDist2D  # noqa: E402

HERE = Path(__file__).resolve().parent


def picture(labels, seed):
    random = np.random.RandomState(seed)
    bright = random.uniform(90, 160, 256)
    bright[0] = 30
    return np.clip(bright[labels] + random.normal(0, 12, labels.shape), 0, 255).astype(np.uint8)


labels = objects((202, 231), (19, 19), (5, 9), (1, 1)).astype(np.uint16)
image = picture(labels, 0)
config = Config2D(n_rays=16, grid=(2, 2), unet_n_depth=2, unet_n_filter_base=6, net_conv_after_unet=16, train_patch_size=(64, 64),
                  train_batch_size=4, train_epochs=2, train_steps_per_epoch=80, train_learning_rate=4e-3, train_tensorboard=False,
                  train_n_val_patches=4)
with tempfile.TemporaryDirectory() as folder:
    model = StarDist2D(config, name="model", basedir=folder)
    model.train([normalize(image, 1, 99.8)], [labels], validation_data=([normalize(image, 1, 99.8)], [labels]),
                augmenter=lambda x, y: (x[::-1], y[::-1]) if np.random.rand() < 0.5 else (x, y))
    (Path(folder) / "model" / "thresholds.json").write_text(json.dumps({"prob": 0.4, "nms": 0.3}))
    (HERE / "stardist").mkdir(exist_ok=True)
    subprocess.run([sys.executable, HERE.parent.parent / "scripts" / "convert_stardist.py", Path(folder) / "model",
                    HERE / "stardist" / "model.ckpt"], check=True)
    part = picture(labels[:101, :131], 1)
    found, _ = StarDist2D(None, name="model", basedir=folder).predict_instances(normalize(part, 1, 99.8))
    np.save(HERE / "stardist" / "image.npy", part)
    np.save(HERE / "stardist" / "labels.npy", found.astype(np.uint8))
    print(found.max(), "objects of", len(np.unique(labels[:101, :131])) - 1)
