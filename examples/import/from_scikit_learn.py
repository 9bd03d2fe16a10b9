"""A classifier of scikit-learn's on a device: trained in a pipeline, imported, compared, generated and checked.

    python examples/import/from_scikit_learn.py [FOLDER]

writes FOLDER/gate.toml and the C project in FOLDER/gate.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pykernel import HostModel, check, generate
from pykernel.importers.importing import from_sklearn


def main(folder):
    folder = Path(folder)
    x, y = load_iris(return_X_y=True, as_frame=True)
    x, held, y, truth = train_test_split(x, load_iris().target_names[y], random_state=0)
    model = make_pipeline(StandardScaler(), SVC(C=10)).fit(x, y)

    spec = from_sklearn(model, "gate")
    (folder / "gate.toml").write_text(spec.to_toml(), encoding="utf-8")

    device = HostModel(spec)  # what the device will compute, bit for bit
    values, known = device.predict(held), model.decision_function(held)
    classes = np.array(spec.label.classes)[device.classify(held)]
    print(f"{len(spec.expansion.vectors)} vectors, {len(model[-1].support_vectors_)} support vectors")
    print(f"decision values differ by at most {np.abs(values - known).max():.1g}")
    print(
        f"classes: {np.mean(classes == truth):.0%} right, as scikit-learn's {model.score(held.astype(float), truth):.0%}"
    )

    project = generate(spec, folder / "gate", force=True)
    print(f"{project.figures['const_bytes']} bytes of flash for tables, {project.figures['ram_bytes']} of RAM")
    assert check(spec, samples=2000).ok


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
