"""The queries of TPC-H as somebody writes them who knows how they are best run: joins in a good order, a subquery as a
grouped table to join with, filters at their tables. Each gives the rows of `queries.QUERIES`.

Queries 1, 6, 12, 13 and 14 are not here: over one or two tables there is nothing to write otherwise.
"""

from __future__ import annotations

_EUROPEAN = """partsupp JOIN supplier ON s_suppkey = ps_suppkey JOIN nation ON s_nationkey = n_nationkey
    JOIN (SELECT r_regionkey FROM region WHERE r_name = 'EUROPE') r ON n_regionkey = r_regionkey"""
_GERMAN = """(SELECT ps_partkey, ps_supplycost * ps_availqty AS value
    FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey
    JOIN (SELECT n_nationkey FROM nation WHERE n_name = 'GERMANY') n ON s_nationkey = n_nationkey)"""
_CODES = "('13', '31', '23', '29', '30', '18', '17')"

BY_HAND: dict[int, str] = {
    2: f"""
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM (SELECT ps_partkey AS k, MIN(ps_supplycost) AS least FROM {_EUROPEAN} GROUP BY ps_partkey) cheapest
    JOIN (SELECT p_partkey, p_mfgr FROM part WHERE p_size <= 15 AND p_type LIKE '%BRASS') p ON p_partkey = k
    JOIN (SELECT ps_partkey, ps_supplycost, s_acctbal, s_name, n_name, s_address, s_phone, s_comment FROM {_EUROPEAN}) e
        ON ps_partkey = k AND ps_supplycost = least""",
    3: """
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM (SELECT c_custkey FROM customer WHERE c_mktsegment = 'BUILDING') c
    JOIN (SELECT o_orderkey, o_custkey, o_orderdate, o_shippriority FROM orders
        WHERE o_orderdate < TIMESTAMP '1995-03-15') o ON c_custkey = o_custkey
    JOIN (SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem WHERE l_shipdate > TIMESTAMP '1995-03-15') l
        ON l_orderkey = o_orderkey
GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    4: """
SELECT o_orderpriority, COUNT(*) AS order_count
FROM (SELECT o_orderkey, o_orderpriority FROM orders
        WHERE o_orderdate >= TIMESTAMP '1993-07-01' AND o_orderdate < TIMESTAMP '1993-10-01') o
    JOIN (SELECT DISTINCT l_orderkey FROM lineitem WHERE l_commitdate < l_receiptdate) l ON l_orderkey = o_orderkey
GROUP BY o_orderpriority""",
    5: """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM (SELECT o_orderkey, o_custkey FROM orders
        WHERE o_orderdate >= TIMESTAMP '1994-01-01' AND o_orderdate < TIMESTAMP '1995-01-01') o
    JOIN lineitem ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey
    JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey
    JOIN (SELECT r_regionkey FROM region WHERE r_name = 'EUROPE') r ON n_regionkey = r_regionkey
GROUP BY n_name""",
    7: """
SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l_shipdate) AS l_year,
    SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM (SELECT n_name, n_nationkey FROM nation WHERE n_name = 'FRANCE' OR n_name = 'GERMANY') n1
    JOIN supplier ON s_nationkey = n1.n_nationkey
    JOIN (SELECT l_suppkey, l_orderkey, l_shipdate, l_extendedprice, l_discount FROM lineitem
        WHERE l_shipdate BETWEEN TIMESTAMP '1995-01-01' AND TIMESTAMP '1996-12-31') l ON s_suppkey = l_suppkey
    JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey
    JOIN (SELECT n_name, n_nationkey FROM nation WHERE n_name = 'FRANCE' OR n_name = 'GERMANY') n2
        ON c_nationkey = n2.n_nationkey
WHERE n1.n_name <> n2.n_name
GROUP BY n1.n_name, n2.n_name, year(l_shipdate)""",
    8: """
SELECT year(o_orderdate) AS o_year,
    SUM(CASE WHEN n2.n_name = 'FRANCE' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
    / SUM(l_extendedprice * (1 - l_discount)) AS mkt_share
FROM (SELECT p_partkey FROM part WHERE p_type LIKE 'ECONOMY%STEEL') p
    JOIN lineitem ON p_partkey = l_partkey
    JOIN (SELECT o_orderkey, o_custkey, o_orderdate FROM orders
        WHERE o_orderdate BETWEEN TIMESTAMP '1995-01-01' AND TIMESTAMP '1996-12-31') o ON l_orderkey = o_orderkey
    JOIN customer ON o_custkey = c_custkey JOIN nation n1 ON c_nationkey = n1.n_nationkey
    JOIN (SELECT r_regionkey FROM region WHERE r_name = 'EUROPE') r ON n1.n_regionkey = r_regionkey
    JOIN supplier ON s_suppkey = l_suppkey JOIN nation n2 ON s_nationkey = n2.n_nationkey
GROUP BY year(o_orderdate)""",
    9: """
SELECT n_name AS nation, year(o_orderdate) AS o_year,
    SUM(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS sum_profit
FROM (SELECT p_partkey FROM part WHERE p_name LIKE '%green%') p
    JOIN lineitem ON p_partkey = l_partkey JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
    JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON s_nationkey = n_nationkey
    JOIN orders ON o_orderkey = l_orderkey
GROUP BY n_name, year(o_orderdate)""",
    10: """
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone,
    c_comment
FROM (SELECT o_orderkey, o_custkey FROM orders
        WHERE o_orderdate >= TIMESTAMP '1993-10-01' AND o_orderdate < TIMESTAMP '1994-01-01') o
    JOIN (SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem WHERE l_returnflag = 'R') l
        ON l_orderkey = o_orderkey
    JOIN customer ON c_custkey = o_custkey JOIN nation ON c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
    11: f"""
SELECT ps_partkey, value
FROM (SELECT ps_partkey, SUM(value) AS value FROM {_GERMAN} g GROUP BY ps_partkey) each_part
    JOIN (SELECT SUM(value) * 0.01 AS least FROM {_GERMAN} g) total ON value > least""",
    15: """
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM (SELECT MAX(total_revenue) AS most FROM revenue) m JOIN revenue ON total_revenue = most
    JOIN supplier ON s_suppkey = supplier_no""",
    16: """
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM (SELECT p_partkey, p_brand, p_type, p_size FROM part WHERE p_brand <> 'Brand#45'
        AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)) p
    JOIN partsupp ON p_partkey = ps_partkey
    JOIN (SELECT s_suppkey FROM supplier WHERE s_comment NOT LIKE '%Customer%Complaints%') s ON s_suppkey = ps_suppkey
GROUP BY p_brand, p_type, p_size""",
    17: """
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM (SELECT p_partkey FROM part WHERE p_brand LIKE 'Brand#2%' AND p_container LIKE '%BOX') p
    JOIN lineitem ON p_partkey = l_partkey
    JOIN (SELECT l_partkey AS k, 0.2 * AVG(l_quantity) AS little FROM lineitem GROUP BY l_partkey) usual
        ON k = p_partkey
WHERE l_quantity < little""",
    18: """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, total
FROM (SELECT l_orderkey, SUM(l_quantity) AS total FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250) large
    JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey""",
    19: """
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM (SELECT l_partkey, l_quantity, l_extendedprice, l_discount FROM lineitem
        WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON') l
    JOIN (SELECT p_partkey, p_brand, p_container, p_size FROM part WHERE p_size BETWEEN 1 AND 35) p
        ON p_partkey = l_partkey
WHERE (p_brand LIKE 'Brand#1%' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        AND l_quantity BETWEEN 1 AND 11 AND p_size <= 25)
    OR (p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        AND l_quantity BETWEEN 10 AND 20 AND p_size <= 30)
    OR (p_brand LIKE 'Brand#3%' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        AND l_quantity BETWEEN 20 AND 30)""",
    20: """
SELECT s_name, s_address
FROM (SELECT s_suppkey, s_name, s_address, s_nationkey FROM supplier) s
    JOIN (SELECT n_nationkey FROM nation WHERE n_name = 'CANADA') n ON s_nationkey = n_nationkey
    JOIN (SELECT DISTINCT ps_suppkey
        FROM (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') p JOIN partsupp ON ps_partkey = p_partkey
            JOIN (SELECT l_partkey, l_suppkey, 0.5 * SUM(l_quantity) AS half FROM lineitem
                WHERE l_shipdate >= TIMESTAMP '1994-01-01' AND l_shipdate < TIMESTAMP '1995-01-01'
                GROUP BY l_partkey, l_suppkey) sold ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        WHERE ps_availqty > half) able ON ps_suppkey = s_suppkey""",
    21: """
SELECT s_name, COUNT(*) AS numwait
FROM (SELECT l_orderkey, l_suppkey FROM lineitem WHERE l_receiptdate > l_commitdate) l1
    JOIN supplier ON s_suppkey = l1.l_suppkey
    JOIN (SELECT n_nationkey FROM nation WHERE n_name = 'SAUDI ARABIA') n ON s_nationkey = n_nationkey
    JOIN (SELECT o_orderkey FROM orders WHERE o_orderstatus = 'F') o ON o_orderkey = l1.l_orderkey
    JOIN (SELECT l_orderkey AS all_of FROM lineitem GROUP BY l_orderkey HAVING MIN(l_suppkey) <> MAX(l_suppkey)) several
        ON all_of = l1.l_orderkey
    JOIN (SELECT l_orderkey AS late_of FROM lineitem WHERE l_receiptdate > l_commitdate
        GROUP BY l_orderkey HAVING MIN(l_suppkey) = MAX(l_suppkey)) alone ON late_of = l1.l_orderkey
GROUP BY s_name""",
    22: f"""
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal AS c_acctbal, o_custkey
    FROM (SELECT c_custkey, c_phone, c_acctbal FROM customer WHERE substring(c_phone, 1, 2) IN {_CODES}) c
        JOIN (SELECT AVG(c_acctbal) AS mean FROM customer
            WHERE c_acctbal > 0.00 AND substring(c_phone, 1, 2) IN {_CODES}) m ON c_acctbal > mean
        LEFT JOIN (SELECT DISTINCT o_custkey FROM orders) o ON o_custkey = c_custkey) custsale
WHERE o_custkey IS NULL GROUP BY cntrycode""",
}
"""The text of each query by its number."""
