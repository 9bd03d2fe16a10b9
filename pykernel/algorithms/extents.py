"""Sizes of what algorithms keep; inputs, outputs and classes are the dialect's own: DIM, OUTPUTS, CLASSES."""

from pykernel.dialect import extent

N_MAX = extent("N_MAX", "the budget: most expansion vectors", public=True)
FEATURES = extent("FEATURES", "what the inputs are made into; each has a weight")
L_MAX = extent("L_MAX", "most samples that a training takes", public=True)
P_MAX = extent("P_MAX", "vectors of the basis", public=True)
M_MAX = extent("M_MAX", "rows of the reservoir")
PACKED = extent("PACKED", "numbers of a packed symmetric matrix")
FUNCTIONS = extent("FUNCTIONS", "sums of kernel values that predictions are made of")
WEIGHTS = extent("WEIGHTS", "weights of an expansion vector")
ROWS = extent("ROWS", "expansion vectors, and one more if they are odd")
ROW = extent("ROW", "numbers of a vector and its weights in one row")
