#!/usr/bin/env python3
"""Writes tests/golden/events.tfevents: events as torch.utils.tensorboard and TensorBoard's protobuf write them.

Needs torch, tensorboard, numpy and Pillow. tests/io/event_file_test.cpp makes the same with io/event_file.h.
"""
import io
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from torch.utils.tensorboard import summary as torch_summary

OUTPUT = Path(__file__).parent / "events.tfevents"


def record(event):
    # Maps (of hparams) have an order only when asked for.
    data = event.SerializeToString(deterministic=True)
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", masked_crc32c(data))


def deterministic(summary, hparams_data):
    """torch's hparams() with the map of its session start in order."""
    metadata = summary.value[0].metadata.plugin_data
    metadata.content = hparams_data.FromString(metadata.content).SerializeToString(deterministic=True)
    return summary


def main():
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    png = io.BytesIO()
    Image.fromarray(np.arange(3 * 2 * 3, dtype=np.uint8).reshape(3, 2, 3)).save(png, "PNG")
    grey = io.BytesIO()
    Image.fromarray(np.arange(200 * 2, dtype=np.uint8).reshape(2, 200)).save(grey, "PNG")

    def image(tag, data, height, width, channels):
        value = summary_pb2.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=data)
        return summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, image=value)])

    histo = summary_pb2.HistogramProto(min=-1.5, max=4, num=6, sum=0, sum_squares=21.25, bucket_limit=[-1, 0, 4],
                                       bucket=[1, 2, 3])
    hparams = {"model.depth": 3, "optimizer.lr": 1e-3, "flag": True, "model._target_": "DynUNet", "none": None, "shape": "[32,64]"}
    hparams = dict(sorted(hparams.items()))
    experiment, start, end = torch_summary.hparams(hparams, {"hp/loss": 0.5, "hp/val/dice": 0.9})
    Value = summary_pb2.Summary.Value
    summaries = [
        (1, summary_pb2.Summary(value=[Value(tag="a", simple_value=0.0), Value(tag="train/loss", simple_value=-2.5)])),
        (300, summary_pb2.Summary(value=[Value(tag="nan", simple_value=float("nan"))])),
        (2**40, image("rgb", png.getvalue(), 3, 2, 3)),
        (2, image("grey", grey.getvalue(), 2, 200, 1)),
        (0, summary_pb2.Summary(value=[Value(tag="weights", histo=histo)])),
        (3, torch_summary.text("note", "Grüße, **TensorBoard**")),
        (0, deterministic(start, HParamsPluginData)),
        (0, experiment),
        (0, end),
    ]
    events = [event_pb2.Event(wall_time=1.5, file_version="brain.Event:2"),
              event_pb2.Event(wall_time=1.5, step=7, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))]
    events += [event_pb2.Event(wall_time=1.5, step=step, summary=summary) for step, summary in summaries]
    OUTPUT.write_bytes(b"".join(record(event) for event in events))


if __name__ == "__main__":
    main()
