"""The queries of the papers, as they are printed there: Babu 2005, Linear Road and NEXMark in CQL."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.elements import Schema, Type
from tests.cql.catalogs import bind_text, find, shape, with_view

I, F, X, T = Type.INTEGER, Type.FLOAT, Type.TEXT, Type.TIMESTAMP


def catalog_of(**streams: str) -> Catalog:
    """Streams of INTEGER columns, named in a string; a column with a colon has the type of the letter behind it."""
    types = {"i": I, "f": F, "x": X, "t": T}
    catalog = Catalog()
    for name, columns in streams.items():
        pairs = [c.partition(":") for c in columns.split()]
        catalog.streams[name.lower()] = StreamDef(name, Schema.of(*[(n, types[t or "i"]) for n, _, t in pairs]))
    return catalog


THESIS = catalog_of(
    S="A B C", S1="A B", S2="A B C", S3="C D", C="pid size", B="pid size", O="pid size", CarStr="cid xpos sid"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Select sum(C.size) From C [Range 10 minutes], B [Range 10 minutes], O [Range 10 minutes] "
            "Where C.pid = B.pid and B.pid = O.pid",
            "Project(Aggregate(Filter(INNER Join(INNER Join(Window(C), Window(B)), Window(O)))))",
        ),
        (
            "Select Istream(*) From S [Rows Unbounded] Where S.A > 10 and S.B < 20 and S.C > 40",
            "ISTREAM(Project(Filter(Window(S))))",
        ),
        (
            "Select * From S1 [Rows 1000], S2 [Range 2 Minutes] Where S1.A = S2.A and S1.A > 10 and S1.B < 20",
            "Project(Filter(INNER Join(Window(S1), Window(S2))))",
        ),
        ("Select A, Max(B) From S1 [Rows 200] Group By A", "Project(Aggregate(Window(S1)))"),
        (
            "Select * From S1 [Rows Unbounded], S2 [Rows Unbounded], S3 [Rows 1] "
            "Where S1.B = S2.B and S2.C = S3.C and S3.D > 10",
            "Project(Filter(INNER Join(INNER Join(Window(S1), Window(S2)), Window(S3))))",
        ),
        (
            "Select Rstream(*) From S1 [Now] Where S1 in (Select A, B From S2 [Rows 10,000])",
            "RSTREAM(Project(Filter(Window(S1))))",
        ),
    ],
)
def test_the_queries_of_the_thesis_bind(text: str, expected: str) -> None:
    assert shape(bind_text(text, THESIS).node) == expected


def test_the_accident_query_of_the_thesis_binds() -> None:
    text = """
    Select distinct sid From
      (Select cid, sid From
        (CarStr [Partition By cid Rows 1]) as LastRep,
        (Select distinct cid From CarStr [Range 30 seconds]) as CurActiveCars
       Where LastRep.cid = CurActiveCars.cid) as CurCarSeg,
     (Select cid From CarStr [Partition By cid Rows 4] Group By cid
      Having count (distinct xpos) = 1 and count(*) = 4) as AccCars
    Where CurCarSeg.cid = AccCars.cid"""
    bound_query = bind_text(text, THESIS)
    assert str(bound_query.node.schema) == "sid INTEGER"
    assert shape(bound_query.node) == (
        "Distinct(Project(Filter(INNER Join("
        "Project(Filter(INNER Join(Window(CarStr), Distinct(Project(Window(CarStr)))))), "
        "Project(Filter(Aggregate(Window(CarStr))))))))"
    )


LINEAR_ROAD = [
    "CREATE VIEW SegSpeedStr AS SELECT vehicle_id, speed, x_pos / 1760 AS segment, dir, hwy FROM PosSpeedStr",
    """CREATE VIEW ActiveVehicleSegRel AS
       SELECT DISTINCT L.vehicle_id, L.segment, L.dir, L.hwy
       FROM SegSpeedStr [RANGE 30 SECONDS] AS A, SegSpeedStr [PARTITION BY vehicle_id ROWS 1] AS L
       WHERE A.vehicle_id = L.vehicle_id""",
    """CREATE VIEW VehicleSegEntryStr AS SELECT ISTREAM(*) FROM ActiveVehicleSegRel""",
    """CREATE VIEW CongestedSegRel AS
       SELECT segment, dir, hwy, AVG(speed) AS avg_speed FROM SegSpeedStr [RANGE 5 MINUTES]
       GROUP BY segment, dir, hwy HAVING AVG(speed) < 40""",
    """CREATE VIEW SegVolRel AS
       SELECT segment, dir, hwy, COUNT(vehicle_id) AS numvehicles FROM ActiveVehicleSegRel
       GROUP BY segment, dir, hwy""",
]


def test_the_toll_query_of_linear_road_binds_over_its_views() -> None:
    catalog = catalog_of(PosSpeedStr="vehicle_id speed x_pos dir hwy")
    for view in LINEAR_ROAD:
        with_view(catalog, view)
    text = """
    SELECT RSTREAM(E.vehicle_id, 2 * (V.numvehicles - 50) * (V.numvehicles - 50) AS toll)
    FROM VehicleSegEntryStr [NOW] AS E, CongestedSegRel AS C, SegVolRel AS V
    WHERE E.segment = C.segment AND C.segment = V.segment AND E.dir = C.dir AND C.dir = V.dir
      AND E.hwy = C.hwy AND C.hwy = V.hwy"""
    bound_query = bind_text(text, catalog)
    assert str(bound_query.node.schema) == "vehicle_id INTEGER, toll INTEGER"
    assert bound_query.streams == ("PosSpeedStr",)


NEXMARK = catalog_of(
    Bid="auction bidder price datetime:t",
    OpenAuction="itemID sellerID start_price timestamp:t",
    ClosedAuction="itemID buyerID timestamp:t",
    Auction="id seller category reserve expires:t",
    Person="id name:x city:x state:x",
)
NEXMARK.relations["category"] = RelationDef("Category", Schema.of(("id", I), ("name", X)))

QUERIES = {
    "Q1": "SELECT ISTREAM(auction, bidder, price * 0.908 AS price, datetime) FROM Bid [RANGE UNBOUNDED]",
    "Q2": "SELECT RSTREAM(auction, price) FROM Bid [NOW] WHERE auction = 1007 OR auction = 1020 OR auction = 2001",
    "Q3": """SELECT ISTREAM(P.name, P.city, P.state, A.id)
             FROM Auction A [ROWS UNBOUNDED], Person P [ROWS UNBOUNDED]
             WHERE A.seller = P.id AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA') AND A.category = 10""",
    "Q4": """SELECT C.name, AVG(Q.final)
             FROM Category C, (SELECT RSTREAM(A.id AS id, A.category AS category, MAX(B.price) AS final)
                               FROM Auction [ROWS UNBOUNDED] A, Bid [ROWS UNBOUNDED] B
                               WHERE A.id = B.auction AND B.datetime < A.expires
                               GROUP BY A.id, A.category) Q
             WHERE Q.category = C.id GROUP BY C.name""",
    "Q5": """SELECT RSTREAM(auction)
             FROM (SELECT B1.auction AS auction, COUNT(*) AS num FROM Bid [RANGE 60 MINUTE SLIDE 1 MINUTE] B1
                   GROUP BY B1.auction)
             WHERE num >= ALL (SELECT COUNT(*) FROM Bid [RANGE 60 MINUTE SLIDE 1 MINUTE] B2 GROUP BY B2.auction)""",
    "Q6": """SELECT ISTREAM(AVG(Q.final), Q.seller)
             FROM (SELECT ISTREAM(MAX(B.price) AS final, A.seller)
                   FROM Auction [ROWS UNBOUNDED] A, Bid [ROWS UNBOUNDED] B
                   WHERE A.id = B.auction AND B.datetime < A.expires
                   GROUP BY A.id, A.seller) [PARTITION BY A.seller ROWS 10] Q
             GROUP BY Q.seller""",
    "Q7": """SELECT RSTREAM(B.auction, B.price, B.bidder) FROM Bid [RANGE 1 MINUTE SLIDE 1 MINUTE] B
             WHERE B.price = (SELECT MAX(B1.price) FROM BID [RANGE 1 MINUTE SLIDE 1 MINUTE] B1)""",
    "Q8": """SELECT RSTREAM(P.id, P.name, A.reserve) FROM Person [RANGE 12 HOUR] P, Auction [RANGE 12 HOUR] A
             WHERE P.id = A.seller""",
    "Closing price": """SELECT ISTREAM(C.itemID, MAX(B.price)) FROM ClosedAuction [NOW] AS C, Bid AS B
                        WHERE C.itemID = B.auction GROUP BY C.itemID""",
    "Short auctions": """SELECT ISTREAM(OpenAuction.*)
                         FROM OpenAuction [RANGE 5 HOURS], ClosedAuction [NOW]
                         WHERE OpenAuction.itemID = ClosedAuction.itemID""",
    "Short auctions, all": """SELECT * FROM ClosedAuction [NOW] WHERE itemID IN
                              (SELECT O.itemID FROM OpenAuction [RANGE 5 HOURS] AS O)""",
    "Current price": "SELECT auction, MAX(price) FROM Bid GROUP BY auction",
}


@pytest.mark.parametrize("name", [n for n in QUERIES if n != "Q3"])
def test_a_nexmark_query_binds(name: str) -> None:
    assert len(bind_text(QUERIES[name], NEXMARK).node.schema) >= 1


def test_nexmark_query_3_binds_with_the_alias_behind_the_window() -> None:
    third = QUERIES["Q3"].replace("Auction A [ROWS UNBOUNDED]", "Auction [ROWS UNBOUNDED] A")
    third = third.replace("Person P [ROWS UNBOUNDED]", "Person [ROWS UNBOUNDED] P")
    assert shape(bind_text(third, NEXMARK).node).startswith("ISTREAM(Project(Filter(INNER Join")


def test_the_key_of_nexmark_query_6_may_keep_the_qualifier_it_had_inside() -> None:
    node = bind_text(QUERIES["Q6"], NEXMARK).node
    assert str(node.schema) == "AVG(Q.final) FLOAT, seller INTEGER"
    window = find(find(node, bound.Aggregate), bound.Window)
    assert isinstance(window, bound.Window) and window.spec.keys == (1,) and window.spec.rows == 10
