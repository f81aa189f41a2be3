#!/usr/bin/env python3
"""make_stitch.py: writes stitch.npy, the planes of a stack with objects of their own and what cellpose.utils.stitch3D (4.2) makes of
them. Only these functions of cellpose are run, without the torch that it wants: pip install --no-deps cellpose; pip install numba scipy tqdm."""
import ast
import importlib.util
import pathlib

import numpy as np
from numba import jit
from scipy.sparse import csr_matrix
from tqdm import trange

names = {"np": np, "jit": jit, "trange": trange, "csr_matrix": csr_matrix}
package = pathlib.Path(importlib.util.find_spec("cellpose").submodule_search_locations[0])
for file, wanted in (("metrics.py", ("_label_overlap", "_intersection_over_union")), ("utils.py", ("stitch3D",))):
    tree = ast.parse((package / file).read_text())
    tree.body = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in wanted]
    exec(compile(tree, file, "exec"), names)
names["metrics"] = type("metrics", (), {"_intersection_over_union": staticmethod(names["_intersection_over_union"])})

random = np.random.default_rng(0)
planes = np.zeros((8, 24, 24), np.uint8)
for z in range(8):
    number = 0
    for y, x in random.permutation([(y, x) for y in range(0, 24, 8) for x in range(0, 24, 8)]):
        if random.random() < 0.3:
            continue
        number += 1
        top, left = y + random.integers(0, 3), x + random.integers(0, 3)
        planes[z, top : top + random.integers(3, 6), left : left + random.integers(3, 6)] = number
stitched = names["stitch3D"](planes.astype(np.int32), stitch_threshold=0.3)
np.save(pathlib.Path(__file__).parent / "stitch.npy", np.stack([planes, stitched.astype(np.uint8)]))
