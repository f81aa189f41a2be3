"""coco.py BIN: an annotation tool's export, images of 8 bits and one COCO JSON with polygons; then images without boxes."""
import json

import numpy as np
from PIL import Image

from hour import Hour, discs

hour = Hour("coco")
for folder in ("export/images", "export/annotations", "new"):
    (hour.root / folder).mkdir(parents=True)
coco, boxes = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "nucleus"}]}, {}
for i in range(10):
    values, labels = discs(i, (96, 96))
    name = f"cell_{i}.png"
    boxes[name] = []
    coco["images"].append({"id": i, "file_name": name, "width": 96, "height": 96})
    for number in range(1, labels.max() + 1):
        rows, columns = np.nonzero(labels == number)
        x, y, width, height = (int(v) for v in (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1))
        boxes[name].append((x, y, x + width, y + height))
        turns = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        outline = np.stack([x + width / 2 + width / 2 * np.cos(turns), y + height / 2 + height / 2 * np.sin(turns)], 1).round(2).ravel().tolist()
        coco["annotations"].append({"id": len(coco["annotations"]) + 1, "image_id": i, "category_id": 1, "bbox": [x, y, width, height],
                                    "area": width * height, "iscrowd": 0, "segmentation": [outline]})
    Image.fromarray((values / 20).clip(0, 255).astype(np.uint8)).save(hour.root / ("export/images" if i < 8 else "new") / name)
coco["images"] = coco["images"][:8]
coco["annotations"] = [one for one in coco["annotations"] if one["image_id"] < 8]
(hour.root / "export/annotations/instances_default.json").write_text(json.dumps(coco))

hour.train("train data.path=export", 30)
for file, overlay in hour.predict():
    objects = np.asarray(Image.open(file))
    hour.expect(objects.shape == (96, 96), f"{file.name}: {objects.shape}")
    found = {objects[(y0 + y1) // 2, (x0 + x1) // 2] for x0, y0, x1, y1 in boxes[file.name]} - {0}
    hour.expect(len(found) >= 4, f"{file.name}: {len(found)} of {len(boxes[file.name])} cells are found, each by itself")
    hour.expect(objects[0, 0] == 0 and np.mean(objects > 0) < 0.3, f"{file.name}: the ground is no cell")
    hour.look(overlay, overlay.name, (96, 96))
hour.end()
