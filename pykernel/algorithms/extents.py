"""Sizes of what algorithms keep; inputs (DIM) and what a prediction writes (OUTPUTS) are the dialect's own."""

from pykernel.dialect import extent

N_MAX = extent("N_MAX", "the budget: most expansion vectors", public=True)
FEATURES = extent("FEATURES", "what the inputs are made into; each has a weight")
L_MAX = extent("L_MAX", "most samples that a training takes", public=True)
P_MAX = extent("P_MAX", "vectors of the basis", public=True)
M_MAX = extent("M_MAX", "rows of the reservoir")
PACKED = extent("PACKED", "numbers of a packed symmetric matrix")
CLASSES = extent("CLASSES", "what a label can be")
FUNCTIONS = extent("FUNCTIONS", "sums of kernel values that predictions are made of")
WEIGHTS = extent("WEIGHTS", "weights of an expansion vector")
ROWS = extent("ROWS", "expansion vectors, and one more if they are odd")
ROW = extent("ROW", "numbers of a vector and its weights in one row")
