"""Properties of Spark's functions that a plan depends on. The names are those of Spark 4.1's registry."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from dbt_arctic.planner.spark.scalar_functions import SCALAR

GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "stack",
    ]
)
"""Functions that return several rows for one row."""

RANKING = frozenset(
    ["cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number"]
)
"""Window functions whose value depends on the order of ties."""

EXACT = frozenset(
    [
        "any",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "count",
        "count_if",
        "every",
        "grouping",
        "grouping_id",
        "max",
        "median",
        "min",
        "percentile",
        "percentile_cont",
        "percentile_disc",
        "regr_count",
        "some",
    ]
)
"""Aggregates that depend only on the values of a group, not on their order."""

SUMS = frozenset(["avg", "mean", "sum", "try_avg", "try_sum"])
"""Aggregates that are exact for integers and decimals, and depend on the order for floats."""

FLOATS = frozenset(
    [
        "corr",
        "covar_pop",
        "covar_samp",
        "kurtosis",
        "regr_avgx",
        "regr_avgy",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "skewness",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "variance",
    ]
)
"""Aggregates that compute with floats, so that their last digits depend on the row order."""

ORDERED = frozenset(
    [
        "any_value",
        "array_agg",
        "collect_list",
        "collect_set",
        "first",
        "first_value",
        "last",
        "last_value",
        "listagg",
        "max_by",
        "min_by",
        "mode",
        "schema_of_variant_agg",
        "some_value",
        "string_agg",
    ]
)
"""Aggregates that depend on the order of a group's rows."""

APPROXIMATE = frozenset(
    [
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "count_min_sketch",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "percentile_approx",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
    ]
)
"""Aggregates that return an approximate result."""

RANDOM = frozenset(
    [
        "aes_encrypt",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "monotonically_increasing_id",
        "rand",
        "randn",
        "random",
        "randstr",
        "reflect",
        "shuffle",
        "spark_partition_id",
        "try_reflect",
        "uniform",
        "uuid",
    ]
)
"""Functions that return a different value for each call."""

TIME = frozenset(["curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now"])
"""Functions of the time at which a statement runs."""

SESSION = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_schema",
        "current_timezone",
        "current_user",
        "session_user",
        "user",
        "version",
    ]
)
"""Functions of the session: its user, catalog, schema and time zone."""

Kind = Literal[
    "scalar",
    "generator",
    "ranking",
    "exact",
    "sum",
    "float",
    "ordered",
    "approximate",
    "random",
    "time",
    "session",
    "unknown",
]

_KINDS: dict[Kind, frozenset[str]] = {
    "generator": GENERATORS,
    "ranking": RANKING,
    "exact": EXACT,
    "sum": SUMS,
    "float": FLOATS,
    "ordered": ORDERED,
    "approximate": APPROXIMATE,
    "random": RANDOM,
    "time": TIME,
    "session": SESSION,
    "scalar": SCALAR,
}

AGGREGATE_KINDS: frozenset[Kind] = frozenset({"exact", "sum", "float", "ordered", "approximate"})


def function_name(node: exp.Expr) -> str | None:
    """The name of a function call in lower case; ``None`` for anything else, operators included."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.AggFunc):
        return node.sql_name().lower()
    return None


def kind_of(name: str) -> Kind:
    """The kind of a function; ``unknown`` for one that is not Spark's, such as a user-defined function."""
    return next((kind for kind, names in _KINDS.items() if name in names), "unknown")


def is_aggregate(node: exp.Expression) -> bool:
    """Whether an expression is the call of an aggregate."""
    name = function_name(node)
    return name is not None and kind_of(name) in AGGREGATE_KINDS
