"""A machine's condition from its vibration: learned online, watched for what is new, and taken to the device.

    python examples/classification.py [FOLDER]

prints how often the condition was told right before it was learned, what a fault that was never seen looks like, and
writes the C project into FOLDER/condition.
"""

import sys
from pathlib import Path

import numpy as np

from pykernel import BudgetedKernelClassifier, check, generate

FREQUENCIES = {"idle": (1.0, 0.2), "normal": (1.5, 0.8), "worn": (1.5, 1.4)}
BANDS = np.array([1.0, 1.5, 2.0, 3.0])


def features(rng, frequency, amplitude):
    """The amplitudes that the firmware's filter bank would see, on a logarithmic scale."""
    response = amplitude * np.exp(-((BANDS - frequency) ** 2) / 0.1)
    return np.log10(response + 0.1 * np.abs(rng.normal(size=len(BANDS))) + 0.05)


def stream(rng, samples):
    conditions = rng.choice(list(FREQUENCIES), samples)
    return np.array([features(rng, *FREQUENCIES[condition]) for condition in conditions]), conditions


def main(folder):
    rng = np.random.default_rng(0)
    x, conditions = stream(rng, 800)
    model = BudgetedKernelClassifier(n_max=16, sigma=0.5)
    model.partial_fit(x[:1], conditions[:1], classes=list(FREQUENCIES))
    right = 0
    for t in range(1, len(x)):  # what firmware does: tell, then learn what it really was
        right += model.predict(x[t : t + 1])[0] == conditions[t]
        model.partial_fit(x[t : t + 1], conditions[t : t + 1])
    print(f"told right before it was learned: {right / (len(x) - 1):.0%}")

    known, _ = stream(rng, 200)
    strange = np.array([features(rng, 3.0, 2.0) for _ in range(200)])
    print(f"novelty of known conditions {np.median(model.novelty(known)):.2f}, of a loose bearing", end=" ")
    print(f"{np.median(model.novelty(strange)):.2f}")

    project = generate(model, Path(folder) / "condition", name="condition", force=True)
    print(f"{project.figures['state_bytes']} bytes of state in {project.folder}")
    print("classes on the device:", ", ".join(f"{i} {name}" for i, name in enumerate(model.classes_)))
    assert check(model, samples=2000).ok


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
