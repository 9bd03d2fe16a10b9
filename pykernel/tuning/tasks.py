"""The function that worker processes run for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.errors import UserError
from pykernel.spec.model import make_spec
from pykernel.tuning.combinations import reason_of
from pykernel.tuning.costs import target_costs
from pykernel.tuning.data import Table
from pykernel.tuning.trials import judged


def work(task: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Run a task, which is a trial or a measurement, in any process.  The result can be written as JSON."""
    if task["do"] == "judge":
        try:
            return judged(task, table)
        except UserError as error:
            return {"reason": reason_of(error)}
    spec = make_spec(task["spec"])
    return target_costs(spec, *table.device_rows(spec), task["target"], tries=task["tries"])
