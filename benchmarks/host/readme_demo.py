"""Put the demo's output into docs/bit-exactness.md, its beginning and its figure into the README.

python -m benchmarks.host.readme_demo
"""

import re
import subprocess
import sys
import tempfile

from benchmarks.figures import error_figure
from benchmarks.tables import DATA, ROOT, publish
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
    publish({"demo": f"```text\n{output}\n```\n"})
    readme = ROOT / "README.md"
    text = re.sub(
        r"(?<=^```text\n).*?(?=\n^```$)",
        lambda _: output.partition("\n\nstate's hash:")[0],
        readme.read_text(encoding="utf-8"),
        count=1,
        flags=re.DOTALL | re.MULTILINE,
    )
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
