#!/usr/bin/env python3
"""Annotations in the formats of ImageJ (roifile), QuPath, COCO, labelme, Pascal VOC and YOLO, and what the
peers make of them: shapely and scikit-image of outlines, pycocotools of COCO. Into tests/golden/annotations."""
import json
import os
import shutil
import zipfile

import numpy as np
import roifile
import shapely
from PIL import Image
from pycocotools import mask as coco
from pycocotools.coco import COCO
from skimage.draw import polygon2mask

H, W = 40, 48
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "annotations")
shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)


def path(name):
    return os.path.join(HERE, name)


def save(name, labels):
    labels = np.asarray(labels)
    Image.fromarray(labels.reshape(-1, labels.shape[-1]).astype(np.uint8)).save(path(name + ".png"), optimize=True)


yy, xx = np.mgrid[:H, :W] + 0.5


def inside(geometry):
    return shapely.contains_xy(geometry, xx, yy)


def ellipse(cx, cy, rx, ry, angle=0.0):
    dx, dy = xx - cx, yy - cy
    u = dx * np.cos(angle) + dy * np.sin(angle)
    v = -dx * np.sin(angle) + dy * np.cos(angle)
    return (u / rx) ** 2 + (v / ry) ** 2 <= 1


def labels_of(masks):
    labels = np.zeros((H, W), int)
    for number, mask in enumerate(masks, 1):
        labels[mask > 0] = number
    return labels


def write_json(name, value):
    with open(path(name), "w") as file:
        json.dump(value, file)


# ImageJ. Outlines of integers and of fractions, a composite with a hole, shapes of a few numbers.
whole = np.array([[3, 2], [20, 4], [24, 18], [12, 11], [2, 16]])
fine = np.array([[26.3, 3.2], [44.7, 5.9], [39.1, 20.6], [30.2, 16.4]])


def roi(kind, points=None, **fields):
    if points is not None:
        one = roifile.ImagejRoi.frompoints(points)
    else:
        one = roifile.ImagejRoi()
        one.version = 228
    one.roitype = kind
    for key, value in fields.items():
        setattr(one, key, value)
    return one


T, S = roifile.ROI_TYPE, roifile.ROI_SUBTYPE
rois = [
    (roi(T.POLYGON, whole), polygon2mask((H, W), whole[:, ::-1] - 0.5)),
    (roi(T.FREEHAND, fine), polygon2mask((H, W), fine[:, ::-1] - 0.5)),
    (roi(T.RECT, left=4, top=22, right=14, bottom=31), inside(shapely.box(4, 22, 14, 31))),
    (roi(T.OVAL, left=17, top=22, right=28, bottom=35), ellipse(22.5, 28.5, 5.5, 6.5)),
    (roi(T.FREEHAND, subtype=S.ELLIPSE, options=roifile.ROI_OPTIONS(0), x1=31.0, y1=24.0, x2=43.0, y2=33.0,
         n_coordinates=0, integer_coordinates=np.zeros((0, 2), int)),
     ellipse(37, 28.5, np.hypot(12, 9) / 2, np.hypot(12, 9) / 4, np.arctan2(9, 12))),
]
turned = roi(T.FREEHAND, subtype=S.ROTATED_RECT, x1=5.0, y1=36.0, x2=20.0, y2=38.0, n_coordinates=0,
             integer_coordinates=np.zeros((0, 2), int))
direction = np.array([15.0, 2.0]) / np.hypot(15, 2)
across = np.array([-direction[1], direction[0]]) * 1.5
ends = np.array([[5.0, 36.0], [20.0, 38.0]])
turned_outline = [ends[0] + across, ends[1] + across, ends[1] - across, ends[0] - across]
blobs = []
for number, (one, _) in enumerate(rois):
    blob = one.tobytes()
    if one.subtype == S.ELLIPSE:  # its ratio of axes, which roifile has no name for
        blob = blob[:52] + np.array([0.5], ">f4").tobytes() + blob[56:]
    blobs.append(blob)
raw = bytearray(turned.tobytes())
raw[52:56] = np.array([3.0], ">f4").tobytes()
blobs.append(bytes(raw))
rois.append((turned, inside(shapely.Polygon(turned_outline))))
ring = np.array([[30, 34], [46, 34], [46, 39], [30, 39], [30, 34]], float)
hole = np.array([[33, 35], [36, 35], [36, 38], [33, 38], [33, 35]], float)
segments = []
for outline in (ring, hole):
    for i, (x, y) in enumerate(outline[:-1]):
        segments += [0.0 if i == 0 else 1.0, x, y]
    segments += [4.0]
composite = bytearray(roi(T.RECT, left=30, top=34, right=46, bottom=39).tobytes()[:64])
composite[36:40] = np.array([len(segments)], ">i4").tobytes()
composite[60:64] = b"\0\0\0\0"
blobs.append(bytes(composite) + np.array(segments, ">f4").tobytes())
read = roifile.ImagejRoi.frombytes(blobs[-1])
assert read.composite and len(read.path2coords(read.multi_coordinates)) == 2
rois.append((None, inside(shapely.Polygon(ring, [hole]))))
line = roi(T.LINE, x1=1.0, y1=1.0, x2=9.0, y2=9.0)
with zipfile.ZipFile(path("rois.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
    for number, blob in enumerate(blobs):
        archive.writestr(f"{number:04}.roi", blob)
    archive.writestr("line.roi", line.tobytes())
    archive.writestr("__MACOSX/._0000.roi", b"no ROI")
save("rois", labels_of([mask for _, mask in rois]))
with open(path("fine.roi"), "wb") as file:
    file.write(blobs[1])
save("fine", labels_of([rois[1][1]]))

# A stack of three planes: object 7 in planes 1 and 2, object 9 in plane 3.
planes = np.zeros((3, H, W), int)
with zipfile.ZipFile(path("stack.zip"), "w") as archive:
    for plane, label, number in ((1, 7, 1), (2, 7, 1), (3, 9, 2)):
        left = 4 * plane
        one = roi(T.RECT, left=left, top=5, right=left + 9, bottom=12, position=plane, name=f"{plane:04}-{label}")
        archive.writestr(f"{plane:04}-{label}.roi", one.tobytes())
        planes[plane - 1, 5:12, left:left + 9] = number
save("stack", planes)

# QuPath: Polygon with a hole, MultiPolygon, classes, a cell with its nucleus, a line.
outer, inner = [[2.5, 3.1], [20.2, 2.2], [22.8, 19.4], [4.1, 17.7]], [[8.2, 7.3], [15.4, 7.9], [13.1, 13.8]]
parts = [[[26.1, 2.2], [36.3, 3.4], [31.2, 14.3]], [[38.4, 4.1], [46.2, 6.3], [44.1, 15.2], [39.3, 13.4]]]
cell, nucleus = [[6.1, 23.2], [22.3, 22.4], [25.2, 36.1], [8.3, 38.2]], [[12, 27], [18, 27], [18, 33], [12, 33]]


def feature(kind, coordinates, name=None, **more):
    classification = {"name": name, "color": [200, 0, 0]} if name else None
    properties = {"objectType": more.pop("object_type", "annotation")}
    if classification:
        properties["classification"] = classification
    return {"type": "Feature", "id": "6a9e8a2c", "geometry": {"type": kind, "coordinates": coordinates},
            "properties": properties, **more}


def closed(points):
    return points + points[:1]


features = [
    feature("Polygon", [closed(outer), closed(inner)], "Tumor"),
    feature("MultiPolygon", [[closed(part)] for part in parts], "Stroma"),
    feature("Polygon", [closed(cell)], "Tumor", object_type="cell",
            nucleusGeometry={"type": "Polygon", "coordinates": [closed(nucleus)]}),
    feature("LineString", [[0, 0], [9, 9]], "Tumor"),
]
masks = [inside(shapely.Polygon(outer, [inner])), inside(shapely.MultiPolygon([(part, []) for part in parts])),
         inside(shapely.Polygon(cell))]
write_json("qupath.geojson", {"type": "FeatureCollection", "features": features})
write_json("bare.json", features)
write_json("one.geojson", features[0])
save("qupath", labels_of(masks))
save("one", labels_of(masks[:1]))
classes = np.zeros((H, W), int)
for mask, number in zip(masks, (2, 1, 2)):  # Stroma, Tumor
    classes[mask] = number
save("qupath_classes", classes)

# COCO: outlines, run lengths as text and as numbers, a crowd, a box alone; two images of one name in two folders.
blob = (ellipse(12, 12, 7, 5)).astype(np.uint8)
text = coco.encode(np.asfortranarray(blob))
flat = np.asfortranarray(ellipse(36, 30, 5, 8).astype(np.uint8)).reshape(-1, order="F")
changes = np.flatnonzero(np.diff(np.concatenate([[0], flat, [1 - flat[-1]]])))
counts = np.diff(np.concatenate([[0], changes])).tolist()
polygon = [25.4, 3.3, 44.1, 4.8, 40.2, 19.9, 29.7, 15.2]
second = [2.2, 30.1, 9.9, 28.4, 11.3, 38.7]
document = {
    "info": {"description": "made for a test"},
    "images": [{"id": 7, "file_name": "train/cells.png", "height": H, "width": W},
               {"id": 9, "file_name": "valid/cells.png", "height": H, "width": W},
               {"id": 11, "file_name": "empty.png", "height": H, "width": W}],
    "annotations": [
        {"id": 1, "image_id": 7, "category_id": 5, "iscrowd": 0, "segmentation": [polygon, second]},
        {"id": 2, "image_id": 7, "category_id": 3, "iscrowd": 0,
         "segmentation": {"size": [H, W], "counts": text["counts"].decode()}},
        {"id": 3, "image_id": 7, "category_id": 5, "iscrowd": 1,
         "segmentation": {"size": [H, W], "counts": counts}},
        {"id": 4, "image_id": 9, "category_id": 3, "iscrowd": 0, "bbox": [3, 4, 10.0, 6.0]},
    ],
    "categories": [{"id": 5, "name": "mitotic", "supercategory": "cells"}, {"id": 3, "name": "nucleus",
                                                                           "supercategory": "cells"},
                   {"id": 0, "name": "cells", "supercategory": "none"}],
}
for one in document["annotations"]:
    segmentation = one.get("segmentation")
    if segmentation is None:
        one["area"] = one["bbox"][2] * one["bbox"][3]
        continue
    if isinstance(segmentation, list):
        rle = coco.merge(coco.frPyObjects(segmentation, H, W))
    else:
        rle = segmentation if isinstance(segmentation["counts"], str) else coco.frPyObjects(segmentation, H, W)
    one["bbox"], one["area"] = coco.toBbox(rle).tolist(), int(coco.area(rle))
write_json("coco.json", document)
peer = COCO(path("coco.json"))
masks = [peer.annToMask(peer.anns[number]) for number in (1, 2, 3)]
save("coco", labels_of(masks[:2]))  # a crowd is no object
semantic = np.zeros((H, W), int)
for mask, number in zip(masks, (2, 1, 2)):  # nucleus (3), mitotic (5)
    semantic[mask > 0] = number
save("coco_classes", semantic)
boxes = {str(number): peer.anns[number]["bbox"] for number in (1, 2, 4)}
# Outlines of many kinds as pycocotools fills them: degenerate, beyond the image, self-crossing, with doubled corners.
random = np.random.default_rng(4)
outlines = [[0, 0, 2, 0, 2, 2, 0, 2], [5.5, 5.5, 5.5, 5.5, 9, 12, 3, 9], [-9, -7, 60, 5, 52, 49, 20, 20],
            [1, 1, 30, 30, 30, 1, 1, 30], [10, 10, 20, 10, 10, 10], [0.49, 0.51, 0.52, 7.7, 9.3, 3.3]]
outlines += [np.round(random.uniform(-5, 50, 2 * count), 2).tolist() for count in (3, 4, 5, 8, 13, 40)]
filled = [{"corners": outline,
           "counts": coco.frPyObjects([outline], H, W)[0]["counts"].decode()} for outline in outlines]
write_json("expected.json", {"boxes": boxes, "coco_fill": filled})

# labelme: polygon, rectangle (its corners in any order), circle, two shapes of one group.
shapes = [("cell", "polygon", outer, None), ("cell", "rectangle", [[40.0, 14.0], [27.0, 3.0]], None),
          ("debris", "circle", [[12.0, 30.0], [18.0, 32.0]], None),
          ("cell", "polygon", [[26, 22], [33, 22], [33, 30]], 1), ("cell", "polygon", [[36, 30], [45, 31], [40, 38]], 1),
          ("line", "line", [[0, 0], [5, 5]], None)]
write_json("labelme.json", {
    "version": "5.4.1", "flags": {}, "shapes": [
        {"label": label, "points": points, "group_id": group, "shape_type": kind, "flags": {}}
        for label, kind, points, group in shapes],
    "imagePath": "cells.png", "imageData": "iVBORw0KGgo=" * 8, "imageHeight": H, "imageWidth": W})
save("labelme", labels_of([
    inside(shapely.Polygon(outer)), inside(shapely.box(27, 3, 40, 14)),
    ellipse(12, 30, np.hypot(6, 2), np.hypot(6, 2)),
    inside(shapely.Polygon(shapes[3][2])) | inside(shapely.Polygon(shapes[4][2]))]))

# Pascal VOC: pixels from 1, the last included; a part with a box of its own; overlapping boxes.
with open(path("voc.xml"), "w") as file:
    file.write(f"""<?xml version="1.0"?>
<!-- drawn by hand -->
<annotation><folder>images</folder><filename>cells.png</filename>
<size><width>{W}</width><height>{H}</height><depth>1</depth></size>
<object><name>red cell</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult>
<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>12</xmax><ymax>10</ymax></bndbox>
<part><name>head</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></part></object>
<object><name>red &amp; white</name><bndbox><xmin>8</xmin><xmax>30</xmax><ymin>6</ymin><ymax>{H}</ymax></bndbox></object>
</annotation>
""")
voc = np.zeros((H, W), int)
voc[0:10, 0:12] = 1
voc[5:H, 7:30] = 2
save("voc", voc)

# YOLO: a box and an outline, as shares of the sides; names beside them.
os.makedirs(path("yolo"))
shares = (np.array(fine) / [W, H]).round(6)
with open(path("yolo/cells.txt"), "w") as file:
    file.write(f"1 {9 / W:.6f} {12 / H:.6f} {10 / W:.6f} {16 / H:.6f}\r\n\n")
    file.write("0 " + " ".join(f"{value:.6f}" for value in shares.reshape(-1)) + "\n")
with open(path("yolo/classes.txt"), "w") as file:
    file.write("nucleus\nmitotic figure\n")
save("yolo", labels_of([inside(shapely.box(4, 4, 14, 20)),
                        polygon2mask((H, W), (shares * [W, H])[:, ::-1] - 0.5)]))
