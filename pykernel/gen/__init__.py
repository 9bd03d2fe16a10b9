"""Generate C from a spec, and check that the C computes the same as the host."""
