#!/usr/bin/env python3
"""Reads what the loggers write with TensorBoard's own reader, the report with Python's HTML parser, and kills runs.

  python tests/golden/check_tensorboard.py build/release [KILLS]

Prints what was read; an assertion fails for a difference. Needs tensorboard, Pillow, pandas.
"""
import html.parser
import io
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
from PIL import Image
from tensorboard.backend.event_processing import data_provider, plugin_event_accumulator, plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.tensorflow_stub import errors
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import backend_context

ALL = {key: 0 for key in ("scalars", "images", "histograms", "tensors", "compressedHistograms")}


def accumulated(path):
    accumulator = EventAccumulator(str(path), size_guidance=ALL)
    return accumulator.Reload()


def count_records(path):
    """All of them; DataLossError for a broken or truncated one."""
    reader, count = PyRecordReader_New(str(path)), 0
    while True:
        try:
            reader.GetNext()
        except errors.OutOfRangeError:
            return count
        count += 1


def check_contents(build, folder):
    subprocess.run([build / "tests/test_training", "--gtest_filter=TensorBoardLogger.WritesWhatItGets"], check=True,
                   env=os.environ | {"CYTRA_EVENTS_DIR": str(folder)}, stdout=subprocess.DEVNULL)
    first, second = sorted((folder / "tensorboard").iterdir(), key=lambda path: int(path.name.split(".")[-2]))
    before = accumulated(first)
    assert [(e.step, e.value) for e in before.Scalars("val/loss")] == [(s, np.float32(1 / s)) for s in range(1, 11)]
    assert [e.value for e in before.Scalars("epoch")] == [s // 5 for s in range(1, 11)]
    image = before.Images("sample")[0]
    pixels = np.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
    assert (image.step, image.height, image.width, pixels.shape) == (10, 4, 5, (4, 5, 3)) and (pixels == 7).all()
    histogram = before.Histograms("weights")[0].histogram_value
    assert (histogram.max, histogram.num, histogram.bucket_limit, histogram.bucket) == (1, 1, [0.5, 1], [0, 1])
    text = before.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "depth: 3" in text, text
    after = accumulated(folder / "tensorboard")
    assert [e.step for e in after.Scalars("val/loss")] == [1, 2, 3, 4, 5, 6, 7], after.Scalars("val/loss")
    assert after.Scalars("val/loss")[-1].value == 0.125
    print("scalars, image, histogram, text; the second file drops steps 7 to 10 of the first: as written")


def check_hparams(folder):
    multiplexer = plugin_event_multiplexer.EventMultiplexer(
        size_guidance=plugin_event_accumulator.DEFAULT_SIZE_GUIDANCE).AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(folder))
    context = backend_context.Context(base_plugin.TBContext(logdir=str(folder), multiplexer=multiplexer,
                                                            data_provider=provider))
    request = RequestContext()
    metadata = context.hparams_metadata(request, "")
    experiment = context.experiment_from_metadata(request, "", True, metadata, [])
    names = {info.name for info in experiment.hparam_infos}
    assert {"model.depth", "model._target_", "task.class_names", "data.shape", "experiment_name"} == names, names
    assert [info.name.tag for info in experiment.metric_infos] == ["hp/val/loss"]
    from tensorboard.plugins.hparams import api_pb2, list_session_groups
    groups = list_session_groups.Handler(request, context, "", api_pb2.ListSessionGroupsRequest(
        start_index=0, slice_size=10, include_metrics=True, allowed_statuses=[0, 1, 2, 3])).run().session_groups
    done = [group for group in groups if group.sessions[0].status == api_pb2.STATUS_SUCCESS]
    assert len(done) == 1 and done[0].hparams["model.depth"].number_value == 3
    assert done[0].metric_values[0].value == 0.125, done[0]
    print(f"HPARAMS: {len(groups)} sessions, {sorted(names)}, {[m.name.tag for m in done[0].metric_values]}")


class Page(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order; nothing is loaded."""
    EMPTY = {"meta", "br", "img", "path", "circle", "polygon"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], {}

    def handle_starttag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        assert tag not in ("link", "iframe") and (tag != "script" or not attributes)
        assert all(value.startswith("data:") for key, value in attributes if key in ("src", "href")), attributes
        if tag not in self.EMPTY and tag != "polyline":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag == self.open.pop(), (tag, self.open)

    def handle_startendtag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1


def check_report(path):
    page, text = Page(), path.read_text()
    page.feed(text)
    assert not page.open and page.seen.get("svg", 0) >= 3, (page.open, page.seen)
    assert "url(" not in text and "@import" not in text
    print(f"report.html: {len(text)} bytes, {page.seen['svg']} plots, {page.seen.get('img', 0)} images")


def train(build, samples, output, *more):
    return [build / "bin/train", "trainer.accelerator=cpu", "patch_shape=[32,32]", "model.filters=[4,8,8]",
            "trainer.log_every_n_steps=1", f"data.path={samples}", f"paths.output_dir={output}", "data.num_workers=0", *more]


def check_runs(build, folder, kills):
    samples, records = folder / "samples", 0
    subprocess.run([build / "bin/generate_samples", "--output", samples, "--train", "3", "--valid", "1", "--test", "1",
                    "--size", "64"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(train(build, samples, folder / "whole", "trainer.max_epochs=4"), check=True, capture_output=True)
    check_report(folder / "whole/report.html")
    table = pandas.read_csv(folder / "whole/csv/version_0/metrics.csv")
    rows = pandas.read_json(folder / "whole/metrics.jsonl", lines=True)
    scalars = accumulated(folder / "whole/tensorboard").Scalars("val/dice")
    for values in (rows["val/dice"].dropna(), [scalar.value for scalar in scalars]):
        assert np.allclose(table["val/dice"].dropna(), list(values), rtol=1e-6) and len(values) == 4
    print(f"metrics.csv, metrics.jsonl and the event file agree in {len(table)} rows")
    for number in range(kills):
        run = subprocess.Popen(train(build, samples, folder / f"killed_{number}", "trainer.max_epochs=100000"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        jsonl = folder / f"killed_{number}/metrics.jsonl"
        while not jsonl.exists() or jsonl.stat().st_size < 2000 + 37 * number:
            assert run.poll() is None
            time.sleep(0.003)
        run.send_signal(signal.SIGKILL)
        run.wait()
        found = count_records(next((folder / f"killed_{number}/tensorboard").iterdir()))
        table = pandas.read_csv(folder / f"killed_{number}/csv/version_0/metrics.csv")
        rows = pandas.read_json(jsonl, lines=True)
        assert found > 5 and abs(len(rows) - len(table)) <= 1 and not math.isnan(table["step"].iloc[-1])
        records += found
    print(f"{kills} kills: all of {records} records readable, none truncated")


def main():
    build, kills = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_contents(build, folder / "contents")
        check_hparams(folder / "contents")
        check_runs(build, folder, kills)


if __name__ == "__main__":
    main()
