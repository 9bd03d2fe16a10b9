"""Workers that keep the results of finished tasks in a file of JSON lines: what runs for an hour goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pykernel.parallel import Function, Task, Workers


class Kept(Workers):
    """As ``Workers``.  results: the file.  context: what results depend on besides their tasks, such as a digest of the sources.

    An incomplete line is dropped when the file is opened again.
    """

    def __init__(self, function: Function, shared: Any = None, *, results: Path, context: Any, **options: Any) -> None:
        super().__init__(function, shared, **options)
        meaning = json.dumps([function.__module__, function.__qualname__, context])
        self.path, self.context = results, hashlib.sha256(meaning.encode()).hexdigest()[:16]
        whole = 0
        for line in results.read_bytes().splitlines(keepends=True) if results.exists() else ():
            if not line.endswith(b"\n"):
                os.truncate(results, whole)
                break
            whole, entry = whole + len(line), json.loads(line)
            if entry["context"] == self.context:
                self.results[entry["key"]] = entry["result"]

    def _take(self, key: str, task: Task, result: Any, seconds: float) -> None:
        super()._take(key, task, result, seconds)
        entry = {"context": self.context, "key": key, "task": json.loads(key), "seconds": round(seconds, 4)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry | {"result": self.results[key]}) + "\n")
