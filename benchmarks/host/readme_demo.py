"""Put the demo's output into docs/targets.md, its beginning and its figure into the README.

python -m benchmarks.host.readme_demo
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tables import DATA, ROOT, publish


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pykernel", "demo"]
        run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        shutil.copy(Path(folder) / "pykernel-demo" / "errors.png", DATA / "demo.png")
    output = "\n".join(line.rstrip() for line in run.stdout.splitlines()).strip()
    publish({"demo": f"```text\n{output}\n```\n"}, ROOT / "docs" / "targets.md")
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
