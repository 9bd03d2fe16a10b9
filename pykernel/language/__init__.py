"""Kernels of the dialect: read, typed, specialised, and printed as C, LLVM IR and Python."""
