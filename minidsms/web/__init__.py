"""The visualizer: plans, decisions and figures of a connection in a browser, as they change. docs/visualizer.md.

Babu 2005, sections 2.4 and 3, figure 2.6: STREAM's visualizer.  Nothing of it is imported before it is asked for.
"""

from __future__ import annotations
