"""The dock widget, and the thread that waits for Cytra's program."""
from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator
from typing import Any

import cytra
import numpy as np
from napari.layers import Image, Labels
from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtWidgets import (QComboBox, QCompleter, QDoubleSpinBox, QFileDialog, QFormLayout, QHBoxLayout, QLabel, QLineEdit, QProgressBar, QPushButton,
                            QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget)


def _names_at_hand() -> list[str]:
    """None where Cytra is not found: what is typed then says so."""
    try:
        return [model["name"] for model in cytra.models()]
    except cytra.CytraError:
        return []


def measure(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels above 0 of an array, the number of elements of each, and their centroids (labels, axes) in elements."""
    places = np.nonzero(labels)
    values, which, counts = np.unique(labels[places], return_inverse=True, return_counts=True)
    sums = [np.bincount(which, axis, len(values)) for axis in places]
    return values, counts, np.stack(sums, -1) / counts[:, None]


def images_of(layer: Image, predictor: cytra.Predictor) -> tuple[tuple[int, ...], int, Iterator[np.ndarray]]:
    """What the model predicts one by one: the leading shape (time points), the spatial dimensions of each, and the images, of which those of a
    2D model may be stacks (1,C,Z,Y,X), as it takes them plane by plane."""
    data = layer.data[0] if layer.multiscale else layer.data
    channels, *spatial = predictor.metadata["inputs"][0]["shape"][1:]
    axes = len(spatial) + (1 if layer.rgb or channels > 1 else 0)
    if data.ndim < axes:
        raise cytra.InputError(f"the layer '{layer.name}' has the shape {tuple(data.shape)}; the model takes images of {len(spatial)} dimensions"
                               + (f" with {channels} channels" if channels > 1 else ""))
    lead = tuple(data.shape[: data.ndim - axes])
    names = [str(name).lower() for name in getattr(layer, "axis_labels", ())]
    is_stack = len(spatial) == 2 and len(lead) > 0 and names[len(lead) - 1: len(lead)] not in (["t"], ["time"])
    if is_stack:
        lead = lead[:-1]

    def images() -> Iterator[np.ndarray]:
        for index in np.ndindex(lead):
            image = np.asarray(data[index])
            if layer.rgb:
                image = np.moveaxis(image, -1, 0)[:3]  # without alpha; whether one channel can be made of them, the model knows
            elif is_stack and channels > 1:
                image = np.moveaxis(image, 1, 0)
            yield image.reshape(1, channels, *image.shape[-3:]) if is_stack else image

    return lead, len(spatial) + is_stack, images()


class Session(QObject):
    """A predictor that is kept between runs, and the thread of a run. The signals arrive in the thread of the user interface."""

    progressed = Signal(int, int)
    ended = Signal(object, object)  # the result, or None and the text of an error

    def __init__(self) -> None:
        super().__init__()
        self._key: Any = None
        self._predictor: cytra.Predictor | None = None
        self._thread: threading.Thread | None = None
        self._is_cancelled = threading.Event()
        self._is_closed = False

    def run(self, checkpoint: str, options: list[str], work: Callable[[cytra.Predictor], Any]) -> None:
        self._is_cancelled.clear()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, args=((checkpoint, *options), work), daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._is_cancelled.is_set():
            raise cytra.CytraError("cancelled")

    def _run(self, key: tuple[str, ...], work: Callable[[cytra.Predictor], Any]) -> None:
        result, text = None, None
        try:
            if key != self._key or self._predictor is None:
                self._drop()
                self._predictor, self._key = cytra.Predictor(key[0], options=key[1:]), key
            self.check()
            result = work(self._predictor)
        except Exception as error:
            text = "cancelled" if self._is_cancelled.is_set() else str(error) or type(error).__name__
            if not isinstance(error, cytra.InputError) and not self._is_cancelled.is_set():
                self._drop()  # the program may have ended
        try:
            if not self._is_closed:
                self.ended.emit(result, text)
                return
        except RuntimeError:
            pass  # Qt's part of this object was deleted while the run was under way
        self._drop()

    def cancel(self) -> None:
        self._is_cancelled.set()
        if self._predictor is not None:
            self._predictor.cancel()

    def close(self) -> None:
        """Ends a run and the program. A model that is still being loaded ends when it is."""
        self._is_closed = True
        self.cancel()
        if self._thread is not None:
            self._thread.join(10)
        self._drop()

    def _drop(self) -> None:
        predictor, self._predictor = self._predictor, None
        if predictor is not None:
            predictor.close()


class PredictWidget(QWidget):
    """Predicts an image layer with a trained model; napari gives the viewer."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self.session = Session()
        self.session.progressed.connect(self._show_progress)
        self.session.ended.connect(self._end)
        self._finish: Callable[[Any], None] = lambda result: None
        self.checkpoint = QLineEdit(placeholderText="best.ckpt, a zoo's package, or a model at hand: nuclei")
        self.checkpoint.setCompleter(QCompleter(_names_at_hand(), self))
        self.checkpoint.editingFinished.connect(self._load)
        self.layer, self.form, self.device = QComboBox(), QComboBox(), QComboBox()
        self.device.addItems(["auto", "cpu", "gpu"])
        self.threshold = QDoubleSpinBox(minimum=0, maximum=1, singleStep=0.05, value=0.5)
        self.threshold.setToolTip("of a mask's probability")
        self.options = QLineEdit(placeholderText="overrides: tta.mirror_axes=[0,1]")
        self.run_button, self.cancel_button = QPushButton("Run"), QPushButton("Cancel")
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.session.cancel)
        self.progress = QProgressBar()
        self.message = QLabel(wordWrap=True, textInteractionFlags=Qt.TextInteractionFlag.TextSelectableByMouse)
        self.table = QTableWidget()
        file, folder = QPushButton("File..."), QPushButton("Folder...")
        file.clicked.connect(lambda: self._choose(QFileDialog.getOpenFileName(self, "Checkpoint")[0]))
        folder.clicked.connect(lambda: self._choose(QFileDialog.getExistingDirectory(self, "Folder of a model")))
        form = QFormLayout()
        form.addRow("Model", self.checkpoint)
        form.addRow("", _row(file, folder))
        for name, widget in (("Image", self.layer), ("Result", self.form), ("Threshold", self.threshold), ("Device", self.device), ("Options", self.options)):
            form.addRow(name, widget)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        for widget in (_row(self.run_button, self.cancel_button), self.progress, self.message, self.table):
            layout.addWidget(widget)
        for event in (self.viewer.layers.events.inserted, self.viewer.layers.events.removed):
            event.connect(self._list_layers)
        self._list_layers()
        self._set_busy(False)

    def event(self, event: QEvent) -> bool:
        # napari takes a dock's widget out of it when the dock is closed.
        if event.type() == QEvent.Type.Close or (event.type() == QEvent.Type.ParentChange and self.parent() is None):
            self.session.close()
            self._set_busy(False)
        return super().event(event)

    def run(self) -> None:
        """Predicts the chosen layer; the result becomes a layer when it is there."""
        layer = self.layer.currentData()
        self.table.setRowCount(0)
        if layer is None:
            self.message.setText("There is no image layer: open an image first.")
            return
        wanted, threshold = self.form.currentText(), self.threshold.value()

        def work(predictor: cytra.Predictor) -> tuple[list[str], str, np.ndarray, int]:
            form = wanted if wanted in predictor.forms else predictor.forms[0]
            lead, spatial, images = images_of(layer, predictor)
            number = int(np.prod(lead))
            results, last = [], 0

            def show(done: int, total: int) -> None:  # windows of an image
                self.session.check()
                self.session.progressed.emit(len(results) * total + done, number * total)

            for image in images:
                result = predictor.predict(image, form, show, **({"threshold": threshold} if form == "mask" else {}))
                while result.ndim > spatial and result.shape[0] == 1:
                    result = result[0]
                if form == "labels":  # each image numbers its objects from 1
                    result = np.where(result > 0, result + last, 0)
                    last = max(last, int(result.max(initial=0)))
                results.append(result)
                self.session.check()
            return predictor.forms, form, np.reshape(results, lead + results[0].shape), spatial

        self._start(work, lambda result: self._add(layer, *result))

    def _load(self) -> None:
        if self.checkpoint.text() and self.run_button.isEnabled():
            self._start(lambda predictor: predictor.forms, self._list_forms)

    def _choose(self, path: str) -> None:
        if path:
            self.checkpoint.setText(path)
            self._load()

    def _start(self, work: Callable[[cytra.Predictor], Any], finish: Callable[[Any], None]) -> None:
        if not self.checkpoint.text():
            self.message.setText("Choose a model: a checkpoint, or the folder of a package.")
            return
        self._finish = finish
        self._set_busy(True)
        try:
            self.session.run(self.checkpoint.text(), [f"trainer.accelerator={self.device.currentText()}", *shlex.split(self.options.text())], work)
        except ValueError as error:  # a quote without its end
            self._end(None, f"options: {error}")

    def _end(self, result: Any, error: str | None) -> None:
        self._set_busy(False)
        self.message.setText(error or "")
        if error is None:
            self._finish(result)

    def _add(self, layer: Image, forms: list[str], form: str, values: np.ndarray, spatial: int) -> None:
        self._list_forms(forms, form)
        # The last axes are the image's; a leading one of channels has no scale.
        axes = min(layer.ndim, values.ndim)
        pad = values.ndim - axes
        place = {"name": f"{layer.name} {form}", "scale": [1] * pad + list(layer.scale[-axes:]), "translate": [0] * pad + list(layer.translate[-axes:])}
        if form not in ("mask", "labels"):
            self.viewer.add_image(values, **place)
            return
        added = self.viewer.add_labels(values.astype(np.int32), **place)
        self._tabulate(added, spatial)

    def _tabulate(self, layer: Labels, spatial: int) -> None:
        """Sizes and centroids in the layer's units."""
        labels, counts, centroids = measure(layer.data)
        sizes = counts * np.prod(layer.scale[-spatial:])
        centroids = centroids * layer.scale + layer.translate
        names = ["label", "area" if spatial == 2 else "volume", *(f"centroid-{axis}" for axis in range(layer.ndim))]
        self.table.setColumnCount(len(names))
        self.table.setHorizontalHeaderLabels(names)
        self.table.setRowCount(len(labels))
        for row, values in enumerate(zip(labels, sizes, *centroids.T)):
            for column, value in enumerate(values):
                self.table.setItem(row, column, QTableWidgetItem(f"{value:.6g}" if column else str(value)))

    def _list_forms(self, forms: list[str], chosen: str | None = None) -> None:
        self.form.clear()
        self.form.addItems(forms)
        self.form.setCurrentText(chosen or forms[0])

    def _list_layers(self, _: Any = None) -> None:
        chosen = self.layer.currentData()
        self.layer.clear()
        for layer in self.viewer.layers:
            if isinstance(layer, Image):
                self.layer.addItem(layer.name, layer)
                if layer is chosen:
                    self.layer.setCurrentIndex(self.layer.count() - 1)

    def _show_progress(self, done: int, total: int) -> None:
        self.progress.setRange(0, total)
        self.progress.setValue(done)

    def _set_busy(self, is_busy: bool) -> None:
        self.run_button.setEnabled(not is_busy)
        self.cancel_button.setEnabled(is_busy)
        self.progress.setRange(0, 0 if is_busy else 1)
        self.progress.setValue(0)
        if is_busy:
            self.message.setText("")


def _row(*widgets: QWidget) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        layout.addWidget(widget)
    return row
