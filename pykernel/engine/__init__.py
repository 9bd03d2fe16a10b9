"""Executing kernels on the host; see ``engines``."""
