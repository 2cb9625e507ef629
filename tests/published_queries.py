"""Queries from the literature on CQL, each with the declarations it needs and what its rows are drawn from.

Sources: the CQL paper (Arasu, Babu, Widom, VLDB Journal 2006), Stanford's Stream Query Repository, NEXMark, Babu 2005.
`changed` says where a text departs from the printed one, and why. Some were not at hand in print and are reconstructed:
those of the CQL paper and its Linear Road views, CurCarSeg of the benchmark, the second half of source monitoring. In
Babu 2005 example 6.1.5, section 6.2 and "4.7, as a stream" spell out what the thesis describes in prose or in general.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Domain = Sequence[bool | int | float | str | None]


@dataclass(frozen=True)
class Published:
    """One query. streams, relations: columns as in a declaration. domains: by column; 1, 2, 3 where none is given.

    span: the length of the feed in ticks, which are seconds.  rows: how many a stream gets.
    """

    name: str
    text: str
    streams: dict[str, str]
    relations: dict[str, str] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    domains: dict[str, Domain] = field(default_factory=dict)
    span: int = 120
    rows: int = 40
    changed: str = ""


# ---------------------------------------------------------------------------------------------------------- NEXMark

_HOUR = 3600
_STATES = ("OR", "ID", "CA", "NY")
_NEXMARK: dict[str, str] = {
    "Person": "id INTEGER, name TEXT, city TEXT, state TEXT",
    "Auction": "id INTEGER, seller INTEGER, category INTEGER, reserve INTEGER, expires INTEGER",
    "Bid": "auction INTEGER, bidder INTEGER, price INTEGER, datetime INTEGER",
}
_NEXMARK_DOMAINS: dict[str, Domain] = {
    "name": ("Ann", "Bob"),
    "city": ("Salem", "Boise"),
    "state": _STATES,
    "category": (10, 11),
    "auction": (1, 2, 3, 1007, 1020),
    "price": range(1, 9),
    "expires": (40, 60),
    "datetime": range(30, 70),
}
_NO_CLOCK = "without `A.expires < CURRENT_TIME`: an answer depends on what has arrived, not on a clock"


def _nexmark(name: str, text: str, span: int = 120, changed: str = "", rows: int = 40) -> Published:
    relations = {"Category": "id INTEGER, name TEXT"} if "Category" in text else {}
    used = {s: columns for s, columns in _NEXMARK.items() if f"{s.lower()} " in text.lower()}
    domains = {**_NEXMARK_DOMAINS, **({"id": (10, 11)} if relations else {})}
    if relations:
        domains["auction"] = (10, 11)
    return Published(f"NEXMark {name}", text, used, relations, (), domains, span, rows, changed)


NEXMARK = (
    _nexmark("1", "SELECT Istream(auction, DOLTOEUR(price), bidder, datetime) FROM bid [ROWS UNBOUNDED];"),
    _nexmark(
        "2",
        """SELECT Rstream(auction, price) FROM Bid [NOW]
        WHERE auction = 1007 OR auction = 1020 OR auction = 2001 OR auction = 2019 OR auction = 2087;""",
    ),
    _nexmark(
        "3",
        """SELECT Istream(P.name, P.city, P.state, A.id)
        FROM Auction A [ROWS UNBOUNDED], Person P [ROWS UNBOUNDED]
        WHERE A.seller = P.id AND (P.state = `OR' OR P.state = `ID' OR P.state = `CA') AND A.category = 10;""".replace(
            "`", "'"
        ),
    ),
    _nexmark(
        "4",
        """SELECT Istream(AVG(Q.final))
        FROM Category C, (SELECT Rstream(MAX(B.price) AS final, A.category)
                          FROM Auction A [ROWS UNBOUNDED], Bid B [ROWS UNBOUNDED]
                          WHERE A.id=B.auction AND B.datetime < A.expires
                          GROUP BY A.id, A.category) Q
        WHERE Q.category = C.id
        GROUP BY C.id;""",
        changed=_NO_CLOCK,
    ),
    _nexmark(
        "5",
        """SELECT Rstream(auction)
        FROM (SELECT B1.auction, count(*) AS num
              FROM Bid [RANGE 60 MINUTE SLIDE 1 MINUTE] B1
              GROUP BY B1.auction)
        WHERE num >= ALL (SELECT count(*)
                          FROM Bid [RANGE 60 MINUTE SLIDE 1 MINUTE] B2
                          GROUP BY B2.auction);""",
        span=2 * _HOUR,
    ),
    _nexmark(
        "6",
        """SELECT Istream(AVG(Q.final), Q.seller)
        FROM (SELECT Rstream(MAX(B.price) AS final, A.seller)
              FROM Auction A [ROWS UNBOUNDED], Bid B [ROWS UNBOUNDED]
              WHERE A.id=B.auction AND B.datetime < A.expires
              GROUP BY A.id, A.seller) [PARTITION BY A.seller ROWS 10] Q
        GROUP BY Q.seller;""",
        changed=_NO_CLOCK,
    ),
    _nexmark(
        "7",
        """SELECT Rstream(B.auction, B.price, B.bidder)
        FROM Bid [RANGE 1 MINUTE SLIDE 1 MINUTE] B
        WHERE B.price = (SELECT MAX(B1.price)
                         FROM BID [RANGE 1 MINUTE SLIDE 1 MINUTE] B1);""",
        span=600,
    ),
    _nexmark(
        "8",
        """SELECT Rstream(P.id, P.name, A.reserve)
        FROM Person [RANGE 12 HOUR] P, Auction [RANGE 12 HOUR] A
        WHERE P.id = A.seller;""",
        span=24 * _HOUR,
        rows=20,
    ),
)

# ------------------------------------------------------------------------------- Stream Query Repository: auctions

_AUCTIONS: dict[str, str] = {
    "OpenAuction": "itemID INTEGER, sellerID INTEGER, start_price INTEGER, timestamp INTEGER",
    "ClosedAuction": "itemID INTEGER, buyerID INTEGER, timestamp INTEGER",
    "Bid": "itemID INTEGER, bid_price INTEGER, bidderID INTEGER, timestamp INTEGER",
}
_AUCTION_RELATIONS: dict[str, str] = {
    "Item": "id INTEGER, name TEXT, categoryID INTEGER",
    "Person": "id INTEGER, name TEXT, city TEXT, state TEXT",
    "Category": "id INTEGER, name TEXT",
}
_CURRENT_PRICE = """CREATE VIEW CurrentPrice AS
    Select P.itemID, Max(P.price) as price
    From ((Select itemID, bid_price as price From Bid) Union All
          (Select itemID, start_price as price From OpenAuction)) P
    Group By P.itemID"""
_LABELS = "names before a colon are views"


def _auctions(name: str, text: str, *views: str, changed: str = "", span: int = 120, rows: int = 40) -> Published:
    whole = " ".join((text, *views))
    streams = {s: columns for s, columns in _AUCTIONS.items() if s in whole}
    relations = {r: columns for r, columns in _AUCTION_RELATIONS.items() if f"{r} " in whole}
    domains: dict[str, Domain] = {
        "state": ("OR", "OR", "CA"),
        "categoryID": (10, 10, 2),
        "city": ("Salem", "Boise"),
        "name": ("a", "b"),
        "bid_price": range(1, 9),
        "itemID": (1, 2, 3, 1007, 1087) if "1007" in text else range(1, 80 if "Not In" in text else 5),
    }
    return Published(f"auctions, {name}", text, streams, relations, views, domains, span, rows, changed)


AUCTIONS = (
    _auctions("currency conversion", "Select itemID, DolToEuro(bid_price), bidderID From Bid"),
    _auctions(
        "selection",
        """Select itemID, bid_price From Bid
        Where itemID = 1007 or itemID = 1020 or itemID = 2001 or itemID = 2019 or itemID = 1087""",
    ),
    _auctions(
        "local item suggestion",
        """Select Istream(P.name, P.city, O.itemID)
        From OpenAuction [Now] O, Person P, Item I
        Where O.sellerID = P.id and P.state = 'OR' and O.itemID = I.id and I.categoryID = 10""",
    ),
    _auctions("open auctions", "Select * From OpenAuction Where itemID Not In (Select itemID From ClosedAuction)"),
    _auctions(
        "closing price",
        "Select Rstream(C.itemID, P.price) From ClosedAuction [Now] C, CurrentPrice P Where C.itemID = P.itemID",
        _CURRENT_PRICE,
        changed=_LABELS,
    ),
    _auctions(
        "average closing price",
        "Select catID, Avg(price) From ClosingPriceStream [Range 1 Hour] Group By catID",
        _CURRENT_PRICE,
        """CREATE VIEW ClosingPriceStream AS
        Select Rstream(T.id as catID, P.price as price)
        From ClosedAuction [Now] C, CurrentPrice P, Item I, Category T
        Where C.itemID = P.itemID and C.itemID = I.id and I.categoryID = T.id""",
        changed=_LABELS,
        span=2 * _HOUR,
    ),
    _auctions(
        "short auctions",
        """Select Rstream(O.*) From OpenAuction [Range 5 Hour] O, ClosedAuction [Now] C
        Where O.itemID = C.itemID""",
        changed="`OpenAuction.*` although OpenAuction is called O there",
        span=10 * _HOUR,
    ),
    _auctions(
        "hot item",
        "Select * From HotItemStream [Range 1 Minute]",
        """CREATE VIEW HotItemStream AS
        Select Rstream(itemID)
        From (Select B1.itemID as itemID, Count(*) as num
              From Bid [Range 60 Minute Slide 1 Minute] B1
              Group By B1.itemID)
        Where num >= All (Select Count(*) From Bid [Range 60 Minute Slide 1 Minute] B2 Group By B2.itemID)""",
        changed=_LABELS,
        span=2 * _HOUR,
    ),
    _auctions(
        "average selling price by seller",
        "Select sellerID, Avg(price) From ClosingPriceStream [Partition By sellerID Rows 10] Group By sellerID",
        _CURRENT_PRICE,
        """CREATE VIEW ClosingPriceStream AS
        Select Rstream(O.sellerID as sellerID, P.price as price)
        From ClosedAuction [Now] C, CurrentPrice P, OpenAuction O
        Where C.itemID = P.itemID and C.itemID = O.itemID""",
        changed=_LABELS,
    ),
    _auctions(
        "highest bid",
        """Select Rstream(itemID, bid_price) From Bid [Range 10 Minute Slide 10 Minute]
        Where bid_price = (Select Max(bid_price) From Bid [Range 10 Minute Slide 10 Minute])""",
        span=_HOUR,
    ),
    _auctions(
        "monitor new users",
        """Select Distinct id, name
        From (Select Rstream(P.id, P.name)
              From NewPersonStream [Range 12 Hour] P, OpenAuction A [Now]
              Where P.id = A.sellerID)""",
        "CREATE VIEW NewPersonStream AS Select Istream(P.id, P.name) From Person P",
        changed=f"{_LABELS}; Distinct(P.id, P.name) names columns the subquery in parentheses hides",
        span=24 * _HOUR,
    ),
)

# ------------------------------------------------------ Stream Query Repository: networks, habitats, logistics

_PACKETS = {"Packets": "id INTEGER, srcIP TEXT, destIP TEXT, len INTEGER, colID TEXT, destPort TEXT"}
_PACKET_DOMAINS: dict[str, Domain] = {
    "id": range(1, 9),
    "srcIP": ("10.0.0.1", "10.0.0.2", "10.0.0.3"),
    "destIP": ("10.1.0.1", "10.1.0.2"),
    "len": (40, 576, 1500),
    "colID": ("B", "B", "C"),
    "destPort": ("80", "22"),
}
NETWORKS = (
    Published(
        "networks, top-k traffic",
        """Select srcIP, destIP, traffic From Load as L1
        Where (Select Count(*) From Load as L2 Where L2.traffic < L1.traffic) > (Select 0.95 * Count(*) From Load)""",
        _PACKETS,
        views=(
            """CREATE VIEW Load AS Select srcIP, destIP, Sum(len) as traffic
            From Packets [Range 20 Minute] Where colID = 'B' Group By srcIP, destIP""",
        ),
        domains={**_PACKET_DOMAINS, "srcIP": [f"10.0.0.{i}" for i in range(20)], "len": range(40, 1500, 7)},
        span=1500,
        rows=130,
        changed="a view for the label; without ORDER BY",
    ),
    Published(
        "networks, customer monitoring",
        """Select N.n * 1.0 / D.n
        From (Select Count(*) as n From Packets [Range 60 Minute] B, Packets C
              Where B.colID = 'B' and C.colID = 'C' and C.id = B.id) N,
             (Select Count(*) as n From Packets [Range 60 Minute] B Where B.colID = 'B') D""",
        _PACKETS,
        domains=_PACKET_DOMAINS,
        span=2 * _HOUR,
        changed="(query) / (query) is no query: both stand in FROM",
    ),
    Published(
        "networks, protocol analysis",
        """Select Rstream(srcIP, Sum(len), Count(*))
        From Packets [Range 5 Minute Slide 5 Minute] Where destPort = '80' Group By srcIP""",
        _PACKETS,
        domains=_PACKET_DOMAINS,
        span=_HOUR,
    ),
    Published(
        "networks, source monitoring",
        "Select Rstream(srcIP, Avg(num)) From Q1 [Range 10 Minute Slide 1 Minute] Group By srcIP",
        _PACKETS,
        views=(
            """CREATE VIEW Q1 AS Select Rstream(srcIP, Count(*) as num)
            From Packets [Range 1 Minute Slide 1 Minute] Group By srcIP""",
        ),
        domains=_PACKET_DOMAINS,
        span=1200,
        changed="a view for the label; AVG for the repository's own decaying average",
    ),
    Published(
        "habitats, data collection",
        "Select Rstream (id, sample1(light) as light) From Sensors [Range 10 Second Slide 10 Second] Group By id",
        {"Sensors": "id INTEGER, light INTEGER"},
        domains={"light": range(100)},
    ),
    Published(
        "habitats, light monitoring",
        "Select Avg(light) From SampleStream [Range 30 Second]",
        {"Sensors": "id INTEGER, light INTEGER"},
        views=(
            """CREATE VIEW SampleStream AS Select Rstream (id, sample1(light) as light)
            From Sensors [Range 1 Second Slide 1 Second] Group By id""",
        ),
        domains={"light": range(100)},
        changed="a view for the label",
    ),
    Published(
        "logistics, center of mass",
        """Select Istream(center_of_mass(R1.latitude, R1.longitude) as com)
        From PlatformSpec P, PlatformPositionReport [Range 5 Minute] R1
        Where P.platoonID = 10 and P.PRN = R1.PRN and
              R1.timestamp >= All (Select timestamp From PlatformPositionReport [Range 5 Minute] R2
                                   Where R2.PRN = R1.PRN)""",
        {"PlatformPositionReport": "PRN INTEGER, latitude FLOAT, longitude FLOAT, timestamp INTEGER"},
        {"PlatformSpec": "PRN INTEGER, type TEXT, platoonID INTEGER"},
        domains={"type": ("tank",), "platoonID": (10, 10, 11), "latitude": (1.0, 2.5),
                 "longitude": (0.5, 4.0), "timestamp": range(40)},
        span=900,
        changed="a name has no hyphen",
    ),
    Published(
        "logistics, object sighting",
        """Select Rstream(*)
        From ObservationStream [Now] O1, ObservationStream [Range 5 Minute] O2, ObservationStream [Range 5 Minute] O3
        Where O1.PRN <> O2.PRN and O1.PRN <> O3.PRN and O2.PRN <> O3.PRN
          and distance(O1.latitude,O1.longitude,O2.latitude,O2.longitude) <= 10
          and distance(O1.latitude,O1.longitude,O3.latitude,O3.longitude) <= 10
          and distance(O2.latitude,O2.longitude,O3.latitude,O3.longitude) <= 10""",
        {f"{kind}SensorPositionReport": "PRN INTEGER, latitude FLOAT, longitude FLOAT, speed FLOAT"
         for kind in ("RF", "Magnetic", "Radar")},
        views=(
            """CREATE VIEW ObservationStream AS
            (Select PRN, latitude, longitude From RFSensorPositionReport) Union
            (Select PRN, latitude, longitude From MagneticSensorPositionReport) Union
            (Select PRN, latitude, longitude From RadarSensorPositionReport)""",
        ),
        domains={"latitude": (1.0, 9.0, 30.0), "longitude": (0.0, 5.0), "speed": (1.0, 2.0)},
        span=1200,
        rows=12,
        changed="a view for the label",
    ),
)  # fmt: skip

# ----------------------------------------------------------------------------------- the CQL paper and Linear Road

_CARS = {"PosSpeedStr": "vehicleId INTEGER, speed INTEGER, xPos INTEGER, dir INTEGER, hwy INTEGER"}
_CAR_DOMAINS: dict[str, Domain] = {
    "vehicleId": range(1, 6),
    "speed": range(20, 90, 5),
    "xPos": (100, 1700, 1800, 3600),
    "dir": (0, 1),
    "hwy": (1,),
}
_SEG_SPEED = """CREATE VIEW SegSpeedStr (vehicleId, speed, segNo, dir, hwy) AS
    Select vehicleId, speed, xPos/1760, dir, hwy From PosSpeedStr"""
_ACTIVE = """CREATE VIEW ActiveVehicleSegRel AS
    Select Distinct L.vehicleId, L.segNo, L.dir, L.hwy
    From SegSpeedStr [Range 30 Seconds] as A, SegSpeedStr [Partition by vehicleId Rows 1] as L
    Where A.vehicleId = L.vehicleId"""
_ENTRIES = "CREATE VIEW VehicleSegEntryStr AS Select Istream(*) From ActiveVehicleSegRel"
_CONGESTED = """CREATE VIEW CongestedSegRel AS
    Select segNo, dir, hwy, Avg(speed) as speed From SegSpeedStr [Range 5 Minutes]
    Group By segNo, dir, hwy Having Avg(speed) < 60"""
_VOLUME = """CREATE VIEW SegVolRel AS
    Select segNo, dir, hwy, Count(vehicleId) as numVehicles From ActiveVehicleSegRel Group By segNo, dir, hwy"""


def _cars(name: str, text: str, *views: str, span: int = 200, changed: str = "", rows: int = 40) -> Published:
    return Published(f"Linear Road, {name}", text, _CARS, {}, views, _CAR_DOMAINS, span, rows, changed)


_BENCHMARK = {"CarLocStr": "car_id INTEGER, speed INTEGER, exp_way INTEGER, lane INTEGER, dir INTEGER, x_pos INTEGER"}
_ACCIDENT_CARS = """CREATE VIEW AccCars AS
    SELECT car_id, AVG(x_pos) AS acc_loc FROM CarLocStr [PARTITION BY car_id ROWS 4]
    GROUP BY car_id HAVING COUNT(DISTINCT x_pos) = 1"""
_CURRENT_SEGMENT = """CREATE VIEW CurCarSeg AS
    SELECT car_id, exp_way, dir, x_pos / 5280 AS seg FROM CarLocStr [PARTITION BY car_id ROWS 1]"""

LINEAR_ROAD = (
    _cars("speeding", "Select Istream(*) From PosSpeedStr [Range Unbounded] Where speed > 65"),
    _cars("speeding now", "Select Rstream(*) From PosSpeedStr [Now] Where speed > 65"),
    _cars("speeding by default", "Select * From PosSpeedStr Where speed > 65"),
    _cars("active vehicles", "Select Distinct vehicleId From PosSpeedStr [Range 30 Seconds]"),
    _cars("segments", "Select * From SegSpeedStr", _SEG_SPEED, changed="integer division gives the segment"),
    _cars("entries", "Select * From VehicleSegEntryStr", _SEG_SPEED, _ACTIVE, _ENTRIES),
    _cars("congested segments", "Select * From CongestedSegRel", _SEG_SPEED, _CONGESTED),
    _cars("volumes", "Select * From SegVolRel", _SEG_SPEED, _ACTIVE, _VOLUME),
    _cars(
        "tolls",
        """Select Rstream(E.vehicleId, 2 * (V.numVehicles - 50) * (V.numVehicles - 50) as toll)
        From VehicleSegEntryStr [Now] as E, CongestedSegRel as C, SegVolRel as V
        Where E.segNo = C.segNo and C.segNo = V.segNo and E.dir = C.dir and C.dir = V.dir
          and E.hwy = C.hwy and C.hwy = V.hwy""",
        *(_SEG_SPEED, _ACTIVE, _ENTRIES, _CONGESTED, _VOLUME),
        changed="the base toll is 2",
    ),
    Published(
        "Linear Road, accident segments of the benchmark",
        "SELECT DISTINCT exp_way, dir, seg, acc_loc FROM CurCarSeg, AccCars WHERE CurCarSeg.car_id = AccCars.car_id",
        _BENCHMARK,
        views=(_ACCIDENT_CARS, _CURRENT_SEGMENT),
        domains={"x_pos": (100, 5300), "dir": (0, 1), "exp_way": (1,)},
        changed="COUNT DISTINCT (x) == 1 and the hyphen of x-pos are written as SQL has them",
    ),
    Published(
        "the CQL paper, prices of items",
        "Select Rstream(Item.id, PriceTable.price) From Item [Now], PriceTable Where Item.id = PriceTable.itemId",
        {"Item": "id INTEGER"},
        {"PriceTable": "itemId INTEGER, price INTEGER"},
    ),
    Published(
        "the CQL primer, a join of rows",
        "SELECT * FROM R [ROWS 10], S [ROWS 10] WHERE R.name = S.name",
        {"R": "name TEXT, value INTEGER", "S": "name TEXT, value INTEGER"},
        domains={"name": [f"n{i}" for i in range(12)]},
        changed="the primer has no brackets",
    ),
)

# -------------------------------------------------------------------------------------------------------- Babu 2005

_ABC = {"S1": "A INTEGER, B INTEGER", "S2": "A INTEGER, B INTEGER", "S3": "A INTEGER, B INTEGER"}
_LINKS = {link: "pid INTEGER, size INTEGER" for link in "CBO"}
_CAR_STR = {"CarStr": "cid INTEGER, xpos INTEGER, sid INTEGER"}


def _babu(
    section: str, text: str, streams: dict[str, str], span: int = 200, rows: int = 40, **domains: Domain
) -> Published:
    return Published(f"Babu 2005, {section}", text, streams, domains=domains, span=span, rows=rows)


BABU = (
    _babu(
        "section 1.1",
        """Select sum(C.size)
        From C [Range 10 minutes], B [Range 10 minutes], O [Range 10 minutes]
        Where C.pid = B.pid and B.pid = O.pid""",
        _LINKS,
        span=1500,
        rows=30,
        pid=range(12),
    ),
    _babu(
        "example 2.1.1",
        "Select Istream(*) From S [Rows Unbounded] Where S.A > 10 and S.B < 20 and S.C > 40",
        {"S": "A INTEGER, B INTEGER, C INTEGER"},
        A=(5, 15, 16),
        B=(10, 11, 30),
        C=(30, 50, 51),
    ),
    _babu(
        "example 2.1.1 in short",
        "Select * From S Where S.A > 10 and S.B < 20 and S.C > 40",
        {"S": "A INTEGER, B INTEGER, C INTEGER"},
        A=(5, 15, 16),
        B=(10, 11, 30),
        C=(30, 50, 51),
    ),
    _babu(
        "example 2.1.2",
        """Select * From S1 [Rows 1000], S2 [Range 2 Minutes]
        Where S1.A = S2.A and S1.A > 10 and S1.B < 20""",
        {k: _ABC[k] for k in ("S1", "S2")},
        span=400,
        A=(5, 15, 16),
        B=(10, 30),
    ),
    _babu("section 2.3.1", "Select A, Max(B) From S1 [Rows 200] Group By A", {"S1": _ABC["S1"]}, B=range(50)),
    _babu(
        "section 4.7",
        """Select * From S0
        Where S0 in (Select * From S1 [Rows 10,000]) and
              S0 in (Select * From S2 [Rows 10,000]) and
              S0 in (Select * From S3 [Rows 10,000])""",
        {"S0": "A INTEGER, B INTEGER", **_ABC},
    ),
    _babu(
        "section 4.7, as a stream",
        """Select Rstream(*) From S0 [Now]
        Where S0 in (Select * From S1 [Rows 10,000]) and S0 in (Select * From S2 [Rows 10,000])""",
        {"S0": "A INTEGER, B INTEGER", "S1": _ABC["S1"], "S2": _ABC["S2"]},
    ),
    _babu(
        "section 6.1.5",
        "Select * From S1 [Range 5 Minutes], S2 [Range 10 Minutes] Where S1.A = S2.A",
        {k: _ABC[k] for k in ("S1", "S2")},
        span=1500,
        A=range(12),
    ),
    _babu(
        "example 6.1.5",
        "Select * From S1 [Rows 50,000], S2 [Range 10 Minutes] Where S1.A = S2.A and S1.B > 10",
        {k: _ABC[k] for k in ("S1", "S2")},
        span=1500,
        A=range(12),
        B=(5, 15),
    ),
    _babu(
        "section 6.2",
        "Select * From S1 [Rows Unbounded], S2 [Rows Unbounded], S3 [Rows Unbounded] Where S1.A = S2.A and S2.B = S3.B",
        _ABC,
        rows=14,
        A=range(8),
        B=range(8),
    ),
    _babu(
        "example 6.3.4",
        """Select * From S1 [Rows Unbounded], S2 [Rows Unbounded], S3 [Rows 1]
        Where S1.B = S2.B and S2.C = S3.C and S3.D > 10""",
        {"S1": "A INTEGER, B INTEGER", "S2": "B INTEGER, C INTEGER", "S3": "C INTEGER, D INTEGER"},
        B=range(8),
        D=(4, 12),
    ),
    _babu(
        "figure 6.19",
        """Select distinct sid From
          (Select cid, sid From
            (CarStr [Partition By cid Rows 1]) as LastRep,
            (Select distinct cid From
              CarStr [Range 30 seconds]) as CurActiveCars
           Where LastRep.cid = CurActiveCars.cid)
         as CurCarSeg,
         (Select cid
          From CarStr [Partition By cid Rows 4]
          Group By cid
          Having count (distinct xpos) = 1 and count(*) = 4)
         as AccCars
        Where CurCarSeg.cid = AccCars.cid""",
        _CAR_STR,
        xpos=(7, 7, 7, 8),
    ),
)

PUBLISHED = (*NEXMARK, *AUCTIONS, *NETWORKS, *LINEAR_ROAD, *BABU)
