"""Cytra from Python, without torch: it drives Cytra's programs, which need not share this environment.

The programs are found in the folder that CYTRA_BIN names, else on PATH.
"""
from ._predictor import Cancelled, Predictor, predict
from ._programs import CytraError, InputError, ProgramNotFound, TimedOut, compose, describe, models, read_image
from ._train import Epoch, Run, train

__version__ = "0.1.0"
__all__ = ["Cancelled", "CytraError", "Epoch", "InputError", "Predictor", "ProgramNotFound", "Run", "TimedOut",
           "compose", "describe", "models", "predict", "read_image", "train"]
