"""SQL that decodes the values of change events into the declared types. Pure.

Each expression is NULL for a value that the type cannot have exactly. The caller makes this an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dbt_arctic.data_type import Array, decimal_digits, parse_type, type_text
from dbt_arctic.keyed.names import literal
from dbt_arctic.sources.change_settings import ChangeEvents, Unit

_DEBEZIUM, _CONNECT = "io.debezium.", "org.apache.kafka.connect.data."
_DECIMAL, _ANY_SCALE = f"{_CONNECT}Decimal", f"{_DEBEZIUM}data.VariableScaleDecimal"
_DATES = (f"{_DEBEZIUM}time.Date", f"{_CONNECT}Date")
_TIMES: dict[Unit, tuple[str, ...]] = {
    "millis": (f"{_DEBEZIUM}time.Time", f"{_CONNECT}Time"),
    "micros": (f"{_DEBEZIUM}time.MicroTime",),
    "nanos": (f"{_DEBEZIUM}time.NanoTime",),
}
_TIMESTAMPS: dict[Unit, tuple[str, ...]] = {
    "millis": (f"{_DEBEZIUM}time.Timestamp", f"{_CONNECT}Timestamp"),
    "micros": (f"{_DEBEZIUM}time.MicroTimestamp",),
    "nanos": (f"{_DEBEZIUM}time.NanoTimestamp",),
}
_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6}0*)?"
_LOCAL = f"^[0-9]{{4,6}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}$"
_ZONED = f"{_LOCAL[:-1]}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999."""


@dataclass(frozen=True)
class SchemaInMessage:
    """SQL of what a message says about the type of a value.

    :param described: whether the message has a schema.
    :param type_name: the name of the type in the schema, or NULL.
    :param scale: of a decimal in the schema, or NULL.
    """

    described: str
    type_name: str
    scale: str

    def names(self, *names: str) -> str:
        """SQL of whether the type has one of these names."""
        return f"coalesce({self.type_name} IN ({', '.join(map(literal, names))}), false)"


@dataclass(frozen=True)
class EncodedValue:
    """SQL of a value in a message, and of what the message says about its type.

    :param value: a variant that is not NULL.
    :param text: the variant as a string.
    :param schema: ``None`` if messages of the format never have a schema. The SQL then has no cases for
        encodings that only a schema can name, because Spark takes long to plan them.
    """

    value: str
    text: str
    schema: SchemaInMessage | None = None


def decoded(kind: str, encoded: EncodedValue, events: ChangeEvents, column: str) -> str:
    """SQL of a value as a declared type; NULL if it is not exactly a value of this type.

    :param kind: a type that ``column_type`` has written.
    """
    type_ = parse_type(kind)
    if isinstance(type_, Array):
        return _array(type_text(type_.element), encoded, events, column)
    if type_.kind == "decimal":
        return _decimal(kind, encoded, events)
    readers: dict[str, Callable[[], str]] = {
        "string": lambda: _string(encoded),
        "binary": lambda: _binary(encoded.text, events),
        "boolean": lambda: _boolean(encoded.text),
        "date": lambda: _date(encoded),
        "timestamp": lambda: _when(encoded.text, _ZONED, "TIMESTAMP"),
        "timestamp_ntz": lambda: _local_timestamp(encoded, events.units.get(column)),
        "float": lambda: _floating(encoded, kind),
        "double": lambda: _floating(encoded, kind),
    }
    return readers.get(kind, lambda: _integer(encoded, kind))()


def _when(text: str, pattern: str, kind: str) -> str:
    return f"CASE WHEN {text} RLIKE {literal(pattern)} THEN TRY_CAST({text} AS {kind}) END"


def _bound(variable: str, expression: str, body: str) -> str:
    """SQL that computes an expression once, under a name."""
    return f"transform(array({expression}), {variable} -> {body})[0]"


def _integer(encoded: EncodedValue, kind: str) -> str:
    return _no_decimal(encoded, _when(encoded.text, "^-?[0-9]{1,19}$", kind.upper()))


def _floating(encoded: EncodedValue, kind: str) -> str:
    pattern = "^(-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$"
    return _no_decimal(encoded, _when(encoded.text, pattern, kind.upper()))


def _no_decimal(encoded: EncodedValue, number: str) -> str:
    """SQL of a number, but NULL for the bytes of a decimal, which may look like one."""
    if encoded.schema is None:
        return number
    return f"CASE WHEN NOT {encoded.schema.names(_DECIMAL, _ANY_SCALE)} THEN {number} END"


def _boolean(text: str) -> str:
    return f"CASE WHEN {text} IN ('true', '1') THEN true WHEN {text} IN ('false', '0') THEN false END"


def _string(encoded: EncodedValue) -> str:
    text, schema = encoded.text, encoded.schema
    if schema is None:
        return text
    other = schema.names(_DECIMAL, _ANY_SCALE, *(name for names in _TIMESTAMPS.values() for name in names))
    days = f"CAST(date_add(DATE'1970-01-01', TRY_CAST({text} AS INT)) AS STRING)"
    times = " ".join(
        f"WHEN {schema.names(*names)} THEN {_time_of_day(_micros(text, unit))}"
        for unit, names in _TIMES.items()
    )
    return f"CASE WHEN {other} THEN NULL WHEN {schema.names(*_DATES)} THEN {days} {times} ELSE {text} END"


def _time_of_day(micros: str) -> str:
    """``12:34:56`` or ``12:34:56.000001``. MySQL has negative times, and times of more than a day."""
    seconds = "abs(t) div 1000000"
    clock = f"format_string('%02d:%02d:%02d', {seconds} div 3600, {seconds} div 60 % 60, {seconds} % 60)"
    fraction = "IF(t % 1000000 = 0, '', format_string('.%06d', abs(t) % 1000000))"
    # format_string() writes NULL as text.
    text = f"CASE WHEN t IS NOT NULL THEN concat(IF(t < 0, '-', ''), {clock}, {fraction}) END"
    return _bound("t", micros, text)


def _date(encoded: EncodedValue) -> str:
    text = encoded.text
    iso = _when(f"trim(TRAILING 'Z' FROM {text})", "^[0-9]{4,6}-[0-9]{2}-[0-9]{2}$", "DATE")
    schema = encoded.schema
    if schema is None:
        return iso
    is_days = f"({schema.names(*_DATES)} OR NOT {schema.described})"
    days = f"date_add(DATE'1970-01-01', TRY_CAST({text} AS INT))"
    return f"CASE WHEN {text} RLIKE '^-?[0-9]{{1,7}}$' THEN IF({is_days}, {days}, NULL) ELSE {iso} END"


def _micros(text: str, unit: Unit) -> str:
    """SQL of a number of some unit in microseconds; NULL if it is none, or is not exact."""
    number = _when(text, "^-?[0-9]{1,19}$", "BIGINT")
    if unit == "micros":
        return number
    if unit == "millis":
        return f"try_multiply({number}, 1000L)"
    return _bound("n", number, "CASE WHEN n % 1000 = 0 THEN n div 1000 END")


def _local_timestamp(encoded: EncodedValue, declared: Unit | None) -> str:
    text, schema = encoded.text, encoded.schema
    since_1970 = None if declared is None else _micros(text, declared)
    if schema is not None:
        branches = [
            f"WHEN {schema.names(*names)} THEN {_micros(text, unit)}" for unit, names in _TIMESTAMPS.items()
        ]
        if since_1970 is not None:
            branches.append(f"WHEN NOT {schema.described} THEN {since_1970}")
        since_1970 = f"CASE {' '.join(branches)} END"
    if since_1970 is None:
        return _when(text, _LOCAL, "TIMESTAMP_NTZ")
    added = "timestampadd(MICROSECOND, m, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    number = _bound(
        "m", since_1970, f"CASE WHEN m BETWEEN {_FIRST_MICROS} AND {_LAST_MICROS} THEN {added} END"
    )
    return (
        f"CASE WHEN {text} RLIKE {literal(_LOCAL)} THEN TRY_CAST({text} AS TIMESTAMP_NTZ) ELSE {number} END"
    )


def _binary(text: str, events: ChangeEvents) -> str:
    if events.binary == "latin1":
        return f"CASE WHEN {text} RLIKE '(?s)^[\\\\x00-\\\\xFF]*$' THEN encode({text}, 'ISO-8859-1') END"
    if events.binary == "hex":
        return f"CASE WHEN {text} RLIKE '^([0-9A-Fa-f]{{2}})*$' THEN unhex({text}) END"
    return f"CASE WHEN {text} RLIKE {literal(_BASE64)} THEN unbase64({text}) END"


def _decimal(kind: str, encoded: EncodedValue, events: ChangeEvents) -> str:
    text, value = encoded.text, encoded.value
    plain, schema = _decimal_text(text, kind), encoded.schema
    if schema is None:
        return plain
    variable = _bound(
        "d",
        f"TRY_CAST({value} AS MAP<STRING, VARIANT>)",
        _unscaled("TRY_CAST(d['value'] AS STRING)", "TRY_CAST(d['scale'] AS INT)", kind),
    )
    scale = str(_scale(kind))
    number = f"schema_of_variant({value}) <> 'STRING'"
    unknown = {
        "precise": f"WHEN {number} THEN NULL ELSE {_unscaled(text, scale, kind)}",
        "string": f"ELSE {plain}",
        "double": f"ELSE {_decimal_text(text, kind, from_double=True)}",
        # Digits alone may be a decimal or its bytes.
        None: f"WHEN {number} OR {text} LIKE '%.%' THEN {plain}",
    }[events.decimals]
    return (
        f"CASE WHEN {schema.names(_ANY_SCALE)} OR schema_of_variant({value}) LIKE 'OBJECT%' "
        f"THEN {variable} WHEN {schema.names(_DECIMAL)} THEN {_unscaled(text, schema.scale, kind)} "
        f"WHEN {schema.described} THEN {_decimal_text(text, kind, from_double=True)} {unknown} END"
    )


def _decimal_text(text: str, kind: str, from_double: bool = False) -> str:
    """SQL of digits as a decimal; NULL if a digit would be lost.

    :param from_double: whether the value was a double before, so that it may have an exponent.
    """
    scale = _scale(kind)
    places = f"([.][0-9]{{0,{scale}}}0*)?" if scale else "([.]0*)?"
    exact = _when(text, f"^-?[0-9]+{places}$", kind.upper())
    if not from_double:
        return exact
    same = _bound(
        "x", f"TRY_CAST({text} AS {kind.upper()})", f"IF(CAST(x AS DOUBLE) = CAST({text} AS DOUBLE), x, NULL)"
    )
    return f"CASE WHEN {text} RLIKE '^-?[0-9.]+[eE][+-]?[0-9]+$' THEN {same} ELSE {exact} END"


def _unscaled(text: str, scale: str, kind: str) -> str:
    """SQL of a decimal from the bytes of its unscaled value: two's complement, big-endian."""
    wanted = _scale(kind)
    high = "CAST(conv(substr(h, 1, 16), 16, 10) AS DECIMAL(20,0))"
    low = "CAST(conv(substr(h, 17, 16), 16, 10) AS DECIMAL(20,0))"
    two_64 = "CAST(18446744073709551616 AS DECIMAL(20,0))"
    signed = f"IF(substr(h, 1, 1) >= '8', {high} - {two_64}, {high})"
    number = f"CAST(try_add(try_multiply({signed}, {two_64}), {low}) AS STRING)"
    lost = f"right(u, greatest({scale} - {wanted}, 0))"
    exact = (
        f"CASE WHEN {scale} <= {wanted} OR {lost} RLIKE '^0+$' OR u = '0' "
        f"THEN TRY_CAST(concat(u, 'E', CAST(-({scale}) AS STRING)) AS {kind.upper()}) END"
    )
    padded = "CASE WHEN length(b) BETWEEN 2 AND 32 THEN lpad(b, 32, IF(substr(b, 1, 1) >= '8', 'F', '0')) END"
    digits = f"CASE WHEN {text} RLIKE {literal(_BASE64)} THEN hex(unbase64({text})) END"
    return _bound("b", digits, _bound("h", padded, _bound("u", number, exact)))


def _scale(kind: str) -> int:
    digits = decimal_digits(kind)
    assert digits is not None, kind
    return digits.scale


def _array(item: str, encoded: EncodedValue, events: ChangeEvents, column: str) -> str:
    each = replace(encoded, value="i", text="TRY_CAST(i AS STRING)")
    one = decoded(item, each, events, column)
    if item == "string":  # the text of an array is JSON
        one = f"CASE WHEN NOT startswith(schema_of_variant(i), 'ARRAY') THEN {one} END"
    wrong = f"exists(a, i -> NOT is_variant_null(i) AND {one} IS NULL)"
    values = f"transform(a, i -> CASE WHEN NOT is_variant_null(i) THEN {one} END)"
    return _bound("a", f"TRY_CAST({encoded.value} AS ARRAY<VARIANT>)", f"IF({wrong}, NULL, {values})")


__all__ = ["EncodedValue", "SchemaInMessage", "decoded"]
