"""Executing kernels on the host; see ``machine``."""
