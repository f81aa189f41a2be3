"""512 x 512 uint16 images as a microscope gives them (blurred spots, Poisson noise), deflate TIFF: FOLDER COUNT."""
import sys
from pathlib import Path

import numpy as np
import tifffile

folder, count = Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
for number in range(count):
    freq = np.fft.rfft2(rng.normal(size=(512, 512)))
    fy, fx = np.fft.fftfreq(512)[:, None], np.fft.rfftfreq(512)[None]
    smooth = np.fft.irfft2(freq * np.exp(-((fy**2 + fx**2) * 4000)), s=(512, 512))
    smooth = np.clip(smooth / smooth.std(), 0, None)
    image = rng.poisson(100 + 400 * smooth).astype(np.uint16)
    tifffile.imwrite(folder / f"{number:04d}.tif", image, compression="deflate")
