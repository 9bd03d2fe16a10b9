"""Handwritten digits on a microcontroller: trained in a second, tested by leaving each sample out, and taken to C.

    python examples/kernel_machines/digits.py [FOLDER]

prints what leaving one out promises, what test samples say, how far probabilities can be trusted and what the model
takes, and writes the C project into FOLDER/digits.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pykernel import HostModel, KernelFisherClassifier, check, generate


def main(folder):
    x, digits = load_digits(return_X_y=True)
    x, x_test, digits, digits_test = train_test_split(x / 16, digits, train_size=1200, random_state=0)

    # 100 of the 1,200 samples become expansion vectors; width and ridge are chosen by leaving each sample out
    model = KernelFisherClassifier(basis=range(0, 1200, 12)).fit(x, digits)
    print(f"sigma {model.sigma_:g}, ridge {model.ridge_:g}, of {model.selection_.press.size} candidates")
    print(f"error, leaving one out  {model.loo_error_:.1%}, for having been chosen {model.optimism_:.1%} more")
    print(f"error of test samples   {1 - model.score(x_test, digits_test):.1%}")

    p = model.predict_proba(x_test)
    sure = p.max(axis=1) > 0.9
    right = (model.classes_[p.argmax(axis=1)] == digits_test)[sure]
    print(f"told with more than 90%: {sure.mean():.0%} of them, and {right.mean():.1%} of these right")

    project = generate(model, Path(folder) / "digits", name="digits", force=True)
    ram, flash = project.figures["ram_bytes"], project.figures["const_bytes"]
    print(f"{flash:,} bytes of constants in flash and {ram:,} bytes of RAM, in {project.folder}")

    # what the device will say of the test samples, bit for bit
    device = HostModel(model.to_spec("digits"))
    same = model.classes_[device.classify(x_test)] == model.predict(x_test)
    print(f"float32 tells the same digit of {np.mean(same):.1%} of the test samples")
    assert check(model, samples=200).ok


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
