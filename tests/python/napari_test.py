"""napari_test.py BIN [SCREENSHOT]: cytra-napari. With a screen (`xvfb-run` is one) it is opened in napari's window as an installed plug-in; without one it
works on napari's viewer model, since the canvas needs OpenGL. Exit code 77 (skipped) where napari or numpy is not installed."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HAS_SCREEN = bool(os.environ.get("DISPLAY"))
if not HAS_SCREEN:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
try:
    import napari
    import numpy as np
    from napari.components import ViewerModel
    from qtpy.QtCore import Qt
    from qtpy.QtWidgets import QApplication, QDockWidget, QMainWindow
except ImportError:
    print("skipped: napari is not installed for this Python")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["CYTRA_BIN"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path[:0] = [str(ROOT / "python/client/src"), str(ROOT / "python/napari/src")]
import cytra
from cytra_napari import PredictWidget, measure

failures = []


def expect(is_right, what):
    print(f"{'ok' if is_right else 'FAILED':7} {what}", flush=True)
    if not is_right:
        failures.append(what)


def wait(widget, seconds=120):
    end = time.monotonic() + seconds
    while not widget.run_button.isEnabled() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)
    expect(widget.run_button.isEnabled(), "a run ends")


def main(folder):
    subprocess.run([os.environ["CYTRA_BIN"] + "/generate_samples", "--output", folder / "data", "--train", "4", "--valid", "1", "--test", "1", "--size", "160"],
                   check=True, capture_output=True)
    run = cytra.train({"experiment": "im2im/segmentation", "data.path": folder / "data", "patch_shape": [32, 32], "model.filters": [4, 8, 8],
                       "data.num_workers": 0, "trainer.max_epochs": 4, "trainer.limit_train_batches": 20, "trainer.accelerator": "cpu",
                       "paths.output_dir": folder / "run"})
    pixels = cytra.read_image(next((folder / "data/images").glob("test_*_raw*")))
    objects = "predict.postprocess=[{_target_: ConnectedComponents}]"
    right = cytra.predict(run.checkpoint, pixels, options=["trainer.accelerator=cpu", objects])
    values, counts, centroids = measure(np.array([[0, 2, 2], [5, 2, 2]]))
    expect(values.tolist() == [2, 5] and counts.tolist() == [4, 1] and centroids.tolist() == [[0.5, 1.5], [1, 0]], "measure()")
    if HAS_SCREEN:
        viewer = napari.Viewer()
        window = viewer.window._qt_window
        dock, widget = viewer.window.add_plugin_dock_widget("cytra-napari")
        window.resize(1200, 800)
    else:
        application = QApplication([])
        viewer, window, dock = ViewerModel(), QMainWindow(), QDockWidget("Predict")
        widget = PredictWidget(viewer)
        dock.setWidget(widget)
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
        window.resize(500, 700)
        window.show()
    widget.run()
    expect("no image layer" in widget.message.text(), widget.message.text())
    image = viewer.add_image(pixels, name="cells", scale=(0.5, 0.25), translate=(3, 4))
    widget.device.setCurrentText("cpu")
    widget.options.setText(f"'{objects}'")
    widget.checkpoint.setText(str(folder / "no_such.ckpt"))
    widget.run()
    wait(widget)
    expect("no_such.ckpt" in widget.message.text() and "Traceback" not in widget.message.text(), f"an error's text: {widget.message.text()}"[:200])
    widget._choose(run.checkpoint)
    wait(widget)
    expect(widget.form.itemText(0) == "mask" and widget.message.text() == "", "a model that is chosen tells its forms")
    predictor = widget.session._predictor
    widget.run()
    wait(widget)
    expect(widget.message.text() == "", f"no error {widget.message.text()}")
    labels = viewer.layers["cells mask"]
    expect(np.array_equal(labels.data, right), f"the labels are those of predict: {right.max()} objects")
    expect(np.allclose(labels.scale, image.scale) and np.allclose(labels.translate, image.translate), "the place is the image's")
    expect(widget.table.rowCount() == len(np.unique(right[right > 0])) > 0, f"a table of {widget.table.rowCount()} rows")
    first = int(widget.table.item(0, 0).text())
    where = np.argwhere(right == first)
    told = [float(widget.table.item(0, column).text()) for column in (1, 2, 3)]
    expect(np.allclose(told, [len(where) * 0.125, *(where.mean(0) * (0.5, 0.25) + (3, 4))], rtol=1e-4), f"area and centroid in units: {told}")
    if len(sys.argv) > 2:
        QApplication.processEvents()
        if HAS_SCREEN:
            viewer.reset_view()
            viewer.screenshot(sys.argv[2], canvas_only=False, flash=False)
        else:
            window.grab().save(sys.argv[2])
    stack = viewer.add_image(np.stack([pixels, pixels[::-1]]), name="stack")
    widget.layer.setCurrentText("stack")
    steps = []
    widget.session.progressed.connect(lambda done, total: steps.append((done, total, widget.progress.value(), widget.progress.maximum())))
    widget.run()
    wait(widget)
    result = viewer.layers["stack mask"].data
    expect(steps == sorted(set(steps)) and steps[-1][0] == steps[-1][1] and len({step[1] for step in steps}) == 1, f"the bar of a stack: {steps}")
    expect(result.shape == stack.data.shape and np.array_equal(result, predictor.predict(stack.data)), "a stack, plane by plane, as predict does")
    expect(widget.table.rowCount() == len(np.unique(result[result > 0])) and widget.table.horizontalHeaderItem(1).text() == "volume", "its table")
    stack.axis_labels = ("time", "y", "x")
    widget.run()
    wait(widget)
    result = viewer.layers["stack mask [1]"].data
    expect(np.array_equal(result, [predictor.predict(plane) for plane in stack.data]), "time points, each an image of its own")
    colours = np.stack([pixels // 16] * 3, -1).astype(np.uint8)
    grey = viewer.add_image(colours, name="grey", rgb=True)
    widget.layer.setCurrentText("grey")
    widget.run()
    wait(widget)
    expect(widget.message.text() == "" and np.array_equal(viewer.layers["grey mask"].data, predictor.predict(colours[..., 0])), "grey in three channels")
    viewer.add_image(colours // (1, 1, 2), name="colour", rgb=True)
    widget.layer.setCurrentText("colour")
    widget.run()
    wait(widget)
    expect("channels that differ" in widget.message.text(), f"an RGB image for a model of one channel: {widget.message.text()}"[:200])
    expect(widget.table.rowCount() == 0, "a run that fails leaves no rows of the one before")
    expect(widget.session._predictor is predictor, "the model is loaded once")
    viewer.add_image(np.tile(pixels, (40, 40)), name="large")
    widget.layer.setCurrentText("large")
    steps.clear()
    widget.run()
    begin = time.monotonic()
    while not steps and not widget.run_button.isEnabled() and time.monotonic() < begin + 60:
        QApplication.processEvents()
        time.sleep(0.01)
    expect(bool(steps) and 0 < steps[0][0] < steps[0][1] and steps[0][:2] == steps[0][2:], f"the bar moves within an image: {steps}")
    begin = time.monotonic()
    widget.cancel_button.click()
    wait(widget)
    expect(widget.message.text() == "cancelled" and time.monotonic() - begin < 20, f"Cancel: {widget.message.text()}")
    widget.layer.setCurrentText("cells")
    widget.options.setText("")  # which loads the model anew
    widget.form.setCurrentText("probability")
    widget.run()
    wait(widget)
    expect(widget.message.text() == "", f"no error {widget.message.text()}")
    expect(viewer.layers["cells probability"].data.dtype == np.float32 and np.allclose(viewer.layers["cells probability"].scale, image.scale), "a probability is an image")
    server = widget.session._predictor._child._child
    if HAS_SCREEN:
        viewer.window.remove_dock_widget(dock)
    else:
        widget.setParent(None)  # as napari does when a dock is closed
    expect(server.poll() is not None, "closing the widget ends the server")
    expect("torch" not in sys.modules, "there is no torch in napari's process")


with tempfile.TemporaryDirectory() as scratch:
    main(pathlib.Path(scratch))
sys.exit(f"{len(failures)} failures" if failures else 0)
