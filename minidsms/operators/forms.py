"""Operators whose kernel has forms: a generic one, and one that is compiled for what holds in this plan.

The generic kernel asks at every element what a *form* of a template (`machine_code.templates`) knows: whether there are
NULLs, which columns are read. So a form is right only while what it knows holds; the operator, which sees every row,
goes back to its generic kernel by itself when that ends. Who asks for forms, and when, is `streamon.compilation`.

Invariant: both put out the same rows in the same order.
"""

from __future__ import annotations

from typing import Protocol

from minidsms.machine_code.templates import Form
from minidsms.operators.operator import Counters


class TwoForms(Protocol):
    """An operator that can run either. Its class names what it has for `form` when nothing was taken: None."""

    counters: Counters
    form: Form | None
    """What runs; None: the generic kernel."""

    @property
    def title(self) -> str:
        """How the plan log names the operator."""

    def fitting(self) -> Form | None:
        """The form for what holds now; None where no template has one.  Cheap: asked again and again."""

    def take_form(self, form: Form | None) -> None:
        """Run this from the next slice on: one that was fitting a moment ago, whose code is there."""
