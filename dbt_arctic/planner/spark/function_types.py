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
KEEP_TYPE = frozenset(
    ["any_value", "coalesce", "first", "greatest", "ifnull", "last", "least", "max", "min", "nvl"]
)
"""Functions whose value has the type of their arguments."""
OF_UNCERTAIN_TYPE = frozenset(
    ["bit_get", "ceil", "ceiling", "floor", "getbit", "grouping", "smallint", "tinyint"]
)
"""Functions with a value of fewer bits than an INT, or with a decimal value for a decimal argument."""
OF_ELEMENTS = frozenset(["element_at", "get", "try_element_at"])
"""Functions whose value is an element of their first argument."""
OF_OTHER_ROWS = frozenset(["lag", "lead"])
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
