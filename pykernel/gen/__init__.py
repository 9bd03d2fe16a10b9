"""Generates C from a spec, and proves that the C computes what the host does."""
