"""Read, type and specialise kernels of the dialect, and print them as C, LLVM IR and Python."""
