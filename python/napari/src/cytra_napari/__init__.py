"""Cytra's models in napari. The models run in a program of Cytra, not in napari's process."""
from ._widget import PredictWidget, measure

__all__ = ["PredictWidget", "measure"]
