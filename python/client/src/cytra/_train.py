"""Trainings as children."""
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._programs import error_of, program, words_of


@dataclass(frozen=True)
class Epoch:
    """An epoch that has ended: its number from 1, and the metrics by name (val/dice, val/loss ...)."""

    number: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Run:
    """A training that has ended: its folder, the best checkpoint (None: none was kept), and all results of `train --json`."""

    output_dir: str
    checkpoint: str | None
    results: dict[str, Any]


def train(overrides: str | Iterable[str] | Mapping[str, Any], on_epoch: Callable[[Epoch], Any] | None = None, cwd: str | os.PathLike[str] | None = None) -> Run:
    """Trains to the end: train(["experiment=im2im/segmentation", "data.path=my_data"]).

    on_epoch is called after each epoch; where it returns False the training ends, after saving its state. Raises InputError for a mistake,
    CytraError for another failure, with the program's text. KeyboardInterrupt ends the training, too.
    """
    command = [*program("train"), *words_of(overrides), "--json", "--json-messages"]
    child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    assert child.stdout is not None and child.stderr is not None
    lines: list[str] = []
    is_stopped = False
    try:
        for line in child.stderr:
            lines.append(line)
            epoch = _epoch_of(line) if on_epoch is not None else None
            if epoch is not None and on_epoch is not None and on_epoch(epoch) is False and not is_stopped:
                is_stopped = True
                child.terminate()
        told = child.stdout.read()
        code = child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    finally:
        child.stdout.close()
        child.stderr.close()
    if code and not is_stopped:
        raise error_of("train", code, "".join(lines))
    results = json.loads(told) if told.strip() else {}
    return Run(results.get("output_dir", ""), results.get("best_checkpoint") or results.get("last_checkpoint"), results)


def _epoch_of(line: str) -> Epoch | None:
    """The epoch that a line of --json-messages reports: {"event": "epoch", "epoch": 1, "step": 200, "metrics": {"val/dice": 0.92, ...}}."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict) or event.get("event") != "epoch":
        return None
    return Epoch(event["epoch"] + 1, {name: float("nan") if value is None else float(value) for name, value in event["metrics"].items()})
