"""python_program.py BIN: a lab's script has images as NumPy arrays, and wants masks as arrays and a picture. It is run as its author would run it."""
import pathlib
import sys

import numpy as np

from hour import Hour, dice, discs

PROGRAM = """
import pathlib
import cytra
import numpy as np
from PIL import Image

images, masks = np.load("images.npy"), np.load("masks.npy")
for name, arrays in {"images": images, "masks": masks}.items():
    pathlib.Path("lab", name).mkdir(parents=True)
    for i in range(8):
        np.save(f"lab/{name}/{i}.npy", arrays[i])
small = {"trainer.max_steps": 25, "patch_shape": [64, 64], "optimizer.lr": 3e-3, "trainer.accelerator": "cpu"}
run = cytra.train({"data.path": "lab", **small}, on_epoch=lambda epoch: print(epoch.number, epoch.metrics))
print("scored:", run.results["val/dice"])
with cytra.Predictor(run.checkpoint, options={"trainer.accelerator": "cpu"}) as predictor:
    found = np.stack(list(predictor.predict_many(list(images[8:]))))
np.save("found.npy", found)
grey = (images[8:] / 20).clip(0, 255).astype(np.uint8)
red = np.where(found > 0, 255, grey)
Image.fromarray(np.concatenate(np.stack([red, grey, grey], -1), 1)).save("picture.png")
"""
hour = Hour("python_program")
hour.environment["PYTHONPATH"] = str(pathlib.Path(__file__).resolve().parents[2] / "python/client/src")
images, labels = (np.stack(one) for one in zip(*(discs(i, (96, 80)) for i in range(10))))
np.save(hour.root / "images.npy", images)
np.save(hour.root / "masks.npy", (labels > 0).astype(np.uint8))
(hour.root / "program.py").write_text(PROGRAM)
said = hour.type(f"{sys.executable} program.py")
hour.expect("scored:" in said and "val/dice" in said, f"no scores in {said}")
if hour.dead_ends: hour.end()
found = np.load(hour.root / "found.npy")
score = dice(found > 0, labels[8:] > 0)
hour.expect(found.shape == (2, 96, 80) and score > 0.7, f"{found.shape}, Dice {score:.2f}")
picture = hour.look(hour.root / "picture.png", "picture.png", (160, 96))
hour.expect(np.mean((picture[..., 0] > picture[..., 1]) == np.concatenate(found > 0, 1)) > 0.95, "the masks are red in the picture")
hour.end()
