"""Models that are trained at once, or on a basis, on the device or elsewhere: the same bytes from the host and every target."""

from __future__ import annotations

import pytest

from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.errors import UserError
from pykernel.spec.kernel_settings import FUNCTIONS
from tests.support.machines import KERNELS, MACHINES, machine
from tests.support.targets import EACH_TARGET


def test_there_is_one_of_each():
    assert {*KERNELS, "custom"} == set(FUNCTIONS) and len(FUNCTIONS) == len(KernelFunction)
    used = {machine["kernel"].get("function", "gaussian") for machine in MACHINES.values() if "kernel" in machine}
    assert used == set(KERNELS)


@pytest.mark.in_turn(432)
@pytest.mark.parametrize("target", EACH_TARGET)
@pytest.mark.parametrize("name", MACHINES)
def test_every_target_computes_the_hosts_bytes(name, target):
    pytest.importorskip("unicorn")
    pytest.importorskip("ziglang")
    from pykernel.targets.check import check_targets

    report = check_targets(machine(name), [target], samples=1000, chain="zig", emulator="unicorn", tries=0)
    assert report.ok, [row["first_difference"] for row in report.rows]


@pytest.mark.exhaustive
@pytest.mark.in_turn(18)
@pytest.mark.parametrize(("target", "chain", "emulator"), [("cortex-m4f", "gcc", "qemu"), ("avr", "gcc", "simavr")])
@pytest.mark.parametrize(
    "name",
    [
        n if n in ("products", "kfd", "efvs", "subspace-rls") else pytest.param(n, marks=pytest.mark.exhaustive)
        for n in MACHINES
    ],
)
def test_a_second_opinion(name, target, chain, emulator):
    from pykernel.targets.check import check_targets, choose

    try:
        choose([target], chain, emulator)
    except UserError as missing:
        pytest.skip(str(missing))
    report = check_targets(machine(name), [target], samples=300, chain=chain, emulator=emulator, tries=0)
    assert report.ok, [row["first_difference"] for row in report.rows]
