"""notebook_test.py BIN: the cells of examples/from_python/segmentation.ipynb run, and the network learns. Exit code 77 (skipped) without matplotlib."""
import json
import os
import pathlib
import shutil
import sys

os.environ["MPLBACKEND"] = "agg"
try:
    import matplotlib  # noqa: F401
    import numpy  # noqa: F401
except ImportError:
    print("skipped: matplotlib is not installed for this Python")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["CYTRA_BIN"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(ROOT / "python/client/src"))
names = {}
try:
    for cell in json.loads((ROOT / "examples/from_python/segmentation.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
finally:
    if "folder" in names:
        shutil.rmtree(names["folder"])
print(f"Dice {names['dice']:.3f}, {len(names['epochs'])} epochs")
if names["dice"] < 0.8 or len(names["epochs"]) != 5:
    sys.exit("the network of the notebook did not learn")
