"""The guides are followed to the letter: their files written, their commands run, their C compiled and executed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.host.choosing_figure import with_last_label
from pykernel.cli.app import main
from pykernel.gen.project import build, generate, state_hash
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support import DOCS
from tests.support.tools import needs

needs_gcc = needs("gcc")


def steps(page):
    """(file or None, language, text) of each block; a line `path`: before a block names the file that it is.

    page: a file, or one of its sections, as in a link.
    """
    name, _, section = page.partition("#")
    text = (DOCS / name).read_text(encoding="utf-8")
    if section:
        (text,) = [part for part in text.split("\n## ") if part.splitlines()[0].lower().replace(" ", "-") == section]
    pattern = r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```"
    return re.findall(pattern, text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def follow(tmp_path, monkeypatch, capsys):
    """A reader who follows a page in an empty folder: files are written, commands are run, what is shown must be said.

    Of a command the page shows some lines, in their order and without regard to spaces; `# ends with N` behind a command is its exit code.  Returns
    the words of the pykernel commands.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def run(line):
        words = shlex.split(line, comments=True)
        if words[0] == "pykernel" and not {">", "<", "|"} & set(words):
            with pytest.raises(SystemExit) as stopped:
                main(words[1:])
            out, err = capsys.readouterr()
            return stopped.value.code, out + err
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def follow(page):
        said, ran = "", []
        for file, language, text in steps(page):
            if file:
                Path(file).parent.mkdir(exist_ok=True, parents=True)
                Path(file).write_text(text)
            elif language == "sh":
                said = ""
                for line in text.replace("\\\n", " ").splitlines():
                    code, out = run(line)
                    said += out
                    assert code == int((re.findall(r"  # ends with (\d)", line) or [0])[0]), f"{line}\n{said}"
                    ran.append(line.split())
            else:
                assert language == "text", "a block that is neither a file, nor commands, nor their output"
                left = " ".join(said.split())
                for line in filter(str.strip, text.splitlines()):
                    _, found, left = left.partition(" ".join(line.split()))
                    assert found, f"{page} shows what is not said:\n{line}\n{said}"
        return [words[1] for words in ran if words[0] == "pykernel"]

    return follow


@pytest.mark.exhaustive("minutes")
def test_ten_minutes_are_enough(follow):
    pytest.importorskip("unicorn")
    assert follow("guide/table-to-firmware.md") == ["plan", "plan", "simulate", "check", "generate"]
    assert Path("firmware/README.md").is_file()


@needs_gcc
@pytest.mark.exhaustive("minutes")
def test_what_a_plan_of_many_trials_says(follow):
    pytest.importorskip("unicorn")
    with_last_label(Path("rentals.csv"))
    assert follow("guide/choosing.md#what-fits?") == ["plan"]


@needs_gcc
@pytest.mark.exhaustive
def test_the_monitor_of_the_tutorial(follow):
    pytest.importorskip("unicorn")
    assert follow("guide/monitor.md") == "simulate simulate check generate".split()
    # what the page says of the recordings
    normal, *changed = (
        np.genfromtxt(f"{name}.csv", delimiter=",", names=True) for name in ("normal", "stuck", "faster")
    )
    for each in changed:
        assert (normal[:2200] == each[:2200]).all() and len(each) == 2400
        late = each[2200:]
        for sensor in ("vibration", "current", "pressure"):
            low, high = normal[sensor].min(), normal[sensor].max()
            assert np.mean((low <= late[sensor]) & (late[sensor] <= high)) > 0.99


@pytest.mark.exhaustive
@needs_gcc
@needs("cmake")
@pytest.mark.usefixtures("one_build")
def test_from_spec_to_firmware(follow):
    assert follow("guide/spec-to-firmware.md") == [
        "simulate",
        "generate",
        "check",
        "state",
        "state",
        "generate",
        "check",
    ]
    # what the page says of the results
    log = Path("log.csv").read_text().splitlines()
    assert len(log) == 2001
    assert "| yes (llvm) |" in Path("firmware/flow/VALIDITY.md").read_text()
    errors = np.genfromtxt("log.csv", delimiter=",", names=True, usecols=("flow", "prediction"))[1000:]
    model, last = errors["flow"] - errors["prediction"], np.diff(errors["flow"])
    mean = errors["flow"] - errors["flow"].mean()
    assert np.abs(model).mean() < 0.5 * min(np.abs(last).mean(), np.abs(mean).mean())


@pytest.mark.exhaustive
def test_eight_pumps(follow):
    assert follow("guide/many-devices.md") == ["simulate", "simulate", "fit", "plan", "state", "generate"]
    assert len(list(Path("states").iterdir())) == 7  # that of pump6 was removed


def test_every_toolchain_of_the_guide_is_in_the_folder(tmp_path):
    generate(make_spec({"name": "flow", "input": {"dim": 3}, "kernel": {"sigma": 1.0}}), tmp_path)
    guide = (DOCS / "guide/spec-to-firmware.md").read_text()
    for folder in re.findall(r"`[^`]*(examples/[\w-]+)[^`]*`", guide):
        assert (tmp_path / folder).is_dir(), folder
    assert re.findall(r"`CONFIG_(\w+)=y`", guide) == re.findall(
        r"^config (\w+)", (tmp_path / "zephyr" / "Kconfig").read_text(), re.M
    )


INTERRUPTS = """
#include <stdio.h>

#define HOOK __attribute__((no_instrument_function))

enum { EVERY = 23 };
static const float point[FLOW_DIM] = {0.5f, 0.25f};
static int inside;
static unsigned long boundaries;

/* The interrupt: a forecast, and the hash of what it was made with. */
HOOK static void interrupt(void)
{
    float y = 0.0f;
    if (inside == 0 && ++boundaries % EVERY == 0) {
        inside = 1;
        if (model_forecast(point, &y) == FLOW_DONE) {
            printf("seen %08lx\\n", (unsigned long)flow_hash(&models[atomic_load(&current)]));
        }
        inside = 0;
    }
}

/* GCC calls these wherever a function of flow.c begins or ends. */
void __cyg_profile_func_enter(void *function, void *caller) HOOK;
void __cyg_profile_func_exit(void *function, void *caller) HOOK;
void __cyg_profile_func_enter(void *function, void *caller) { (void)function, (void)caller; interrupt(); }
void __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller; interrupt(); }

static void after(void)
{
    inside = 1;
    printf("after %08lx\\n", (unsigned long)flow_hash(&models[atomic_load(&current)]));
    inside = 0;
}

int main(void)
{
    float row[FLOW_DIM + 1];
    inside = 1;
    model_start();
    after();
    while (fread(row, sizeof row, 1, stdin) == 1) {
        model_learn(row, row[FLOW_DIM]);
        after();
    }
    return 0;
}
"""


@pytest.mark.exhaustive
@needs_gcc
def test_an_interrupt_sees_whole_updates_with_the_double_buffer_and_halves_without(tmp_path):
    """Interrupts come at function boundaries all through the updates, and run to their end."""
    spec = make_spec(
        {
            "name": "flow",
            "input": {"dim": 2},
            "kernel": {"sigma": 1.0},
            "reduction": {"technique": "mklms", "n_max": 32},
        }
    )
    generate(spec, tmp_path / "flow")
    ((_, _, example),) = steps("guide/interrupts.md")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)).astype(np.float32)
    y = np.sin(x.sum(1))
    np.column_stack([x, y]).astype("<f4").tofile(tmp_path / "samples")
    # the mistake: the task learns in the very model that the interrupt reads
    single = example.replace("const int next = 1 - now;", "const int next = now;")
    single = re.sub(r"    memcpy.*\n", "", single)
    assert single.count("models[next]") == 1
    results = {}
    for name, text in (("double", example), ("single", single)):
        (tmp_path / f"{name}.c").write_text(text + INTERRUPTS)
        words = ["gcc", "-O2", f"-I{tmp_path / 'flow' / 'src'}"]
        flow = tmp_path / "flow.o"
        subprocess.run(
            [*words, "-finstrument-functions", "-c", tmp_path / "flow" / "src" / "flow.c", "-o", flow], check=True
        )
        strict = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*words, *strict, tmp_path / f"{name}.c", flow, "-o", tmp_path / name], check=True)
        with (tmp_path / "samples").open("rb") as samples:
            out = subprocess.run([tmp_path / name], stdin=samples, capture_output=True, text=True, check=True).stdout
        after, seen = (re.findall(rf"^{word} (\w+)$", out, re.MULTILINE) for word in ("after", "seen"))
        results[name] = after, seen
    after, seen = results["double"]
    assert len(seen) >= 1000 and set(seen) <= set(after)
    after_single, seen_single = results["single"]
    assert len(set(seen_single) - set(after_single)) >= 10
    # and the interrupts changed nothing: the state is that of one model on the host
    model = HostModel(spec, build(spec).drop)
    model.update(x, y)
    assert after[-1] == after_single[-1] == f"{state_hash(spec, model.memory):08x}"
