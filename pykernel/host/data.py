"""All rows of a recording in memory."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.files import open_data
from pykernel.host.simulate import require_columns, samples_of
from pykernel.spec.model import Spec


def read_rows(spec: Spec, data: str) -> tuple[Any, Any]:
    """All rows of a file, (x, y).  An empty label becomes NaN, which a model refuses."""
    require_columns(spec)
    with contextlib.ExitStack() as stack:
        name, file, _ = open_data(data, stack)
        batches = list(samples_of(spec, file, name))
    if not batches:
        raise UserError(f"{data}: has no rows to learn; give a file with some")
    x, y = np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])
    return x, y if spec.program.label is not None else np.zeros((len(x), 0))
