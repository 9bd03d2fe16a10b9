"""Record the origin of a spec: how its inputs are computed, and on which rows its vectors were trained."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import UserError, visible
from pykernel.host.recording import Digest, Recorded
from pykernel.spec.families.frozen import Expansion, scaling_digest
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.sections import FORMULA_LIMIT


def with_origin(
    spec: Spec,
    data: str | Path,
    read: Mapping[str, Any],
    x: np.ndarray | None,
    promise: Mapping[str, float] | None = None,
) -> Spec:
    """Return the spec with notes on how its inputs are computed and on which rows of a recording its vectors were trained.

    read: a description of how the recording was read.  x: the inputs, (rows, DIM), if they are known.  promise: the
    expected error on future rows, and half the width of the interval around this error.
    """
    content = spec.model_dump(exclude_unset=True)
    if lines := [f"{name} = {visible(how)}"[:FORMULA_LIMIT].strip() for name, how in read.get("made", {}).items()]:
        content["input"] |= {"formulas": lines}
    if isinstance(spec.expansion, Expansion):
        trained: dict[str, Any] = {"scaling": scaling_digest(spec)}
        if x is not None:
            known = np.where(np.isfinite(x), x, np.nan)
            for key, ends in (("low", np.nanmin(known, axis=0)), ("high", np.nanmax(known, axis=0))):
                trained[key] = [float(f"{value:.6g}") for value in ends]
        if promise is not None:
            trained["promise"] = [float(f"{promise[key]:.4g}") for key in ("error", "within")]
        if Path(data).is_file():
            rows = Digest()
            with contextlib.suppress(UserError), contextlib.ExitStack() as stack:
                for _ in rows.reading(Recorded(spec, data).batches(stack)[0]):
                    pass
                trained |= {"rows": rows.rows, "data": rows.digest}
        content["expansion"] = {"trained": trained} | content["expansion"]
    return make_spec(content, custom=spec.custom)
