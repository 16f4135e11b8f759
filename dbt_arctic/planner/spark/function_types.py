"""The result types of functions, as far as their name determines them."""

from __future__ import annotations

BY_TYPE = frozenset(
    [
        *("hash", "xxhash64", "typeof", "schema_of_variant", "schema_of_variant_agg"),
        # A value out of range becomes NULL, loses bits, or is rendered with the bits of its type.
        *("try_add", "try_subtract", "try_multiply", "shiftleft", "shiftright", "shiftrightunsigned"),
        # Functions that take at most 32 bits.
        *("add_months", "date_add", "date_sub"),
        *("binary", "bit_count", "bit_get", "getbit", "format_string", "printf"),
    ]
)
OF_ALL = frozenset(["coalesce", "greatest", "ifnull", "least", "nvl"])
"""Functions whose value has the common type of all their arguments."""
OF_SECOND = frozenset(["if", "iff", "nvl2"])
"""Functions whose value has the common type of all their arguments but the first."""
OF_FIRST = frozenset(
    [
        *("any_value", "first", "first_value", "lag", "last", "last_value", "lead", "max", "max_by"),
        *("min", "min_by", "nth_value", "nullif"),
    ]
)
"""Functions whose value has the type of their first argument. LAG and LEAD cast their default to it."""
OF_NUMBER = frozenset(["abs", "bround", "negative", "positive", "round"])
"""Functions whose value has the type of their first argument, if it is an integer or a float."""
ROUNDED = frozenset(["ceil", "ceiling", "floor"])
"""Functions whose value is a decimal for a decimal, and a BIGINT for another number."""
SUMS = frozenset(["sum", "try_sum"])
AVERAGES = frozenset(["avg", "mean", "try_avg"])
OF_INTEGERS = frozenset(
    [
        *("array_size", "ascii", "bit_count", "cardinality", "char_length", "character_length", "datediff"),
        *("date_diff", "day", "dayofmonth", "dayofweek", "dayofyear", "dense_rank", "hash", "hour", "instr"),
        *("int", "len", "length", "locate", "minute", "month", "ntile", "quarter", "rank", "regexp_count"),
        *("row_number", "second", "size", "unix_date", "weekday", "weekofyear", "year"),
    ]
)
"""Functions whose value is an INT."""
OF_TINY = frozenset(["bit_get", "getbit", "grouping", "tinyint"])
"""Functions whose value is a TINYINT."""
OF_LONGS = frozenset(["bigint", "count", "count_if", "crc32", "grouping_id", "unix_timestamp", "xxhash64"])
"""Functions whose value is a BIGINT."""
NUMERIC = (
    OF_ALL
    | OF_FIRST
    | OF_NUMBER
    | ROUNDED
    | SUMS
    | AVERAGES
    | OF_INTEGERS
    | OF_TINY
    | OF_LONGS
    | {"smallint"}
)
"""Functions of which it is known what sort of number they return, if they return one."""
OF_ARRAYS = frozenset(
    ["array", "filter", "flatten", "map_keys", "map_values", "sequence", "split", "transform"]
)
"""Functions whose value is an array."""
OF_ELEMENTS = frozenset(["element_at", "get", "try_element_at"])
"""Functions whose value is an element of their first argument."""
OF_STRINGS_OR_LISTS = frozenset(["concat", "reverse"])
OF_STRINGS_OR_BYTES = frozenset(["left", "lpad", "rpad", "substr", "substring"])
"""Functions whose value is a string or a binary, like their first argument."""
OF_TIMES = frozenset(
    [
        *("current_timestamp", "date_trunc", "from_utc_timestamp", "now", "timestamp_micros"),
        *("timestamp_millis", "timestamp_seconds", "to_timestamp", "to_utc_timestamp"),
    ]
)
OF_TRUTH = frozenset(
    [
        *("any", "bool_and", "bool_or", "contains", "endswith", "every", "isnan", "isnotnull", "isnull"),
        *("some", "startswith"),
    ]
)
OF_DATES = frozenset(
    [
        *("add_months", "curdate", "current_date", "date", "date_add", "date_sub", "last_day"),
        *("make_date", "next_day", "to_date", "trunc"),
    ]
)
"""Functions whose value is a date."""
OF_STRINGS = frozenset(
    [
        *("base64", "bin", "btrim", "char", "chr", "conv", "dayname", "format_number", "format_string"),
        *("from_unixtime", "hex", "monthname", "printf", "repeat", "soundex", "space"),
        "concat_ws",
        "date_format",
        "get_json_object",
        "initcap",
        "lcase",
        "lower",
        "ltrim",
        "md5",
        "regexp_extract",
        "regexp_replace",
        "replace",
        "right",
        "rtrim",
        "sha",
        "sha1",
        "sha2",
        "split_part",
        "substring_index",
        "to_json",
        "translate",
        "trim",
        "ucase",
        "upper",
        "uuid",
    ]
)
"""Functions whose value is a string."""
