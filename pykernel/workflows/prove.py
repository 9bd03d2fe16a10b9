"""Prove that no call of a model's C code accesses memory outside an array, overflows an integer, or leaves a value outside its range."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.errors import CheckFailed, Interrupted, UserError, did_you_mean, shown_option
from pykernel.files import all_or_none, whole_file
from pykernel.report.checks import proved
from pykernel.report.document import Document, Result
from pykernel.request.option import function
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.requests import Prove

if TYPE_CHECKING:
    from pykernel.gen.frama_c import Finding
    from pykernel.gen.proof import Proof


@dataclass(frozen=True, repr=False)
class Proved(Result):
    """The result of a proof.

    calls: a row for each call, with ``level``, ``call``, ``proved``, ``why`` (the reason if the call is not proved), the counts
    ``alarms``, ``ranges``, ``proved_ranges``, ``statements`` and ``reached`` (statements), the list ``unreached`` of functions, and
    ``seconds``.
    findings: a row for each error that could not be excluded, with ``level``, ``call``, ``kind``, ``meaning``, ``condition``,
    ``file``, ``line``, ``code`` and ``stack``.
    nan_steps: number of assertions about NaN, which Frama-C leaves to another prover.  proved_nan_steps: number of assertions
    about NaN that the other prover has proved.
    """

    name: str
    config_hash: str
    tools: str
    calls: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    nan_steps: int
    proved_nan_steps: int
    seconds: float
    output: str | None = None
    """The folder with annotated C, drivers and logs, if it was kept."""

    @property
    def ok(self) -> bool:
        """Whether every call is proved."""
        return all(row["proved"] for row in self.calls)

    @property
    def page(self) -> Document:
        return proved(self.report, self.verdict)

    @property
    def failure(self) -> Exception | None:
        return None if self.ok else CheckFailed(self.verdict)

    @property
    def report(self) -> dict[str, Any]:
        """The result as ``pykernel prove --json`` prints it."""
        return {"ok": self.ok, **vars(self)}

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        wrong = [f"{row['call']} ({row['level']})" for row in self.calls if not row["proved"]]
        if wrong:
            return f"not proved: {', '.join(wrong)}"
        finite = {row["level"] for row in self.calls} == {"finite"}
        which = "a number" if finite else "an integer"
        return (
            f"proved: none of {len(self.calls)} calls accesses memory outside an array, overflows an integer, reads an unset variable, or "
            f"takes {which} out of its range ({sum(row['ranges'] for row in self.calls)} ranges)"
        )


def run(request: Prove) -> Proved:
    """Run ``pykernel prove``.  The analysis uses the sizes in the spec, so it is slow for a large model."""
    from pykernel.gen import frama_c
    from pykernel.gen.proof import LEVELS, proof_of

    level, call, timeout, output = request.from_, request.call, request.timeout, request.output
    levels = (level,) if isinstance(level, str) else tuple(level)
    wanted = None if call is None else {call} if isinstance(call, str) else set(call)
    for each in levels:
        if each not in LEVELS:
            hint = did_you_mean(each, LEVELS, f"there are: {', '.join(LEVELS)}")
            raise UserError(f"{shown_option('from_')} {each!r} is not known; {hint}")
    tools = frama_c.require()
    spec, _ = spec_and_memory(request.model)
    if request.record is not None:
        from pykernel.gen import record as validity

        validity.require_project(request.record, spec)
        result = run(replace(request, record=None))
        calls = Counter((row["level"], row["proved"]) for row in result.calls)
        level_counts = (
            f"{level}: {calls[level, True]} of {calls[level, True] + calls[level, False]} calls" for level in levels
        )
        said = (
            f"{result.verdict}; proved from {', '.join(level_counts)}; {result.tools}, "
            f"configuration {result.config_hash}"
        )
        validity.record_proof(request.record, spec, said)
        return result
    with request.watch.progress() as show:
        show(0.0, "writing the driver")
        proof = proof_of(spec, levels)
        if wanted is not None:
            names = list(dict.fromkeys(each.name for each in proof.calls))
            for name in sorted(wanted - set(names)):
                hint = did_you_mean(name, names, f"there are: {', '.join(names)}")
                raise UserError(f"{shown_option('call')} {name!r} is not a call of {spec.name}; {hint}")
        if output is not None:
            try:
                return replace(_run(proof, wanted, Path(output).resolve(), timeout, tools, show), output=str(output))
            except KeyboardInterrupt:
                raise Interrupted(f"; the results so far are in {output}") from None
        with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
            return _run(proof, wanted, Path(folder).resolve(), timeout, tools, show)


def _run(proof: Proof, wanted: set[str] | None, folder: Path, timeout: float, tools: str, show: Any) -> Proved:
    """Write the files of a proof to a folder, and analyse its calls in parallel on all cores."""
    from concurrent.futures import as_completed

    from pykernel.gen import frama_c
    from pykernel.host.identity import identity
    from pykernel.language.acsl import PASSED
    from pykernel.parallel import Threads

    with all_or_none(folder):
        for name, text in proof.files.items():
            with whole_file(folder / name, lasting=False) as file:
                file.write(text.encode())
    macro, spec = proof.spec.name.upper(), proof.spec
    calls = [call for call in proof.calls if wanted is None or call.name in wanted]
    with Threads() as threads:
        running = {threads.start(frama_c.analyse, call, folder, macro, timeout): call for call in calls}
        for count, done in enumerate(as_completed(running)):
            done.result()
            left = ", ".join(call.name for one, call in running.items() if not one.done())
            show(
                (count + 1) / (len(calls) + 1), f"analysing {left[:60]}" if left else "proving the assertions about NaN"
            )
        findings = [one.result() for one in running]
    steps = frozenset().union(*(finding.passed for finding in findings))
    proved, seconds = frama_c.prove_passed(steps, folder, macro, timeout)
    rows = [_row(finding, steps - proved) for finding in findings]
    alarms = [_alarm(finding, alarm) for finding in findings for alarm in finding.alarms]
    alarms += [
        _alarm(finding, frama_c.Alarm(PASSED, "", name, line, ""))
        for finding in findings
        for name, line in sorted(finding.passed - proved)
    ]
    code = f"{identity(spec).config_hash:08x}"
    ended = [finding.call for finding in findings if finding.ended]
    late = "".join(f", without {finding.call.name}, which took too long" for finding in findings if not finding.ended)
    stepped = {name: proof.files[name] for name in sorted({name for name, _ in steps})}
    again = frama_c.makefile(ended, stepped, spec.name, f"{spec.name}, configuration {code}{late}")
    with whole_file(folder / "Makefile", lasting=False) as file:
        file.write(again.encode())
    return Proved(
        name=spec.name,
        config_hash=code,
        tools=tools,
        calls=rows,
        findings=alarms,
        nan_steps=len(steps),
        proved_nan_steps=len(steps & proved),
        seconds=round(seconds + sum(finding.seconds for finding in findings), 1),
    )


def _row(finding: Finding, unproved: frozenset[tuple[str, int]]) -> dict[str, Any]:
    """Return a call's row in the report."""
    call, (reached, statements) = finding.call, finding.statements
    alarms = len(finding.alarms) + len(finding.passed & unproved)
    proved = sum(finding.checks.values())
    begun, every = finding.coverage.get(call.main, (0, 1))
    why = finding.why
    if finding.ended and begun < every:
        why = "the analysis found no path through this call, so nothing is proved"
    elif finding.ended and alarms:
        why = f"{alarms} alarm{'s' if alarms > 1 else ''}"
    elif finding.ended and len(finding.checks) < call.checks:
        why = f"the analysis checked only {len(finding.checks)} of {call.checks} ranges"
    elif finding.ended and (
        left := [name.replace("answer_", "the answer ") for name, ok in finding.checks.items() if not ok]
    ):
        why = (
            f"may take {', '.join(left)} out of its range"
            if len(left) == 1
            else f"may take values out of their ranges: {', '.join(left)}"
        )
    return {
        "level": call.level,
        "call": call.name,
        "proved": not why,
        "why": why,
        "alarms": alarms,
        "ranges": call.checks,
        "proved_ranges": proved,
        "statements": statements,
        "reached": reached,
        "unreached": list(finding.unreached),
        "seconds": round(finding.seconds, 1),
    }


def _alarm(finding: Finding, alarm: Any) -> dict[str, Any]:
    row = {"level": finding.call.level, "call": finding.call.name, "kind": alarm.kind, "meaning": alarm.meaning}
    return row | vars(alarm) | {"stack": list(alarm.stack)}


prove = function(Prove, run)
