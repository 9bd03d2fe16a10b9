"""Generate C code from a spec, and check that the code computes the same results as the host."""
