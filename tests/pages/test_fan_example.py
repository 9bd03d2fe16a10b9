"""examples/fan: a sensor, a recording, a monitor and a replay, on an emulated Uno."""

import importlib.util
import subprocess

import pytest

from pykernel.gen.project import generate
from pykernel.spec.model import load_spec
from tests.support import ROOT
from tests.support.tools import need

FAN = ROOT / "examples" / "fan"
BOARDS = {
    "board_uno.c": ["avr-gcc", "-mmcu=atmega328p", "-std=gnu99"],
    "board_nucleo_g031.c": ["arm-none-eabi-gcc", "-mcpu=cortex-m0plus", "-mthumb", "-std=c99"],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", BOARDS)
def test_it_compiles_for_both_boards(board, tmp_path):
    need(BOARDS[board][0])
    generate(load_spec(FAN / "fan.toml"), tmp_path / "fan", also=("recorder",))
    for more in ([], ["-DRECORD_ONLY"]):
        for source in (FAN / "firmware.c", FAN / "adxl345.c", FAN / board):
            words = [*BOARDS[board], "-Os", "-Wall", "-Wextra", "-Werror", *more, f"-I{tmp_path / 'fan' / 'src'}", "-c"]
            subprocess.run([*words, source, "-o", tmp_path / "out.o"], check=True)


@pytest.mark.exhaustive("minutes")
def test_a_knocking_bearing_is_recorded_told_and_replayed(tmp_path):
    need("avr-gcc", "libsimavr-dev")
    loaded = importlib.util.spec_from_file_location("fan_run", FAN / "run.py")
    run = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(run)
    found = run.main(tmp_path / "out")  # which ends with an error if the replay is not equal
    assert {*range(272, 290)} <= {*found} and len([second for second in found if second < 269]) <= 5
    header, *again = [line.split(",") for line in (tmp_path / "out" / "again.csv").read_text().splitlines()]
    status = {row[header.index("status")] for row in again}
    assert len(again) > 1000 and status.isdisjoint({"3"})  # no second warm-up: the snapshot was there
