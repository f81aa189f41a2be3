"""Cytra's programs as children, and their mistakes as exceptions."""
from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np


class CytraError(RuntimeError):
    """A program failed. `code` is its exit code (docs/errors.md), or None; the text is the program's own."""

    def __init__(self, text: str, code: int | None = None):
        super().__init__(text)
        self.code = code


class InputError(CytraError, ValueError):
    """What was asked for is wrong: a key, a value, a path, an image (exit code 2)."""


class TimedOut(CytraError, TimeoutError):
    """There was no result within `timeout`."""


class ProgramNotFound(CytraError, FileNotFoundError):
    """Cytra's programs are not installed here, or not on PATH."""


def program(name: str) -> list[str]:
    """The words that start a program: its path, or "cytra NAME" of a wheel. Raises ProgramNotFound."""
    folder = os.environ.get("CYTRA_BIN")
    for words in ([name], ["cytra", name]):
        found = shutil.which(words[0], path=folder) if folder else shutil.which(words[0])
        if found is not None:
            return [found, *words[1:]]
    where = f"in CYTRA_BIN={folder}" if folder else "on PATH"
    raise ProgramNotFound(f"there is no program '{name}' {where}: install Cytra (pipx install cytra), or name its folder in CYTRA_BIN")


def words_of(overrides: str | Iterable[str] | Mapping[str, Any]) -> list[str]:
    """Overrides as words: "a=1", ["a=1", "b=2"] or {"a": 1}, whose values are written as Cytra's configurations have them."""
    if isinstance(overrides, str):
        return [overrides]
    if isinstance(overrides, Mapping):
        return [f"{key}={_value(value)}" for key, value in overrides.items()]
    return [str(word) for word in overrides]


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (np.generic, np.ndarray)):
        return _value(value.tolist())
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_value, value)) + "]"
    return quoted(os.fspath(value))


def quoted(text: str) -> str:
    """A text as one value of an override. Backslashes count twice before a quote alone, as in Hydra."""
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


def error_of(name: str, code: int, stderr: str) -> CytraError:
    """The exception for a program that ended with this code; `stderr` are lines of JSON (--json-messages)."""
    texts = []
    for line in stderr.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("level") == "error":
            texts.append(str(event.get("text")))
    if code < 0:
        return CytraError(f"{name} was ended by signal {-code}", code)
    text = "\n".join(texts) or stderr.strip().removeprefix("error: ") or f"{name} ended with exit code {code}"
    return (InputError if code == 2 else CytraError)(text, code)


@contextlib.contextmanager
def understood(what: str) -> Iterator[None]:
    """Makes a CytraError of whatever is raised while an answer is read that another one wrote."""
    try:
        yield
    except CytraError:
        raise
    except Exception as error:
        raise CytraError(f"{what} can't be understood: {error or type(error).__name__}") from error


def run(name: str, *words: str) -> str:
    """Runs a program to its end; returns its stdout. Raises what error_of() makes, InputError for words that no program can be given."""
    start = program(name)
    try:
        done = subprocess.run([*start, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except (ValueError, OSError) as error:
        raise InputError(f"{name} can't be run with {words}: {error}") from error
    if done.returncode:
        raise error_of(name, done.returncode, done.stderr)
    return done.stdout


def compose(overrides: str | Iterable[str] | Mapping[str, Any] = (), program: str = "train") -> dict[str, Any]:
    """The configuration that a program would run with, its references replaced. Raises InputError."""
    text = run(program, *words_of(overrides), "--cfg", "job", "--resolve", "--json", "--json-messages")
    with understood(f"what {program} writes of {overrides}"):
        return dict(json.loads(text))


def describe(name: str, program: str = "train") -> Any:
    """What a file is (an image, a checkpoint), as a dict; or the options of a component (DynUNet), a group (optimizer) or a key
    (trainer.max_epochs), as text. Raises InputError, which names the nearest choice."""
    text = run(program, "--json", "--json-messages", f"--describe={os.fspath(name)}")
    try:
        return json.loads(text)
    except ValueError:
        return text


def models() -> list[dict[str, Any]]:
    """The models at hand, whose names stand for a checkpoint: name, file, size, and what their cards say (task, images, score ...)."""
    found: list[dict[str, Any]] = json.loads(run("cytra", "models", "--json"))
    return found


def read_image(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """The pixels of an image of any format that Cytra reads, as it is on the disk, with axes (C,Z,Y,X) without those of size 1, but
    for Y and X. Raises InputError."""
    with tempfile.TemporaryDirectory(prefix="cytra-") as folder:
        file = os.path.join(folder, "image.npy")
        text = run("convert_image", os.path.join(os.curdir, os.fsdecode(path)), file, "--json")  # no flag, whatever its name
        with understood("what convert_image writes"):
            shape = json.loads(text)["shape"]
            pixels: np.ndarray[Any, Any] = np.load(file, allow_pickle=False).reshape([n for n in shape[:2] if n > 1] + shape[2:])
            return pixels
