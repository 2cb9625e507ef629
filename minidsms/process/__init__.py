"""The process around the engine: threads beside it, fork, interrupts, and what it may touch."""
