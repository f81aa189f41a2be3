#!/usr/bin/env python3
"""Writes boxes_3d.safetensors: boxes in volumes, x0 y0 z0 x1 y1 z1, by MONAI.

    python tests/golden/make_boxes_3d.py     (needs monai of benchmarks/requirements.txt)
"""
from pathlib import Path

import numpy
import torch
from make_golden import Golden
from monai.apps.detection.metrics.coco import COCOMetric
from monai.apps.detection.metrics.matching import matching_batch
from monai.data.box_utils import batched_nms, box_iou, clip_boxes_to_image

SIZE = torch.tensor([40.0, 30.0, 20.0])  # of the image along x, y, z


def random_boxes(count):
    corner = torch.rand(count, 3) * SIZE
    return torch.cat([corner, corner + 2 + torch.rand(count, 3) * 10], 1)


def boxes(golden):
    corners, others = random_boxes(40), random_boxes(7)
    others[:2] = corners[:2] + 1
    scores, labels = torch.randperm(40) / 40, torch.randint(0, 2, (40,))
    golden.add("iou", {}, {"boxes": corners, "others": others, "iou": box_iou(corners, others)})
    golden.add("clip", {}, {"boxes": clip_boxes_to_image(corners, SIZE.int().tolist(), remove_empty=False)[0]})
    for threshold in 0.02, 0.1:
        golden.add(f"nms.{threshold}", {"threshold": threshold}, {
            "boxes": "iou.boxes", "scores": scores, "labels": labels,
            "kept": batched_nms(corners, scores, labels, threshold)})


def average_precision(golden):
    stored, results = {}, []
    metric = COCOMetric(classes=["0", "1"], iou_list=(0.5, 0.75), iou_range=(0.5, 0.95, 0.05), max_detection=(100,))
    for image in range(3):
        objects = random_boxes(12)
        kinds = torch.randint(0, 2, (12,))
        # Right ones that are a bit off, some twice; and some out of nothing.
        hits = (objects + torch.randn(12, 6) * 0.5).repeat(2, 1)[:18]
        found = torch.cat([hits, random_boxes(20)])
        labels = torch.cat([kinds.repeat(2)[:18], torch.randint(0, 2, (20,))])
        scores = torch.rand(len(found)) + torch.arange(len(found)).lt(18) * 0.3
        stored.update({f"boxes.{image}": found, f"scores.{image}": scores, f"labels.{image}": labels,
                       f"true_boxes.{image}": objects, f"true_labels.{image}": kinds})
        results += matching_batch(
            iou_fn=box_iou, iou_thresholds=metric.iou_thresholds, pred_boxes=[found.double().numpy()],
            pred_classes=[labels.numpy()], pred_scores=[scores.double().numpy()],
            gt_boxes=[objects.double().numpy()], gt_classes=[kinds.numpy()])
    values = metric(results)[0]
    whole = "IoU_0.50_0.95_0.05_MaxDet_100"
    names = [f"mAP_{whole}", "AP_IoU_0.50_MaxDet_100", "AP_IoU_0.75_MaxDet_100", f"mAR_{whole}",
             f"0_mAP_{whole}", f"1_mAP_{whole}"]
    golden.add("map", {}, {**stored, "values": torch.tensor(numpy.array([values[n] for n in names], dtype="f8"))})


if __name__ == "__main__":
    torch.manual_seed(0)
    golden = Golden("boxes_3d")
    boxes(golden)
    average_precision(golden)
    golden.save(Path(__file__).parent)
