#!/usr/bin/env python3
"""Writes models/bright_detector.ts and models/bright_segmenter.ts: a detector and a prompted segmenter without weights.

    python tests/golden/make_segment_models.py [--output FOLDER]    (needs torch)

What the tests of batch_segment run: boxes are squares of 16 pixels that are brighter than the image's mean, masks are what is
bright within a box.
"""
import argparse
from pathlib import Path
from typing import Tuple

import torch
import torch.nn.functional as F


class Detector(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        cells = F.avg_pool2d(images[:, :1], 16)[0, 0]
        bright = cells / (cells.max() + 1e-6)
        places = torch.nonzero(bright > 0.5)
        corners = torch.flip(places, [1]).float() * 16
        boxes = torch.cat([corners, corners + 16], 1)
        return boxes, bright[places[:, 0], places[:, 1]], torch.ones(places.size(0), dtype=torch.long)


class Segmenter(torch.nn.Module):
    image_size: int

    def __init__(self):
        super().__init__()
        self.image_size = 64

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.encode(images)

    @torch.jit.export
    def encode(self, images: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(images, 2)

    @torch.jit.export
    def masks(self, embeddings: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        side = embeddings.size(2)
        centres = (torch.arange(side, device=boxes.device).float() + 0.5).unsqueeze(0) * 2
        x = (centres > boxes[:, 0:1]) & (centres < boxes[:, 2:3])
        y = (centres > boxes[:, 1:2]) & (centres < boxes[:, 3:4])
        inside = x.unsqueeze(1) & y.unsqueeze(2)
        return torch.where(inside, embeddings.mean(1), torch.full_like(embeddings.mean(1), -1.0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default=Path(__file__).parent / "models", type=Path)
    output = parser.parse_args().output
    for name, module in (("bright_detector", Detector()), ("bright_segmenter", Segmenter())):
        torch.jit.script(module).save(str(output / f"{name}.ts"))


if __name__ == "__main__":
    main()
