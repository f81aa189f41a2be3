"""wheel.py BIN: a machine with the wheel and nothing else of Cytra, whose user has pairs of PNGs in one folder. BIN: of the environment that holds it."""
import pathlib
import sys

import numpy as np
from PIL import Image

from hour import Hour, dice, discs

programs = pathlib.Path(sys.argv[1]).absolute()  # a link to Python would lead out of it
if not (programs / "cytra").exists():
    print(f"{programs} has no wheel: package.wheel installs it")
    sys.exit(77)
hour = Hour("wheel", {"PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"})
truth = {}
for folder in ("pairs", "new"):
    (hour.root / folder).mkdir()
for i in range(10):
    values, labels = discs(i, (80, 96))
    truth[f"{i}.png"] = labels > 0
    Image.fromarray((values / 20).clip(0, 255).astype(np.uint8)).save(hour.root / (f"pairs/{i}.png" if i < 8 else f"new/{i}.png"))
    if i < 8:
        Image.fromarray((255 * truth[f"{i}.png"]).astype(np.uint8)).save(hour.root / f"pairs/{i}_mask.png")
for line in ("cytra --version", "cytra train --help"):
    hour.type(line)
hour.train("cytra train data.path=pairs", 20)
for file, overlay in hour.predict("cytra "):
    mask = np.asarray(Image.open(file))
    score = dice(mask > 0, truth[file.name])
    hour.expect(mask.shape == (80, 96) and score > 0.7, f"{file.name}: {mask.shape}, Dice {score:.2f}")
    hour.look(overlay, overlay.name, (96, 80))
hour.end()
