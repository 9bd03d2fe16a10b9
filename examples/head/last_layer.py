"""The last layer of a deeper network as a head: writes last.toml.  The layers before it run in another runtime.

python examples/head/last_layer.py
pykernel generate last.toml -o last/
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

NEW = "smudge"
"""A class that the network never saw: its labels come in the field."""


def embedding(network: MLPClassifier, x: np.ndarray) -> np.ndarray:
    """What the other runtime computes: all layers but the last."""
    for weights, offsets in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        x = np.maximum(x @ weights + offsets, 0)
    return x


def head_of(weights: np.ndarray, bias: np.ndarray, classes: list[str], largest: float) -> str:
    """The spec.  weights: (units, trained classes).  largest: an embedding's largest number."""
    return f"""name = "last"

[input]
dim = {len(weights)}
max_abs = {largest}

[label]
classes = {classes}

[kernel]
function = "linear"       # a feature is a unit of the embedding

[learning]
rule = "expansion-softmax"

[expansion]
vectors = {np.eye(len(weights)).tolist()}
weights = {weights.tolist()}
bias = {bias.tolist()}
"""


def main() -> None:
    x, y = load_digits(return_X_y=True)
    network = MLPClassifier(hidden_layer_sizes=(32, 16), max_iter=1000, random_state=0).fit(x[:1200] / 16, y[:1200])
    largest = 4 * float(embedding(network, x[:1200] / 16).max())
    classes = [*map(str, network.classes_), NEW]
    with open("last.toml", "w", encoding="utf-8") as file:
        file.write(head_of(network.coefs_[-1], network.intercepts_[-1], classes, largest))


if __name__ == "__main__":
    main()
