#!/usr/bin/env python3
"""make_seg_npy.py: writes images/cellpose_seg.npy, as cellpose.io.masks_flows_to_seg does (cellpose 4): a dictionary, pickled by numpy. numpy 2."""
import pathlib

import numpy as np

masks = np.arange(12, dtype=np.uint16).reshape(3, 4)
seg = {
    "outlines": masks * 0, "colors": np.zeros((11, 3), np.uint8), "masks": np.asfortranarray(masks), "chan_choose": [0, 0],
    "ismanual": np.zeros(11, bool), "filename": "cells.tif", "flows": [np.zeros((1, 3, 4), np.float32)], "diameter": np.nan,
}  # fmt: skip
np.save(pathlib.Path(__file__).parent / "images/cellpose_seg.npy", seg, allow_pickle=True)
