"""Mistakes that are put in on purpose into macros and strategies, each with a model whose rows show it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from dbt_arctic.adapter import (
    auto_api,
    constraints,
    dbt_invocation,
    keyed_api,
    microbatch,
    model_api,
    plain_api,
    relation,
    seed_api,
    snapshot_api,
    snapshots,
    target_type,
    view_columns,
)
from dbt_arctic.engine import session, statement, warehouse
from dbt_arctic.engine.lexer import split_statements
from dbt_arctic.keyed import assignment, replay
from dbt_arctic.keyed.names import quote
from dbt_arctic.maintenance import adopt
from dbt_arctic.refresh import batch, build, event_time, plain_config, snapshot_times, upsert
from dbt_arctic.refresh.plain_columns import EvolvedColumns
from dbt_arctic.refresh.schema_evolution import ColumnPlan
from tests.dbt.random.hooks import hooks_of
from tests.dbt.random.project import PACKAGED, Batch, Case, Column, Model, Round
from tests.dbt.random.snapshots import CURRENT_END

Patch = pytest.MonkeyPatch


def rows(types: str, *values: tuple[Any, ...]) -> Batch:
    """A batch. ``types``: ``name type`` of each column, with semicolons between them."""
    columns = [one.strip().split(" ", 1) for one in types.split(";")]
    return Batch(tuple(Column(name, type_) for name, type_ in columns), values)


@dataclass(frozen=True)
class Mutant:
    """:param macro: Jinja that takes the place of a macro of ours.

    :param patch: the mistake, where it is one of Python.
    :param settings: those of the model in the second round that are others than in the first.
    :param contract: the types of a contract.
    :param adopted: whether ``dbt-arctic adopt`` makes its table a keyed one before the second round.
    :param late: whether another process upserts during the second round, which is a full refresh.
    :param evolved: whether the files of its table have an older partitioning in the second round.
    :param excluded: whether the second round leaves the model out, and not what it reads.
    """

    model: Model
    rounds: tuple[Batch, Batch]
    macro: str = ""
    patch: Callable[[Patch], None] | None = None
    settings: dict[str, Any] | None = None
    contract: str = ""
    adopted: bool = False
    late: bool = False
    evolved: bool = False
    excluded: bool = False


_DAY, _NOON = dt.date(2024, 3, 1), dt.datetime(2024, 3, 1, 12)
_OR = "DBT_INTERNAL_DEST.part = 0 or DBT_INTERNAL_DEST.part is null -- or so"
_PARTS = "k int; part int; v1 int"

_DELETE = """{% macro arctic__delete_sql(arguments) -%}
  delete from {{ arguments['target_relation'] }} as DBT_INTERNAL_DEST
  where exists (select 1 from {{ arguments['temp_relation'] }} as DBT_INTERNAL_SOURCE
    where DBT_INTERNAL_DEST.k = DBT_INTERNAL_SOURCE.k)
  {%- for predicate in arguments['incremental_predicates'] or [] %}
    and
    {{ predicate }}
  {%- endfor -%}
{%- endmacro %}"""

_MERGE = """{% macro arctic__get_incremental_merge_sql(arguments) -%}
  {{ return(get_merge_sql(arguments['target_relation'], arguments['temp_relation'], arguments['unique_key'],
      arguments['dest_columns'], none)) }}
{%- endmacro %}"""

_OVERWRITE = """{% macro arctic__get_incremental_insert_overwrite_sql(arguments) -%}
  {%- set columns = arguments['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert overwrite {{ arguments['target_relation'] }} ({{ columns }})
  select {{ arctic__stored_columns(arguments) }} from {{ arguments['temp_relation'] }}
{%- endmacro %}"""

_AS_STORED = """{% macro arctic__as_stored(sql, queried, values, target_relation, updated_at) -%}
  {{ return(sql) }}
{%- endmacro %}"""

_MICROBATCH = """{% macro arctic__get_incremental_microbatch_sql(arguments) -%}
  {{ return(arctic__insert_sql(arguments)) }}
{%- endmacro %}"""


_HASH = """{% macro arctic__snapshot_hash_arguments(args) -%}
  md5(concat_ws('|' {%- for arg in args %}, cast({{ arg }} as string) {%- endfor -%}))
{%- endmacro %}"""


def _predicates(kind: str, predicates: Any) -> Model:
    return Model("", kind, {"unique_key": "k", "incremental_predicates": predicates})


def _snapshot(**config: Any) -> Model:
    return Model("", "snapshot", config)


def _unsafe_key(patch: Patch) -> None:
    def joined(unique_key: Any, columns: Any) -> str:
        parts = [unique_key] if isinstance(unique_key, str) else unique_key
        return "concat_ws('|', " + ", ".join(f"`{part}`" for part in parts) + ")"

    patch.setattr(snapshot_api, "key_expression", joined)


def _unsafe_change(patch: Patch) -> None:
    compare = snapshots.has_changed
    patch.setattr(snapshot_api, "has_changed", lambda *given: compare(*given).replace("<=>", "="))


def _older_than_null(patch: Patch) -> None:
    patch.setattr(
        snapshot_api,
        "is_newer",
        lambda columns: (
            f"(snapshotted_data.{columns['dbt_valid_from']} < source_data.{columns['dbt_updated_at']})"
        ),
    )


def _ids_of_earlier_records(patch: Patch) -> None:
    patch.setattr(snapshot_api, "unique_ids", lambda rows, target, scd_id, other_id: rows)


def _no_end_without_a_time(patch: Patch) -> None:
    patch.setattr(snapshot_api, "ended_rows", lambda rows, valid_to, now: rows)


def _any_current_end(patch: Patch) -> None:
    patch.setattr(snapshot_api, "keep_current_end", lambda *_: None)


def _drops_before_rows(patch: Patch) -> None:
    patch.setattr(plain_api, "is_written_by_project", lambda strategy, macros: True)


def _any_type_of_a_partition_column(patch: Patch) -> None:
    patch.setattr(plain_api, "gets_other_partition_values", lambda *_: False)


def _any_type_of_time(patch: Patch) -> None:
    patch.setattr(snapshot_times.OwnColumns, "refuse_other_types", lambda *given: None)
    patch.setattr(snapshot_api, "evolve_snapshot", lambda *given: given[3])


def _types_of_the_query(patch: Patch) -> None:
    patch.setattr(
        snapshot_api, "values_of_stored_types", lambda _, *columns: plain_api.stored_values(*columns)
    )


def _keys_of_the_query(patch: Patch) -> None:
    patch.setattr(plain_api, "values_of_stored_types", lambda *given: {})


def _transform_by_case(patch: Patch) -> None:
    patch.setattr(plain_api, "with_columns_of", lambda fields, columns: fields)


def _partition_by_case(patch: Patch) -> None:
    patch.setattr(build, "with_columns_of", lambda fields, columns: tuple(fields))


def _structs_by_position(patch: Patch) -> None:
    patch.setattr(plain_api, "stored_values", lambda *given, **settings: {})


def _keyed_structs_by_position(patch: Patch) -> None:
    patch.setattr("dbt_arctic.refresh.batch._as_stored", lambda sql, key, schema, existing: sql)


def _any_type(patch: Patch) -> None:
    patch.setattr(assignment, "is_exact", lambda produced, stored: True)


def _no_check_of_partitions(patch: Patch) -> None:
    patch.setattr(plain_api, "check_partitions", lambda config, stored: "")


def _no_look_at_files(patch: Patch) -> None:
    patch.setattr(plain_api, "has_old_files", lambda *given: False)


def _no_new_fields(patch: Patch) -> None:
    patch.setattr(plain_api, "evolve_plain", lambda *given, **how: EvolvedColumns(given[4]))


def _columns_before_checks(patch: Patch) -> None:
    plan = upsert.plan_columns

    def changing_at_once(*given: Any) -> Any:
        table = upsert.change_columns(*given[:2], plan(*given))
        return ColumnPlan(table, table)

    patch.setattr(upsert, "plan_columns", changing_at_once)


def _types_of_seeds_by_case(patch: Patch) -> None:
    patch.setattr(seed_api, "column_types", lambda seed, path, delimiter, declared: dict(declared))


def _first_statement_of_a_hook(patch: Patch) -> None:
    patch.setattr(model_api, "split_statements", lambda sql: split_statements(sql)[:1])


def _fields_by_case(patch: Patch) -> None:
    patch.setattr(constraints, "is_spelled_alike", lambda one, other: one == other)


def _any_setting(patch: Patch) -> None:
    patch.setattr(plain_config, "_USED_BY", {})


def _any_stored_type(patch: Patch) -> None:
    patch.setattr(event_time.Interval, "require_same_batches", lambda *given: None)


def _any_time_zone(patch: Patch) -> None:
    patch.setattr(microbatch, "refuse_local_time", lambda *given: None)


def retried_batch_is_the_first(patch: Patch) -> None:
    """``dbt retry`` of a full refresh of batches replaces the table by what it runs."""
    patch.setattr(microbatch.MicrobatchApi, "is_later_batch", lambda *given: False)


def _semicolons_inside_statements(patch: Patch) -> None:
    # They are removed at both places: where a query becomes a part of a statement, and in each statement.
    for module in (model_api, keyed_api, microbatch, auto_api):
        patch.setattr(module, "without_end", lambda sql: sql)
    for module in (statement, session):
        patch.setattr(module, "without_inner_ends", lambda sql: sql)


def _arctic_in_packages(patch: Patch) -> None:
    patch.setattr(target_type, "in_package", lambda context: False)


def _times_are_strange(patch: Patch) -> None:
    patch.setattr(adopt, "_SPARK_KNOWS_NOT", ("time", "timestamp", "timestamp_ntz"))


def _replays_by_position(patch: Patch) -> None:
    patch.setattr(replay, "stored_value", lambda value, *types: value)


def any_name_when_parsed(patch: Patch) -> None:
    """A model may have the name of a part of a keyed table, until it runs."""
    patch.setattr(relation, "refuse_reserved_name", lambda model: None)


def plan_that_writes_artifacts(patch: Patch) -> None:
    """``dbt-arctic plan`` takes the place of the run that ``dbt retry`` repeats."""

    class Runner(dbt_invocation.dbtRunner):
        def invoke(self, args: list[str], **settings: Any) -> Any:
            return super().invoke([one for one in args if one != "--no-write-json"], **settings)

    patch.setattr(dbt_invocation, "dbtRunner", Runner)


def catalog_without_tables(patch: Patch) -> None:
    """The first sessions of a new catalog create its tables."""
    patch.setattr(warehouse, "_make_tables", lambda file: None)


_ADDR, _SWAPPED = "struct<city:string,zip:string>", "struct<zip:string,city:string>"
_BERN, _ROME = {"city": "Bern", "zip": "3000"}, {"city": "Rome", "zip": "0100"}
_OLD = rows(_PARTS, (1, 0, 10), (2, 1, 20), (3, None, 30))
_NEW = rows(_PARTS, (1, 0, 11), (2, 1, 21))

MUTANTS: dict[str, Mutant] = {
    "predicates_without_parentheses": Mutant(_predicates("delete+insert", _OR), (_OLD, _NEW), macro=_DELETE),
    "merge_without_predicates": Mutant(_predicates("merge", [_OR]), (_OLD, _NEW), macro=_MERGE),
    "overwrite_of_all_partitions": Mutant(
        Model("", "insert_overwrite", {"partition_by": "part"}),
        (_OLD, rows(_PARTS, (1, 0, 11))),
        macro=_OVERWRITE,
    ),
    "partitions_of_another_setting": Mutant(
        Model("", "insert_overwrite", {"partition_by": "part"}),
        (_OLD, rows(_PARTS, (1, 0, 11))),
        patch=_no_check_of_partitions,
        settings={"partition_by": None},
    ),
    "overwrite_with_files_of_an_older_partitioning": Mutant(
        Model("", "insert_overwrite", {"partition_by": "part"}),
        (_OLD, rows(_PARTS, (1, 0, 11))),
        patch=_no_look_at_files,
        evolved=True,
    ),
    "structs_by_position": Mutant(
        Model("", "append"),
        (rows(f"k int; addr {_ADDR}", (1, _BERN)), rows(f"k int; addr {_SWAPPED}", (2, _ROME))),
        patch=_structs_by_position,
    ),
    "keyed_structs_by_position": Mutant(
        Model("", "upsert", {"unique_key": "k", "buckets": 1}),
        (rows(f"k int; addr {_ADDR}", (1, _BERN)), rows(f"k int; addr {_SWAPPED}", (2, _ROME))),
        patch=_keyed_structs_by_position,
    ),
    "boolean_key_compared_as_boolean": Mutant(
        Model("", "upsert", {"unique_key": "k", "buckets": 1, "merge_update_columns": ["v1"]}),
        (rows("k string; v1 int; v2 int", ("yes", 10, 1)), rows("k boolean; v1 int; v2 int", (True, 20, 2))),
        patch=lambda patch: patch.setattr(batch, "is_cast", lambda produced, stored: False),
    ),
    "late_row_by_position": Mutant(
        Model("", "upsert", {"unique_key": "k", "buckets": 1, "full_refresh": True}),
        (
            rows(f"k int; part int; addr {_ADDR}", (1, 0, _BERN)),
            rows(f"k int; part int; addr {_SWAPPED}", (2, 0, _ROME)),
        ),
        patch=_replays_by_position,
        late=True,
    ),
    "late_row_that_is_rounded": Mutant(
        Model("", "upsert", {"unique_key": "k", "buckets": 1, "full_refresh": True}),
        (
            rows("k int; part int; v1 decimal(8,2)", (1, 0, Decimal("7.25"))),
            rows("k int; part int; v1 decimal(8,1)", (2, 0, Decimal("1.5"))),
        ),
        patch=lambda patch: patch.setattr("dbt_arctic.store.replay.unstorable", lambda *types, fill: []),
        late=True,
    ),
    "adoption_without_times": Mutant(
        Model("", "merge", {"unique_key": "k"}),
        (rows("k int; at timestamp", (1, _NOON)), rows("k int; at timestamp", (2, _NOON))),
        patch=_times_are_strange,
        adopted=True,
    ),
    "package_that_sees_arctic": Mutant(
        Model("", "table", ending=PACKAGED),
        (rows("v1 int", (1,)), rows("v1 int", (2,))),
        patch=_arctic_in_packages,
    ),
    "any_type_into_any_column": Mutant(
        Model("", "keyed_overwrite", {"unique_key": "k", "buckets": 1}),
        (rows("k int; v1 int", (1, 10)), rows("k int; v1 double", (1, 10.75))),
        patch=_any_type,
    ),
    "interval_that_is_only_added_to": Mutant(
        Model("", "microbatch", {"event_time": "at", "batch_size": "day", "begin": "2024-02-01"}),
        (rows("v1 int; at date", (1, _DAY)), rows("v1 int; at date", (2, _DAY))),
        macro=_MICROBATCH,
    ),
    "snapshot_key_that_is_joined_text": Mutant(
        _snapshot(unique_key=["k", "part"], strategy="check", check_cols="all", hard_deletes="ignore"),
        (
            rows("k string; part string", ("a|b", "c"), ("x", None)),
            rows("k string; part string", ("a|b", "c"), ("x", None), ("a", "b|c")),
        ),
        patch=_unsafe_key,
    ),
    "snapshot_ids_of_nested_keys_as_text": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols=["v1"], hard_deletes="ignore"),
        (
            rows(f"k {_ADDR}; v1 int", ({"city": "a, b", "zip": "c"}, 1), ({"city": "a", "zip": "b, c"}, 1)),
            rows(f"k {_ADDR}; v1 int", ({"city": "a, b", "zip": "c"}, 2), ({"city": "a", "zip": "b, c"}, 1)),
        ),
        macro=_HASH,
    ),
    "keys_compared_as_the_query_has_them": Mutant(
        Model("", "merge", {"unique_key": "k"}),
        (rows("k string; v1 int", ("007", 1), ("7", 1)), rows("k int; v1 int", (7, 2))),
        patch=_keys_of_the_query,
    ),
    "snapshot_that_misses_null": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols=["v1"], hard_deletes="invalidate"),
        (rows("k int; v1 int", (1, 10)), rows("k int; v1 int", (1, None))),
        patch=_unsafe_change,
    ),
    "snapshot_with_no_time_for_ever": Mutant(
        _snapshot(unique_key="k", strategy="timestamp", updated_at="at"),
        (rows("k int; at date", (1, None)), rows("k int; at date", (1, _DAY))),
        patch=_older_than_null,
    ),
    "snapshot_with_times_that_are_cut": Mutant(
        _snapshot(unique_key="k", strategy="timestamp", updated_at="day"),
        (rows("k int; day date; at timestamp", (1, _DAY, _NOON)),) * 2,
        patch=_any_type_of_time,
        settings={"updated_at": "at"},
    ),
    "record_with_the_id_of_an_earlier_one": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols=["v1"], updated_at="at"),
        (rows("k int; v1 int; at date", (1, 10, _DAY)), rows("k int; v1 int; at date", (1, 20, _DAY))),
        patch=_ids_of_earlier_records,
    ),
    "record_that_ends_at_null": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols=["v1"], updated_at="at"),
        (rows("k int; v1 int; at date", (1, 10, _DAY)), rows("k int; v1 int; at date", (1, 20, None))),
        patch=_no_end_without_a_time,
    ),
    "current_records_with_another_end": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols="all", dbt_valid_to_current=CURRENT_END),
        (_OLD, _OLD),
        patch=_any_current_end,
        settings={"dbt_valid_to_current": None},
    ),
    "columns_dropped_before_the_rows": Mutant(
        Model("", "merge", {"unique_key": "k", "on_schema_change": "sync_all_columns"}),
        (rows("k int; v1 int; v2 int", (1, 10, 100)), rows("k int; v1 int", (1, 20), (1, 30))),
        patch=_drops_before_rows,
    ),
    "partition_column_of_another_type": Mutant(
        Model("", "table", {"partition_by": "day(at)"}),
        (rows("k int; at date", (1, _DAY)), rows("k int; at timestamp", (1, _NOON))),
        patch=_any_type_of_a_partition_column,
    ),
    "fields_that_are_new_are_left_out": Mutant(
        Model("", "append", {"on_schema_change": "append_new_columns"}),
        (
            rows("k int; box struct<a:int>", (1, {"a": 1})),
            rows("k int; box struct<a:int,b:int>", (2, {"a": 2, "b": 3})),
        ),
        patch=_no_new_fields,
    ),
    "types_of_seeds_by_case": Mutant(
        Model("", "seed", {"column_types": {"ZIP": "string"}}),
        (rows("id bigint; zip string", (1, "00501")), rows("id bigint; zip string", (1, "00501"))),
        patch=_types_of_seeds_by_case,
    ),
    "semicolons_inside_statements": Mutant(
        Model("", "merge", {"unique_key": "k"}, ending=";\n-- the end; of it"),
        (rows("k int; v1 int", (1, 10)), rows("k int; v1 int", (1, 20))),
        patch=_semicolons_inside_statements,
    ),
    "first_statement_of_a_hook": Mutant(
        Model("", "table", hooks_of("first_statement_of_a_hook")),
        (rows("v1 int", (1,)), rows("v1 int", (2,))),
        patch=_first_statement_of_a_hook,
    ),
    "record_of_a_deletion_in_the_type_of_the_query": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols="all", hard_deletes="new_record"),
        (rows("k int; v1 string", (1, "007"), (2, "5")), rows("k int; v1 int", (2, 5))),
        patch=_types_of_the_query,
    ),
    "transform_of_a_column_by_case": Mutant(
        Model("", "insert_overwrite", {"partition_by": "month(at)", "on_schema_change": "fail"}),
        (rows("v1 int; at date", (1, _DAY)), rows("v1 int; at date", (2, _DAY))),
        patch=_transform_by_case,
        contract="v1 int; AT date",
    ),
    "partition_of_a_keyed_table_by_case": Mutant(
        Model(
            "",
            "keyed_overwrite",
            {"unique_key": "k", "partition_by": "part", "on_schema_change": "fail", "buckets": 1},
        ),
        (rows("k int; part int", (1, 0), (2, 1)), rows("k int; part int", (3, 0))),
        patch=_partition_by_case,
        contract="k int; PART int",
    ),
    "setting_without_effect": Mutant(
        Model("", "append", {"merge_exclude_columns": ["v1"]}),
        (rows("k int; v1 int", (1, 10)), rows("k int; v1 int", (2, 20))),
        patch=_any_setting,
    ),
    "columns_of_a_batch_that_is_refused": Mutant(
        Model(
            "",
            "upsert",
            {"unique_key": "k", "on_schema_change": "append_new_columns", "merge_exclude_columns": ["part"]},
        ),
        (rows(_PARTS, (1, 0, 10)), rows("k int; part int; v2 int", (1, 0, 20))),
        patch=_columns_before_checks,
    ),
    "record_of_a_deletion_without_a_lost_column": Mutant(
        _snapshot(unique_key="k", strategy="check", check_cols="all", hard_deletes="new_record"),
        (rows("k int; v1 int; v2 int", (1, 10, 100), (2, 20, 200)), rows("k int; v1 int", (2, 20))),
        macro=_AS_STORED,
    ),
    "contract_with_fields_by_case": Mutant(
        Model("", "table"),
        (rows("box struct<City:int>", ({"City": 1},)), rows("box struct<City:int>", ({"City": 2},))),
        patch=_fields_by_case,
        contract="box struct<city:int>",
    ),
    "local_times_filtered_as_utc": Mutant(
        Model(
            "", "microbatch", {"event_time": "at", "batch_size": "day", "begin": "2024-02-01"}, source="view"
        ),
        (rows("v1 int; at date", (1, _DAY)), rows("v1 int; at date", (2, _DAY))),
        patch=_any_time_zone,
    ),
    "event_time_of_another_type": Mutant(
        Model("", "microbatch", {"event_time": "at", "batch_size": "day", "begin": "2024-02-01"}),
        (rows("v1 int; at timestamp", (1, _NOON)), rows("v1 int; at date", (2, _DAY))),
        patch=_any_stored_type,
    ),
    "view_with_fields_by_position": Mutant(
        Model("", "view", source="table"),
        (
            rows("s struct<a:int,b:int>", ({"a": 1, "b": 2},)),
            rows("s struct<b:int,a:int>", ({"a": 3, "b": 4},)),
        ),
        patch=lambda patch: patch.setattr(view_columns, "_chosen", lambda name, type_, other: quote(name)),
        excluded=True,
    ),
}


def case_of(names: list[str]) -> Case:
    """The models of some mutants in one project, in a session that is not in UTC."""
    models = [replace(MUTANTS[name].model, name=name) for name in names]
    others = {name: given for name in names if (given := MUTANTS[name].settings) is not None}
    rounds = [
        Round(
            {name: MUTANTS[name].rounds[number] for name in names},
            interval=("2024-03-01", "2024-03-02"),
            settings=others if number else {},
            contracts={name: rows(one).columns for name in names if (one := MUTANTS[name].contract)},
            kinds={name: "upsert" for name in names if number and MUTANTS[name].adopted},
            adopted=frozenset(name for name in names if number and MUTANTS[name].adopted),
            evolved=frozenset(name for name in names if number and MUTANTS[name].evolved),
            late=frozenset(name for name in names if MUTANTS[name].late),
            excluded=frozenset(name for name in names if number and MUTANTS[name].excluded),
        )
        for number in range(2)
    ]
    return Case(1, tuple(models), tuple(rounds), zone="Europe/Berlin")


def case_of_retry() -> Case:
    """A full refresh of two batches of which the second fails, ``dbt-arctic plan``, and ``dbt retry``."""
    config = {"event_time": "at", "batch_size": "day", "begin": "2024-02-01"}
    days = rows("v1 int; at date", (1, _DAY), (2, _DAY + dt.timedelta(days=1)))
    build = Round({"days": days})
    refresh = replace(build, full_refresh=True, poisoned=frozenset({"days"}), planned=True)
    again = replace(refresh, verb="retry", poisoned=frozenset(), planned=False)
    return Case(1, (Model("days", "microbatch", config),), (build, refresh, again))


def case_of_reserved_name() -> Case:
    """Another model has the name of the change table of a keyed one, for one round."""
    build = Round({"kept": rows("k int; v1 int", (1, 10))})
    named = Round({"kept": rows("k int; v1 int", (1, 11))}, reserved="kept__change_1")
    model = Model("kept", "upsert", {"unique_key": "k", "buckets": 1})
    return Case(1, (model,), (build, named, replace(named, reserved="")))
