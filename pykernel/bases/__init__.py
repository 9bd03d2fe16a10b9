"""Select a basis on the PC.  This package needs SciPy."""

from pykernel.errors import MissingExtra

try:
    import scipy  # type: ignore[import-untyped] # noqa: F401
except ImportError as error:  # scikit-learn installs SciPy
    raise MissingExtra("training, choosing a basis or importing on the host", "sklearn") from error
