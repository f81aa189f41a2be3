"""tiff_folders.py BIN: a microscope's TIFFs of 16 bits in a folder, masks of 0 and 255 in another; then images that nobody has marked."""
import numpy as np
import tifffile

from hour import Hour, dice, discs

hour = Hour("tiff_folders")
for folder in ("Zellen 2026/Bilder", "Zellen 2026/Masken", "new"):
    (hour.root / folder).mkdir(parents=True)
truth = {}
for i in range(12):
    image, labels = discs(i, (96, 80))
    name = f"Feld {i:02d}.tif"
    truth[name] = labels > 0
    tifffile.imwrite(hour.root / ("new" if i > 9 else "Zellen 2026/Bilder") / name, image)
    if i <= 9:
        tifffile.imwrite(hour.root / "Zellen 2026/Masken" / name, (255 * truth[name]).astype(np.uint8))

hour.train("train 'data.path=Zellen 2026'", 15)
for file, overlay in hour.predict():
    mask = tifffile.imread(file)
    score = dice(mask > 0, truth[file.name.replace(".ome", "")])
    hour.expect(mask.shape == (96, 80) and score > 0.7, f"{file.name}: {mask.shape}, Dice {score:.2f}")
    hour.look(overlay, overlay.name, (80, 96))
hour.end()
