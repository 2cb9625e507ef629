"""The ordering algorithms by name, as `SET filter_ordering = ..` gives them. They load when first used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from minidsms.cql.errors import Error
from minidsms.expressions.routes import Order
from minidsms.settings import SettingValues
from minidsms.streamon.change_detection.detectors import ChangeDetection, class_named
from minidsms.streamon.content_routing.options import RoutingOptions
from minidsms.streamon.contracts import Evaluate, OrderingAlgorithm


def check_size(name: str, n: int) -> None:
    """Error if the algorithm cannot order so many filters."""
    if name != "optimal":
        return
    from minidsms.streamon.filter_ordering.optimal import MOST_FILTERS

    if n > MOST_FILTERS:
        raise Error(
            f"filter_ordering = optimal searches all orders of at most {MOST_FILTERS} filters, not of {n}; "
            "SET filter_ordering = a_greedy"
        )


@dataclass(frozen=True)
class OrderingOptions:
    """How the filters of a query are ordered: the settings as they are when it is registered.

    rate, window, alpha: None takes the algorithm's.  logs_plans: orders come back with the conditions they were for.
    routing: how tuples are routed by their content.
    detection: how changes are noticed.
    """

    algorithm: str
    rate: float | None
    window: int | None
    alpha: float | None
    seed: int
    measures_time: bool
    logs_plans: bool
    routing: RoutingOptions
    detection: ChangeDetection

    @classmethod
    def of(cls, settings: SettingValues) -> OrderingOptions:
        """Read the settings."""
        return cls(
            str(settings["filter_ordering"]),
            settings["profile_rate"],
            settings["profile_window"],
            settings["thrashing_alpha"],
            int(settings["seed"]),
            settings["cost_model"] == "measured",
            settings["plan_logging"] == "on",
            RoutingOptions.of(settings),
            ChangeDetection.of(settings),
        )

    def algorithm_over(self, n: int, order: Order) -> OrderingAlgorithm:
        """A new algorithm over n filters, which begins with this order."""
        made = class_named(self.algorithm, "filter_ordering")

        def make(first: Order) -> OrderingAlgorithm:
            return cast(OrderingAlgorithm, made(n, first, self.window, self.alpha, self.seed))

        algorithm = make(order)
        if self.logs_plans and algorithm.wanted().evaluate is Evaluate.ALL:
            from minidsms.streamon.filter_ordering.plan_logged import PlanLogged

            algorithm = PlanLogged(n, make)
            algorithm.adopt(order)
        return self.detection.monitored(algorithm, self.window or algorithm.default_window)
