"""The types of columns, and how their values become the 64-bit words that kernels see."""
