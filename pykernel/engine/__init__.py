"""Execute kernels on the host; see ``engines``."""
