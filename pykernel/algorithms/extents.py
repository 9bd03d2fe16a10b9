"""Sizes of arrays in algorithms; the dialect itself defines DIM, OUTPUTS and CLASSES."""

from pykernel.dialect import extent

N_MAX = extent("N_MAX", "the budget: largest number of expansion vectors, N", public=True)
FEATURES = extent("FEATURES", "number of features, F; features are computed from the inputs")
L_MAX = extent("L_MAX", "largest number of training samples, L", public=True)
P_MAX = extent("P_MAX", "number of vectors in the basis, P", public=True)
M_MAX = extent("M_MAX", "number of rows in the reservoir, M")
PACKED = extent("PACKED", "size of a packed symmetric matrix: n rows take n (n + 1) / 2 numbers")
GROUP_SIZE = extent("GROUP_SIZE", "number of trained parameters, B, in each block of units that share a covariance")
COMPONENTS = extent("COMPONENTS", "largest number of Gaussians, K; each known regime is one Gaussian", public=True)
GROUPS = extent("GROUPS", "number of blocks of units that share a covariance")
EXPERT = extent("EXPERT", "number of inputs of the linear expert, including the constant 1")
LAST = extent("LAST", "how many of the latest labels are kept")
FUNCTIONS = extent("FUNCTIONS", "number of kernel sums; predictions are computed from these sums")
WEIGHTS = extent("WEIGHTS", "number of weights of one expansion vector, W")
ROWS = extent("ROWS", "number of expansion vectors, rounded up to an even number")
ROW = extent("ROW", "length of a row of the table: 1 + D numbers for a vector, then its weights")
SCALES = extent("SCALES", "number of different conversions of inputs: DIM, or 1 if all inputs share one conversion")
