"""Prediction by a running `serve`: docs/serving.md says what it takes."""
from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import urllib.parse
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing import shared_memory
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ._http import Answer, Channel
from ._programs import CytraError, InputError, TimedOut, error_of, program, quoted, understood, words_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TYPES = {"UINT8": "u1", "INT8": "i1", "UINT16": "u2", "INT16": "i2", "UINT32": "u4", "INT32": "i4", "FP32": "f4", "FP64": "f8"}
# Types that the protocol's tensors of images have not, and those that hold all values that images have of them.
_SENT = {np.dtype(code): np.dtype(other) for code, other in {"?": "u1", "i8": "f8", "u8": "f8", "f2": "f4"}.items()}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}

Progress = Callable[[int, int], None]
_LOOK_SECONDS = 0.1  # between two looks at how far an image is


class Cancelled(CytraError):
    """The prediction was cancelled."""


class Parameters(TypedDict, total=False):
    """What a prediction may be told: timeout in seconds; scene and timepoint of files."""
    threshold: float | None
    head: str | None
    timeout: float | None
    scene: int | None
    timepoint: int | None


def _path_or_name(checkpoint: str) -> str:
    """A word that names no file is the name of a model at hand."""
    is_path = os.path.exists(checkpoint) or not checkpoint or any(letter in "/.\\*?[" for letter in checkpoint)
    return os.path.abspath(checkpoint) if is_path else checkpoint


class _Server:
    """A child `serve` at a socket that only this user reaches. It ends with this object, and with this process."""

    def __init__(self, checkpoint: str, words: list[str]):
        start = program("serve")
        folder = tempfile.mkdtemp(prefix="cytra-")
        self.url = f"unix:{folder}/socket"
        self._errors = tempfile.TemporaryFile()
        command = [*start, f"checkpoint.ckpt_path={quoted(checkpoint)}", f"host={self.url}", "until_stdin=true", "--json", "--json-messages",
                   "limits.requests_mb=1000000", *words]  # arrays of any size: it serves this process alone
        # Its stdin is a pipe of ours: where this process dies, however, the pipe ends, and so does the server.
        try:
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True)
        except (ValueError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise InputError(f"serve can't be run with {words}: {error}") from error
        self._end = weakref.finalize(self, _stop, os.getpid(), self._child, self._errors, folder)
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            failure = self.failure() or CytraError("serve ended without a word")
            self.close()
            raise failure
        with understood("what serve writes"):
            told = json.loads(line)
            self.token: str | None = told["token"]
            self.models: list[str] = told["model"]

    def failure(self) -> CytraError | None:
        """What it said when it ended; None: it runs."""
        if not self._end.alive:
            return CytraError("the predictor is closed")
        try:
            code = self._child.wait(0.5)
        except subprocess.TimeoutExpired:
            return None
        self._errors.seek(0)
        return error_of("serve", code, self._errors.read().decode(errors="replace"))

    def close(self) -> None:
        self._end()


def _stop(process: int, child: subprocess.Popen[bytes], errors: Any, folder: str) -> None:
    if process != os.getpid():
        return  # the server is that of the process before fork()
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout, errors):
        if pipe is not None:
            pipe.close()
    shutil.rmtree(folder, ignore_errors=True)


class Predictor:
    """A trained model that stays loaded.

    checkpoint: what `predict` takes: a checkpoint, a zoo's package or folder, TorchScript, ONNX. `options` are overrides of `serve`:
    {"trainer.accelerator": "cpu", "tta.mirror_axes": [0, 1]}. Or server: the URL of a running one (http://HOST:PORT, unix:PATH), with its
    token and the model's name, where it has several.

    Thread: any; predictions are made one after the other, and cancel() ends the one that is under way. Raises InputError for what the
    program refuses.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None = None, *, server: str | None = None, token: str | None = None, model: str | None = None,
                 options: Any = ()):
        if (checkpoint is None) == (server is None):
            raise InputError("expected a checkpoint, or the URL of a server")
        self._child: _Server | None = None
        words = words_of(options)
        with understood("limits.timeout_s"):
            self._seconds = float((["300", *(word.partition("=")[2] for word in words if word.startswith("limits.timeout_s="))])[-1])
        if server is None:
            self._child = _Server(_path_or_name(os.fspath(checkpoint)) if checkpoint is not None else "", words)
            server, token, model = self._child.url, self._child.token, self._child.models[0]
        self._turn = threading.Lock()
        self._is_local = server.startswith("unix:")
        self._channel, self._watch = Channel(server, token), Channel(server, token)
        if model is None:
            told = self._channel.ask("POST", "/v2/repository/index", b"{}").body
            with understood("the server's answer"):
                names = [each["name"] for each in json.loads(told)]
            if len(names) != 1:
                raise InputError(f"the server has the models {', '.join(map(str, names))}; expected model=NAME")
            model = str(names[0])
        self.model = model
        self._path = "/v2/models/" + urllib.parse.quote(model)
        told = self._channel.ask("GET", self._path).body
        with understood("the server's answer"):
            self.metadata: dict[str, Any] = dict(json.loads(told))
            str(self.forms[0])

    @property
    def forms(self) -> list[str]:
        """The forms of result, the usual one first: mask, probability, labels ..."""
        return [output["name"] for output in self.metadata["outputs"]]

    def predict(self, image: np.ndarray[Any, Any] | str | os.PathLike[str], form: str | None = None, progress: Progress | None = None,
                **parameters: Unpack[Parameters]) -> np.ndarray[Any, Any]:
        """The result for an image: an array ([Z,]Y,X), (C,[Z,]Y,X) or (N,C,[Z,]Y,X), of the values of a file, or the path of one.

        form: one of `forms`; None: the usual one. progress(done, total) is called in this thread with the number of windows that the
        model has seen, and of all; the last call has both equal. What it raises ends the prediction. parameters: threshold, head,
        timeout (s; else the server's limits.timeout_s, 300); of a file also scene, timepoint. Arrays go through shared memory where the server is this machine's. Returns an array
        with as many dimensions as the image, ((C,)[Z,]Y,X) of a file. Raises InputError, CytraError; Cancelled after cancel(); TimedOut.
        """
        of_both = ("threshold", "head", "timeout")
        with self._turn:
            for channel in (self._channel, self._watch):
                channel.is_stopped.clear()
            try:
                if isinstance(image, (str, os.PathLike)):
                    return self._predict_file(os.fspath(image), form, progress, _wishes(parameters, (*of_both, "scene", "timepoint")))
                return self._predict_array(_values_of(image), form or self.forms[0], progress, _wishes(parameters, of_both))
            except CytraError as error:
                if self._channel.is_stopped.is_set():
                    raise Cancelled("cancelled") from error
                if self._child is not None and not isinstance(error, (InputError, TimedOut)):
                    raise self._child.failure() or error from error
                raise

    def predict_many(self, images: Iterable[Any], form: str | None = None, progress: Callable[[int, int | None], None] | None = None,
                     **parameters: Unpack[Parameters]) -> Iterator[np.ndarray[Any, Any]]:
        """The results of images, one after the other. progress(done, total) is called after each image, and counts images; total is None
        where they have no len(). For the windows within each, call predict() in a loop."""
        if isinstance(images, (str, os.PathLike)):
            raise InputError(f"{os.fspath(images)!r}: expected images, one after the other; predict() takes one")
        total = len(images) if hasattr(images, "__len__") else None  # type: ignore[arg-type]
        for done, image in enumerate(images, 1):
            result = self.predict(image, form, **parameters)
            if progress is not None:
                progress(done, total)
            yield result

    def cancel(self) -> None:
        """Ends the prediction that another thread waits for; the server stops its work."""
        for channel in (self._channel, self._watch):
            channel.stop()

    def close(self) -> None:
        for channel in (self._channel, self._watch):
            channel.close()
        if self._child is not None:
            self._child.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Predictor can't be pickled or copied, as it holds a connection: each process makes its own, from the checkpoint or by server=")

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, path: str, query: dict[str, Any], body: bytes | list[bytes | memoryview], headers: dict[str, str], progress: Progress | None,
              parameters: dict[str, Any]) -> Answer:
        seconds = 10 + parameters.get("timeout", self._seconds)  # the server itself ends the work before
        if progress is None:
            return self._channel.ask("POST", f"{path}?{urllib.parse.urlencode(query)}", body, headers, seconds=seconds)
        name, last = secrets.token_hex(16), (0, 0)
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(self._channel.ask, "POST", f"{path}?{urllib.parse.urlencode({**query, 'request_id': name})}", body, headers,
                                  seconds=seconds)
            try:
                while not wait([asked], _LOOK_SECONDS).done:
                    try:
                        with understood("the server's answer"):
                            told = json.loads(self._watch.ask("GET", "/progress/" + name).body)
                            now = int(told["done"]), int(told["total"] or 0)
                    except CytraError:
                        continue  # the request is not there yet, or has just ended
                    if now[1] and now != last:
                        last = now
                        progress(*now)
            finally:
                if not asked.done():
                    self._channel.stop()
            answer = asked.result()
        with understood("the server's answer"):
            total = int(answer.headers.get("Progress-Total") or 0)  # none of an older server
        if last != (total, total):
            progress(total, total)
        return answer

    def _predict_file(self, path: str, form: str | None, progress: Progress | None, parameters: dict[str, Any]) -> np.ndarray[Any, Any]:
        query = {"filename": os.fsencode(os.path.basename(path)), "format": "npy", **parameters}
        if form is not None:
            query["save"] = form
        try:
            with open(path, "rb") as file:
                body = file.read()
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: can't be read: {error}") from error
        answer = self._post("/predict/" + urllib.parse.quote(self.model), query, body, {}, progress, parameters)
        with understood("the server's answer"):
            values: np.ndarray[Any, Any] = np.lib.format.read_array(io.BytesIO(answer.body), allow_pickle=False)
            return values

    def _predict_array(self, image: np.ndarray[Any, Any], form: str, progress: Progress | None, parameters: dict[str, Any]) -> np.ndarray[Any, Any]:
        kind = _NAMES.get(image.dtype.newbyteorder("="))
        if kind is None:
            raise InputError(f"an array of {image.dtype}, expected one of {', '.join(map(str, [*_NAMES, *_SENT]))}")
        values = np.ascontiguousarray(image, image.dtype.newbyteorder("<"))
        wishes = {**parameters, **({"timeout": 1e6 * parameters["timeout"]} if "timeout" in parameters else {})}
        tensor: dict[str, Any] = {"name": "image", "shape": list(values.shape), "datatype": kind}
        wish: dict[str, Any] = {"name": form, "parameters": {"binary_data": True}}
        region = _Region(self._channel, values) if self._is_local and values.nbytes > 1 << 16 else None
        try:
            binary: list[bytes | memoryview] = []
            if region is not None:
                tensor["parameters"] = region.place
            else:
                tensor["parameters"] = {"binary_data_size": values.nbytes}
                binary = [values.data.cast("B")] if values.nbytes else []
            head = json.dumps({"inputs": [tensor], "outputs": [wish], "parameters": wishes}).encode()
            answer = self._post(self._path + "/infer", {}, [head, *binary],
                                {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}, progress, parameters)
        finally:
            if region is not None:
                region.close()
        with understood("the server's answer"):
            length = int(answer.headers.get("Inference-Header-Content-Length") or len(answer.body))
            told = json.loads(answer.body[:length])["outputs"][0]
            result: np.ndarray[Any, Any] = np.frombuffer(answer.body, np.dtype(_TYPES[told["datatype"]]).newbyteorder("<"), offset=length).reshape(told["shape"]).copy()
            return result


def _wishes(parameters: Mapping[str, object], known: tuple[str, ...]) -> dict[str, Any]:
    """The parameters, NumPy's numbers as Python's. Raises InputError for one that is not known, which would not be read."""
    for name in parameters:
        if name not in known:
            raise InputError(f"{name}: no such parameter, expected one of {', '.join(known)}")
    wishes: dict[str, Any] = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items() if value is not None}
    timeout = wishes.get("timeout", 1)
    if not isinstance(timeout, (int, float)) or not 1e-6 <= timeout <= 1e6:
        raise InputError(f"timeout: {timeout!r}, expected seconds, above 0 and up to 1000000")
    return wishes


def _values_of(image: Any) -> np.ndarray[Any, Any]:
    """The array as it is sent. Raises InputError."""
    if isinstance(image, (list, tuple)) and any(isinstance(each, (np.ndarray, str, os.PathLike)) for each in image):
        raise InputError(f"a {type(image).__name__} of {len(image)} images, expected one: predict_many() takes several, numpy.stack() makes channels of them")
    if isinstance(image, np.ma.MaskedArray):
        raise InputError("a masked array, expected one without a mask: filled() says what the masked values are")
    values = np.asarray(image)
    kind = values.dtype.newbyteorder("=")
    return values.astype(_SENT[kind]) if kind in _SENT else values


class _Region:
    """An array in shared memory that the server knows by name."""

    def __init__(self, channel: Channel, values: np.ndarray[Any, Any]):
        self._channel = channel
        self._memory = shared_memory.SharedMemory(f"cytra_{os.getpid()}_{secrets.token_hex(4)}", create=True, size=values.nbytes)
        try:
            np.ndarray(values.shape, values.dtype, self._memory.buf)[...] = values
            self.name = self._memory.name.lstrip("/")
            words = {"key": "/" + self.name, "offset": 0, "byte_size": values.nbytes}
            channel.ask("POST", f"/v2/systemsharedmemory/region/{self.name}/register", json.dumps(words).encode())
        except BaseException:
            self._memory.close()
            self._memory.unlink()
            raise
        self.place = {"shared_memory_region": self.name, "shared_memory_byte_size": values.nbytes}

    def close(self) -> None:
        try:
            self._channel.ask("POST", f"/v2/systemsharedmemory/region/{self.name}/unregister", is_last_word=True)
        except CytraError:
            pass  # the server is gone, and with it the region's name
        self._memory.close()
        self._memory.unlink()


def predict(checkpoint: str | os.PathLike[str], image: np.ndarray[Any, Any] | str | os.PathLike[str], form: str | None = None, progress: Progress | None = None,
            *, options: Any = (), **parameters: Unpack[Parameters]) -> np.ndarray[Any, Any]:
    """The result for one image; Predictor says what it takes. For many images a Predictor loads the model once."""
    with Predictor(checkpoint, options=options) as predictor:
        return predictor.predict(image, form, progress, **parameters)
