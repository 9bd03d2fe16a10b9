"""From a spec to C, and the proof that the C computes what the host does."""
