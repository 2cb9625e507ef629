"""The eight tables of TPC-H, drawn from a seed: the shapes and domains of the specification (revision 3, section 4.2),
in numbers of rows that fit a test.

At scale 1 there are about 6,000 line items, a thousandth of the specification's SF 1. The words are fewer and some
values commoner than there, so that each of the queries finds rows in tables this small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DECLARATIONS = {
    "region": "r_regionkey INTEGER, r_name TEXT, r_comment TEXT",
    "nation": "n_nationkey INTEGER, n_name TEXT, n_regionkey INTEGER, n_comment TEXT",
    "supplier": "s_suppkey INTEGER, s_name TEXT, s_address TEXT, s_nationkey INTEGER, s_phone TEXT, s_acctbal FLOAT,"
    " s_comment TEXT",
    "customer": "c_custkey INTEGER, c_name TEXT, c_address TEXT, c_nationkey INTEGER, c_phone TEXT, c_acctbal FLOAT,"
    " c_mktsegment TEXT, c_comment TEXT",
    "part": "p_partkey INTEGER, p_name TEXT, p_mfgr TEXT, p_brand TEXT, p_type TEXT, p_size INTEGER, p_container TEXT,"
    " p_retailprice FLOAT, p_comment TEXT",
    "partsupp": "ps_partkey INTEGER, ps_suppkey INTEGER, ps_availqty INTEGER, ps_supplycost FLOAT, ps_comment TEXT",
    "orders": "o_orderkey INTEGER, o_custkey INTEGER, o_orderstatus TEXT, o_totalprice FLOAT, o_orderdate TIMESTAMP,"
    " o_orderpriority TEXT, o_clerk TEXT, o_shippriority INTEGER, o_comment TEXT",
    "lineitem": "l_orderkey INTEGER, l_partkey INTEGER, l_suppkey INTEGER, l_linenumber INTEGER, l_quantity FLOAT,"
    " l_extendedprice FLOAT, l_discount FLOAT, l_tax FLOAT, l_returnflag TEXT, l_linestatus TEXT,"
    " l_shipdate TIMESTAMP, l_commitdate TIMESTAMP, l_receiptdate TIMESTAMP, l_shipinstruct TEXT, l_shipmode TEXT,"
    " l_comment TEXT",
}
"""The columns of each table, in CQL; DuckDB takes the same types from the Arrow tables."""

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3)),
    *(("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4)),
    *(("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3)),
    *(("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
)
COLOURS = ("almond", "azure", "forest", "green", "ivory", "navy", "plum", "rose")
CONTAINERS = [
    f"{size} {box}" for size in ("SM", "MED", "LG", "JUMBO", "WRAP") for box in ("CASE", "BOX", "BAG", "PACK", "PKG")
]
TYPES = [
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "POLISHED", "PLATED")
    for c in ("TIN", "STEEL", "BRASS")
]
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
COMMENTS = ("furious deposits", "ironic packages", "special pinto requests", "Customer bold Complaints", "quiet ideas")

_FIRST_DAY = np.datetime64("1992-01-01", "D")
_DAYS_OF_ORDERS = 2406  # until 1998-08-02
_TODAY = np.datetime64("1995-06-17", "D")

Ints = npt.NDArray[np.int64]


def tables(scale: float = 1.0, seed: int = 1) -> dict[str, pa.Table]:
    """The tables by name. scale 1: 6,000 line items of 1,500 orders; the same seed gives the same rows."""
    draw = _Draw(np.random.default_rng(seed))
    n_suppliers, n_customers = max(int(20 * scale), 4), max(int(150 * scale), 6)
    n_parts, n_orders = max(int(200 * scale), 8), max(int(1500 * scale), 10)
    part_supplier = _suppliers_of_parts(n_parts, n_suppliers)
    prices = np.round(900 + np.arange(1, n_parts + 1) % 200 + 100 * draw.random.random(n_parts), 2)
    found = {
        "region": pa.table({"r_regionkey": range(5), "r_name": REGIONS, "r_comment": draw.words(COMMENTS, 5)}),
        "nation": pa.table(
            {
                "n_nationkey": range(len(NATIONS)),
                "n_name": [name for name, _ in NATIONS],
                "n_regionkey": [region for _, region in NATIONS],
                "n_comment": draw.words(COMMENTS, len(NATIONS)),
            }
        ),
        "supplier": _supplier(draw, n_suppliers),
        "customer": _customer(draw, n_customers),
        "part": _part(draw, n_parts, prices),
        "partsupp": _partsupp(draw, part_supplier),
    }
    return {**found, **_orders(draw, n_orders, n_customers, prices, part_supplier)}


class _Draw:
    """Columns of random values."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def words(self, words: Sequence[str], n: int) -> list[str]:
        return [words[i] for i in self.random.integers(0, len(words), n)]

    def money(self, least: float, most: float, n: int) -> npt.NDArray[np.float64]:
        return np.round(self.random.uniform(least, most, n), 2)

    def phones(self, nations: Ints) -> list[str]:
        return [f"{10 + n}-{self.random.integers(100, 1000)}-{self.random.integers(1000, 10000)}" for n in nations]


def _nations(draw: _Draw, n: int) -> Ints:
    """The nations of n suppliers or customers: half of them in the four that the queries ask for."""
    asked = [3, 6, 7, 20]  # Canada, France, Germany, Saudi Arabia
    common = draw.random.choice(asked, n)
    return np.where(draw.random.random(n) < 0.5, common, draw.random.integers(0, len(NATIONS), n))


def _supplier(draw: _Draw, n: int) -> pa.Table:
    nations = _nations(draw, n)
    nations[:4] = [3, 6, 7, 20]
    return pa.table(
        {
            "s_suppkey": range(1, n + 1),
            "s_name": [f"Supplier#{i:09d}" for i in range(1, n + 1)],
            "s_address": [f"{i} Main Road" for i in range(1, n + 1)],
            "s_nationkey": nations,
            "s_phone": draw.phones(nations),
            "s_acctbal": draw.money(-999, 9999, n),
            "s_comment": draw.words(COMMENTS, n),
        }
    )


def _customer(draw: _Draw, n: int) -> pa.Table:
    nations = _nations(draw, n)
    return pa.table(
        {
            "c_custkey": range(1, n + 1),
            "c_name": [f"Customer#{i:09d}" for i in range(1, n + 1)],
            "c_address": [f"{i} High Street" for i in range(1, n + 1)],
            "c_nationkey": nations,
            "c_phone": draw.phones(nations),
            "c_acctbal": draw.money(-999, 9999, n),
            "c_mktsegment": draw.words(SEGMENTS, n),
            "c_comment": draw.words(COMMENTS, n),
        }
    )


def _part(draw: _Draw, n: int, prices: npt.NDArray[np.float64]) -> pa.Table:
    return pa.table(
        {
            "p_partkey": range(1, n + 1),
            "p_name": [" ".join(draw.words(COLOURS, 3)) for _ in range(n)],
            "p_mfgr": [f"Manufacturer#{i}" for i in draw.random.integers(1, 6, n)],
            "p_brand": [f"Brand#{a}{b}" for a, b in draw.random.integers([1, 1], [6, 6], (n, 2))],
            "p_type": draw.words(TYPES, n),
            "p_size": draw.random.integers(1, 51, n),
            "p_container": draw.words(CONTAINERS, n),
            "p_retailprice": prices,
            "p_comment": draw.words(COMMENTS, n),
        }
    )


def _suppliers_of_parts(n_parts: int, n_suppliers: int) -> Ints:
    """(n_parts, 4): the four suppliers of each part."""
    part = np.arange(n_parts)[:, None]
    return (part + np.arange(4) * max(n_suppliers // 4, 1)) % n_suppliers + 1


def _partsupp(draw: _Draw, part_supplier: Ints) -> pa.Table:
    n = part_supplier.size
    return pa.table(
        {
            "ps_partkey": np.repeat(np.arange(1, len(part_supplier) + 1), 4),
            "ps_suppkey": part_supplier.ravel(),
            "ps_availqty": draw.random.integers(1, 10_000, n),
            "ps_supplycost": draw.money(1, 1000, n),
            "ps_comment": draw.words(COMMENTS, n),
        }
    )


def _orders(
    draw: _Draw, n: int, n_customers: int, prices: npt.NDArray[np.float64], part_supplier: Ints
) -> dict[str, pa.Table]:
    """Orders and their line items. A third of the customers have no orders."""
    random = draw.random
    lines = random.integers(1, 8, n)
    order = np.repeat(np.arange(n), lines)
    m = len(order)
    buyers = np.array([c for c in range(1, n_customers + 1) if c % 3])
    dates = _FIRST_DAY + random.integers(0, _DAYS_OF_ORDERS, n)
    part = random.integers(0, len(prices), m)
    quantity = random.integers(1, 51, m).astype(np.float64)
    discount, tax = random.integers(0, 11, m) / 100, random.integers(0, 9, m) / 100
    price = np.round(quantity * prices[part], 2)
    shipped = dates[order] + random.integers(1, 122, m)
    received = shipped + random.integers(1, 31, m)
    is_open = shipped > _TODAY
    charged = np.round(np.bincount(order, price * (1 + tax) * (1 - discount), n), 2)
    open_lines = np.bincount(order, is_open, n).astype(np.int64)
    orders = pa.table(
        {
            "o_orderkey": np.arange(1, n + 1),
            "o_custkey": random.choice(buyers, n),
            "o_orderstatus": np.where(open_lines == 0, "F", np.where(open_lines == lines, "O", "P")),
            "o_totalprice": charged,
            "o_orderdate": dates.astype("datetime64[ms]"),
            "o_orderpriority": draw.words(PRIORITIES, n),
            "o_clerk": [f"Clerk#{i:09d}" for i in random.integers(1, 1000, n)],
            "o_shippriority": np.zeros(n, np.int64),
            "o_comment": draw.words(COMMENTS, n),
        }
    )
    lineitem = pa.table(
        {
            "l_orderkey": order + 1,
            "l_partkey": part + 1,
            "l_suppkey": part_supplier[part, random.integers(0, 4, m)],
            "l_linenumber": np.arange(m) - np.repeat(np.cumsum(lines) - lines, lines) + 1,
            "l_quantity": quantity,
            "l_extendedprice": price,
            "l_discount": discount,
            "l_tax": tax,
            "l_returnflag": np.where(received > _TODAY, "N", np.where(random.random(m) < 0.5, "R", "A")),
            "l_linestatus": np.where(is_open, "O", "F"),
            "l_shipdate": shipped.astype("datetime64[ms]"),
            "l_commitdate": (dates[order] + random.integers(30, 91, m)).astype("datetime64[ms]"),
            "l_receiptdate": received.astype("datetime64[ms]"),
            "l_shipinstruct": draw.words(INSTRUCTIONS, m),
            "l_shipmode": draw.words(MODES, m),
            "l_comment": draw.words(COMMENTS, m),
        }
    )
    return {"orders": orders, "lineitem": lineitem}
