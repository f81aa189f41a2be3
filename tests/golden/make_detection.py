#!/usr/bin/env python3
"""Writes detection.safetensors, networks/fcos_2d.json and models/torchvision_fcos.pt: boxes by torchvision, mean average precision by pycocotools.

    python tests/golden/make_detection.py     (needs benchmarks/requirements.txt, torchvision, pycocotools)
"""
import contextlib
import io
import zipfile
from collections import OrderedDict
from pathlib import Path

import torch
from make_golden import Golden
from monai.networks.blocks.dynunet_block import UnetBasicBlock, UnetResBlock
from network_golden import write
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchvision.models.detection import FCOS
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.fcos import FCOSHead
from torchvision.ops import FeaturePyramidNetwork, batched_nms, box_iou

STRIDES = [4, 8, 16]


def random_boxes(count, side, largest):
    corner = torch.rand(count, 2) * side
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * largest], 1)


class Network(torch.nn.Module):
    """Our backbone of MONAI's blocks, with torchvision's pyramid and head."""

    def __init__(self, in_channels, num_classes, filters, width, num_convs, norm_name):
        super().__init__()
        sides = [in_channels, *filters]
        self.backbone = torch.nn.ModuleList(
            (UnetResBlock if level else UnetBasicBlock)(2, a, b, kernel_size=3, stride=2, norm_name=norm_name)
            for level, (a, b) in enumerate(zip(sides, filters)))
        self.fpn = FeaturePyramidNetwork(filters[1:], width)
        self.head = FCOSHead(width, 1, num_classes, num_convs)

    def forward(self, x):
        features = OrderedDict()
        for level, block in enumerate(self.backbone):
            x = block(x)
            if level:
                features[str(level)] = x
        outputs = []
        for f in self.fpn(features).values():
            c, r = self.head.classification_head, self.head.regression_head
            boxes = r.conv(f)
            outputs.append(torch.cat([c.cls_logits(c.conv(f)), r.bbox_reg(boxes).relu(), r.bbox_ctrness(boxes)], 1))
        return outputs


def network():
    options = dict(in_channels=2, num_classes=3, filters=[4, 8, 8, 12], width=32, num_convs=2,
                   norm_name=["group", {"num_groups": 2}])
    write("fcos_2d", Network(**options), {"_target_": "FCOS", **options}, [2, 2, 32, 48], "torchvision FCOSHead")


def places(height, width):
    """Anchors as torchvision's, in the middle of their cells; and how many a level has."""
    levels = []
    for s in STRIDES:
        y, x = torch.meshgrid(torch.arange(height // s) * s + s / 2, torch.arange(width // s) * s + s / 2, indexing="ij")
        x, y = x.flatten(), y.flatten()
        levels.append(torch.stack([x - s / 2, y - s / 2, x + s / 2, y + s / 2], 1))
    return torch.cat(levels), [len(level) for level in levels]


def fcos(golden):
    height, width, classes = 64, 96, 3
    anchors, counts = places(height, width)
    backbone = torch.nn.Conv2d(1, 8, 1)
    backbone.out_channels = 8
    model = FCOS(backbone, classes, score_thresh=0.3, nms_thresh=0.5, detections_per_img=20, topk_candidates=40,
                 head=FCOSHead(32, 1, classes))
    count = sum(counts)
    outputs = {"cls_logits": torch.randn(2, count, classes), "bbox_regression": (2 + 1.5 * torch.randn(2, count, 4)).relu(),
               "bbox_ctrness": torch.randn(2, count, 1)}
    targets = [{"boxes": random_boxes(n, 60, 50), "labels": torch.randint(0, classes, (n,))} for n in (9, 0)]
    matched = {}

    def keep(targets, head_outputs, anchors, matched_idxs):
        matched["idxs"] = matched_idxs
        return FCOSHead.compute_loss(model.head, targets, head_outputs, anchors, matched_idxs)

    model.head.compute_loss = keep
    losses = model.compute_loss(targets, outputs, [anchors, anchors], counts)
    split = {k: list(v.split(counts, dim=1)) for k, v in outputs.items()}
    found = model.postprocess_detections(split, [list(anchors.split(counts))] * 2, [(height - 3, width - 3)] * 2)
    joined = torch.cat([outputs["cls_logits"], outputs["bbox_regression"], outputs["bbox_ctrness"]], 2).transpose(1, 2)
    tensors = {"outputs": joined, "boxes": targets[0]["boxes"], "labels": targets[0]["labels"],
               "matched": torch.stack(list(matched["idxs"])),
               **{k: losses[k].double() for k in ("classification", "bbox_regression", "bbox_ctrness")}}
    for i, one in enumerate(found):
        tensors.update({f"{k}.{i}": one[k] for k in ("boxes", "scores", "labels")})
    golden.add("fcos", {"height": height, "width": width}, tensors)


def boxes(golden):
    corners, others = random_boxes(40, 50, 30), random_boxes(7, 50, 30)
    scores = (torch.rand(40) * 10).round() / 10  # some are equal
    labels = torch.randint(0, 2, (40,))
    golden.add("iou", {}, {"boxes": corners, "others": others, "iou": box_iou(corners, others)})
    for threshold in 0.2, 0.5:
        golden.add(f"nms.{threshold}", {"threshold": threshold}, {
            "boxes": corners, "scores": scores, "labels": labels, "kept": batched_nms(corners, scores, labels, threshold)})


def average_precision(golden):
    truth, found, stored = [], [], {}
    for image in range(4):
        objects = random_boxes(30 if image else 0, 200, 30)
        kinds = torch.randint(0, 2, (len(objects),))
        # Right ones that are off by some pixels, some twice, some with another class; and some out of nothing.
        hits = (objects + torch.randn(len(objects), 4) * 2).repeat(2, 1)[: len(objects) * 3 // 2]
        boxes_ = torch.cat([hits, random_boxes(80, 200, 30)])
        boxes_[:, 2:] = torch.maximum(boxes_[:, 2:], boxes_[:, :2] + 1)
        labels = torch.cat([kinds.repeat(2)[: len(hits)], torch.randint(0, 3, (80,))])
        scores = (torch.rand(len(boxes_)) * 200).round() / 200
        stored.update({f"boxes.{image}": boxes_, f"scores.{image}": scores, f"labels.{image}": labels,
                       f"true_boxes.{image}": objects, f"true_labels.{image}": kinds})
        for b, k in zip(objects.double().tolist(), kinds.tolist()):
            sides = [b[0], b[1], b[2] - b[0], b[3] - b[1]]
            truth.append({"id": len(truth) + 1, "image_id": image, "category_id": k, "bbox": sides,
                          "area": sides[2] * sides[3], "iscrowd": 0})
        for b, k, s in zip(boxes_.double().tolist(), labels.tolist(), scores.double().tolist()):
            found.append({"image_id": image, "category_id": k, "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]], "score": s})
    for most in 100, 20:
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO()
            coco.dataset = {"images": [{"id": i} for i in range(4)], "annotations": truth,
                            "categories": [{"id": k} for k in range(3)]}  # there are no objects of class 2
            coco.createIndex()
            run = COCOeval(coco, coco.loadRes(found), "bbox")
            run.params.maxDets = [1, 10, most]
            run.evaluate()
            run.accumulate()
        p, r = run.eval["precision"][:, :, :, 0, 2], run.eval["recall"][:, :, 0, 2]  # threshold, recall, class

        def mean(values):
            return float(values[values > -1].mean())

        golden.add(f"map.{most}", {"max_detections": most}, {
            **(stored if most == 100 else {k: f"map.100.{k}" for k in stored}),
            "values": torch.tensor([mean(p), mean(p[0]), mean(p[5]), mean(r), mean(p[..., 0]), mean(p[..., 1])],
                                   dtype=torch.float64)})
        print(golden.tensors[f"map.{most}.values"])


def scripted(golden):
    """torchvision's FCOS as torch.jit.script writes it, without what only a debugger reads."""
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, stride=8, padding=1), torch.nn.ReLU())
    backbone.out_channels = 32
    model = FCOS(backbone, 3, anchor_generator=AnchorGenerator(((8,),), ((1.0,),)), head=FCOSHead(32, 1, 3, 1),
                 min_size=48, max_size=64, score_thresh=0.05).eval()
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.mul_(3)
        model.head.classification_head.cls_logits.bias.fill_(-1.0)
        model.head.regression_head.bbox_reg.bias.fill_(1.0)
    path = Path(__file__).parent / "models" / "torchvision_fcos.pt"
    written = io.BytesIO()
    torch.jit.save(torch.jit.script(model), written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                target.writestr(zipfile.ZipInfo(entry.filename), source.read(entry), entry.compress_type)
    image = torch.rand(3, 32, 24)
    found = model([image])[0]
    good = found["scores"] >= 0.25
    found = {k: v[good] for k, v in found.items()}
    kept = batched_nms(found["boxes"], found["scores"], found["labels"], 0.5)
    golden.add("scripted", {}, {"image": image, **{k: v[kept] for k, v in found.items()}})
    print(path.name, path.stat().st_size, "bytes,", len(kept), "boxes")


def main():
    torch.manual_seed(18)
    torch.set_num_threads(1)
    network()
    golden = Golden("detection")
    boxes(golden)
    fcos(golden)
    average_precision(golden)
    scripted(golden)
    golden.save(Path(__file__).parent)


if __name__ == "__main__":
    main()
