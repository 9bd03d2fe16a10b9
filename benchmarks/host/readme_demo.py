"""The demo's output and figure, docs/data/demo.txt and demo.png; the output's beginning stands in the README, too.

python -m benchmarks.host.readme_demo
"""

import re
import subprocess
import sys
import tempfile

from benchmarks.figures import error_figure
from benchmarks.tables import DATA, ROOT
from pykernel.files import whole_file
from pykernel.host.bikeshare import bikeshare, default_spec
from pykernel.host.model import HostModel
from pykernel.workflows.demo import baselines, week_of, weekly_errors


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pykernel", "demo"]
        run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    (x, y, _), spec = bikeshare(), default_spec()
    predictions, _ = HostModel(spec).prequential(x, y)
    weeks = weekly_errors(predictions, baselines(x, y), y, spec)
    error_figure(DATA / "demo.png", "Hourly bike rentals, predicted and then learned", weeks, week_of(predictions, y))
    output = "\n".join(line.rstrip() for line in run.stdout.splitlines()).strip()
    with whole_file(DATA / "demo.txt") as file:
        file.write(f"{output}\n".encode())
    readme = ROOT / "README.md"
    text = re.sub(
        r"(?<=^```text\n).*?(?=\n^```$)",
        lambda _: output.partition("\n\nis the C's memory")[0],
        readme.read_text(encoding="utf-8"),
        count=1,
        flags=re.DOTALL | re.MULTILINE,
    )
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
