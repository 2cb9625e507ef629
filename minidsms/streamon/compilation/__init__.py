"""Kernels compiled for the plan that runs, beside it."""
