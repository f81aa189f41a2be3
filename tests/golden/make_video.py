#!/usr/bin/env python3
"""Writes tests/golden/video/: small lossless videos in several containers and codecs, and cases.json with the CRC-32 of each
frame as C, Y, X in RGB. The frames are checked against what OpenCV's Python package reads, one after the other.

Needs numpy, opencv-python-headless, av and the program ffmpeg.
"""
import json
import subprocess
import zlib
from pathlib import Path

import av
import cv2
import numpy as np

FOLDER = Path(__file__).parent / "video"
FRAMES, HEIGHT, WIDTH = 25, 34, 50


def frame(i):
    """Differs along every axis; a square that moves, so that codecs predict."""
    y, x = np.ogrid[:HEIGHT, :WIDTH]
    image = np.stack([(3 * x + 7 * y + 5 * i) % 251, (2 * x + 0 * y) % 200 + i, (5 * y + 0 * x) % 180 + 2 * i], -1).astype("u1")
    image[5:15, i:i + 12] = (200, 30 + i, 90)
    return image


def write_cases(name, cases):
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (FOLDER / name).write_text(f"[\n{lines}\n]\n")


def grey():
    """Ramps of grey without a range, and grey.json with a row of each as OpenCV and PyAV read it."""
    ramp = np.tile(np.linspace(0, 65535, 64).astype("u2"), (16, 1))
    cases = []
    for name, pixels, values in (("grey8.mkv", "gray", (ramp >> 8).astype("u1")), ("grey10.mkv", "gray10le", ramp >> 6),
                                 ("grey12.mkv", "gray12le", ramp >> 4), ("grey16.mkv", "gray16le", ramp)):
        path = str(FOLDER / name)
        with av.open(path, "w") as out:
            stream = out.add_stream("ffv1", rate=5)
            stream.width, stream.height, stream.pix_fmt = 64, 16, pixels
            for packet in (*stream.encode(av.VideoFrame.from_ndarray(values, format=pixels)), *stream.encode()):
                out.mux(packet)
        row = next(av.open(path).decode(video=0)).to_ndarray(format="rgb24")[0, :, 0]
        assert (cv2.VideoCapture(path).read()[1][0, :, 0] == row).all(), name
        cases.append({"file": name, "row": row.tolist()})
    write_cases("grey.json", cases)


def colour():
    """Patches that are tagged as BT.709, and colour.json with a pixel of each as PyAV reads it."""
    patches = np.array([[63, 102, 240], [173, 42, 26], [32, 240, 118], [128, 128, 128], [219, 16, 138], [90, 180, 70]], "u1")
    planes = np.repeat(np.repeat(patches.T[:, None, :], 16, 1), 8, 2)
    path = str(FOLDER / "colour.mkv")
    with av.open(path, "w") as out:
        stream = out.add_stream("ffv1", rate=5)
        stream.width, stream.height, stream.pix_fmt = planes.shape[2], 16, "yuv444p"
        picture = av.VideoFrame.from_ndarray(planes, format="yuv444p")
        for tagged in (stream.codec_context, picture):
            tagged.colorspace, tagged.color_range = 1, 1  # BT.709, the studio's range
        for packet in (*stream.encode(picture), *stream.encode()):
            out.mux(packet)
    read = next(av.open(path).decode(video=0)).to_ndarray(format="rgb24")
    write_cases("colour.json", [{"file": "colour.mkv", "patches": read[0, ::8].tolist()}])


def main():
    FOLDER.mkdir(exist_ok=True)
    frames = np.stack([frame(i) for i in range(FRAMES)])
    cases = []
    codecs = {"ffv1.avi": ["-c:v", "ffv1", "-pix_fmt", "bgr0"], "ffv1.mkv": ["-c:v", "ffv1", "-pix_fmt", "bgr0"],
              # B frames: their order in the file is not that of time
              "h264.mp4": ["-c:v", "libx264rgb", "-qp", "0", "-g", "10", "-bf", "3"],
              "h264.mov": ["-c:v", "libx264rgb", "-qp", "0", "-g", "10", "-bf", "3"],
              "vp9.webm": ["-c:v", "libvpx-vp9", "-lossless", "1", "-pix_fmt", "gbrp"],
              "raw.avi": ["-c:v", "rawvideo", "-pix_fmt", "bgr24"]}
    for name, arguments in codecs.items():
        path = FOLDER / name
        count = 3 if name == "raw.avi" else FRAMES
        subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}",
                        "-r", "25", "-i", "-", *arguments, str(path)], input=frames[:count].tobytes(), check=True)
        capture = cv2.VideoCapture(str(path))
        for i in range(count):
            there, image = capture.read()
            assert there and (image[..., ::-1] == frames[i]).all(), (name, i)
        assert not capture.read()[0]
        crcs = [zlib.crc32(np.ascontiguousarray(np.moveaxis(f, -1, 0)).tobytes()) for f in frames[:count]]
        cases.append({"file": name, "shape": [3, 1, HEIGHT, WIDTH], "crc32": crcs})
    write_cases("cases.json", cases)
    grey()
    colour()
    print(len(cases), "videos")


if __name__ == "__main__":
    main()
