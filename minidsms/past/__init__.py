"""What a connection has been: its figures and plans from the beginning, kept in bounded room. docs/visualizer.md."""

from __future__ import annotations
