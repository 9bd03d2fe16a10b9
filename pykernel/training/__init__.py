"""Kernel machines trained on the PC, in float64: nothing in this room works without SciPy, as in the room bases."""

import pykernel.bases  # noqa: F401
