"""The engine: groups of queries, what their sources give, and the slices in which plans run."""
