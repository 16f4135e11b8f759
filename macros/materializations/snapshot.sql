{#
  A snapshot: the first run creates the table, and every other run is a MERGE of the changes that dbt's
  snapshot_staging_table finds. The MERGE writes to a branch that is published only if no other run has changed
  rows since before the query was run: two concurrent runs cannot both add the same change, and an older state
  cannot follow a newer one.
#}
{% materialization snapshot, adapter='arctic' -%}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set grant_config = config.get('grants') -%}
  {%- do recover_swap(this) -%}
  {%- set kind = adapter.relation_kind(this) -%}
  {%- if kind in ('view', 'keyed') -%}
    {%- do exceptions.relation_wrong_type(this.incorporate(type='view'), 'table', model) -%}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- if kind == 'clone' -%}
    {%- do arctic__own_the_clone(target_relation, false) -%}
  {%- endif -%}
  {%- set first_relation = arctic__first_relation(target_relation, kind, pre_hooks) -%}
  {%- do adapter.apply_properties(this, model, kind) -%}

  {%- set snapshot_sql = adapter.without_end(model['compiled_code']) -%}
  {#- the query may depend on what it sets or creates -#}
  {%- do arctic__run_sql_header() -%}
  {%- set strategy_macro = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = strategy_macro(model, 'snapshotted_data', 'source_data', model['config'], kind is not none) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- if kind is not none -%}
    {%- do adapter.keep_current_end(target_relation, model, columns.dbt_valid_to, config.get('dbt_valid_to_current')) -%}
  {%- endif -%}
  {%- set queried = adapter.get_column_schema_from_query(snapshot_sql) -%}
  {%- set strategy = arctic__with_quoted_columns(strategy, queried) -%}
  {%- if kind is not none -%}
    {%- set warning = adapter.check_snapshot_partitions(model, target_relation) -%}
    {%- if warning -%}
      {%- do exceptions.warn(warning) -%}
    {%- endif -%}
    {%- set values = adapter.evolve_snapshot(queried, target_relation, model, strategy, columns, snapshot_sql) -%}
    {%- set produced = queried | map(attribute='name') | map('lower') | list -%}
  {%- endif -%}
  {%- set staged = adapter.stage_snapshot(this, snapshot_sql, queried, model) -%}
  {%- set snapshot_sql = staged.sql -%}
  {%- if kind is not none -%}
    {%- set snapshot_sql = arctic__as_stored(snapshot_sql, queried, values, target_relation, strategy.updated_at) -%}
    {%- set queried = adapter.get_column_schema_from_query(snapshot_sql) -%}
  {%- endif -%}
  {%- do model.update({'arctic_time_type': adapter.snapshot_time_type(
      model, strategy, snapshot_sql, queried, none if kind is none else target_relation, columns.dbt_valid_from)}) -%}
  {%- set compared = [] -%}
  {%- for column in queried if kind is none or column.name | lower in produced -%}
    {%- do compared.append(column) -%}
  {%- endfor -%}
  {%- set strategy = adapter.snapshot_strategy(strategy, model, columns, compared, none if kind is none else target_relation) -%}
  {%- if kind is none -%}
    {%- set rows_sql = build_snapshot_table(strategy, snapshot_sql) -%}
    {%- do check_time_data_types(rows_sql) -%}
    {%- set build_sql = get_create_table_as_sql(
        False, first_relation, adapter.unique_rows(rows_sql, snapshot_sql, model, queried)) -%}
    {%- do write(build_sql) -%}
    {%- set response = adapter.create_snapshot(first_relation, model, build_sql) -%}
  {%- else -%}
    {%- set response = arctic__merge_snapshot(strategy, target_relation, queried, snapshot_sql, staged) -%}
  {%- endif -%}
  {%- do store_result('main', response=response, agate_table=none) -%}

  {%- do apply_grants(target_relation, grant_config, should_revoke=should_revoke(kind, full_refresh_mode=False)) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{#- The time of a run in the type of the other times: Spark would convert those that are next to it. -#}
{% macro arctic__snapshot_get_time() -%}
  {%- set type = model.get('arctic_time_type') -%}
  {{ 'cast(current_timestamp() as ' ~ type ~ ')' if type else current_timestamp() }}
{%- endmacro %}

{#-
  dbt inserts unique_key and updated_at into SQL as they are: a column is quoted, an expression is not. A
  project may have a strategy macro with ids of its own, which stay.
-#}
{% macro arctic__with_quoted_columns(strategy, queried) -%}
  {%- set quoted = adapter.snapshot_columns(strategy, queried) -%}
  {%- if config.get('strategy') in ('check', 'timestamp') and quoted -%}
    {%- if strategy.scd_id == arctic__scd_id(strategy) -%}
      {%- do quoted.update(scd_id=arctic__scd_id(quoted)) -%}
    {%- endif -%}
    {{ return(dict(strategy, **quoted)) }}
  {%- endif -%}
  {{ return(strategy) }}
{%- endmacro %}

{% macro arctic__scd_id(strategy) -%}
  {{ return(snapshot_hash_arguments(api.Relation.scd_args(strategy.unique_key, strategy.updated_at))) }}
{%- endmacro %}

{% macro arctic__merge_snapshot(strategy, target_relation, queried, snapshot_sql, staged) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {#- dbt looks for this name among names in lower case -#}
  {%- do adapter.assert_valid_snapshot_target_given_strategy(
      target_relation, dict(columns, dbt_is_deleted=columns.dbt_is_deleted | lower), strategy) -%}
  {%- set rows_sql = snapshot_staging_table(strategy, snapshot_sql, target_relation) -%}
  {%- if strategy.hard_deletes == 'new_record' -%}
    {%- set rows_sql = adapter.known_deletions(rows_sql, columns.dbt_is_deleted) -%}
  {%- endif -%}
  {%- do check_time_data_types(rows_sql) -%}
  {%- if arctic__is_partial() and strategy.hard_deletes in ('invalidate', 'new_record') -%}
    {#- a key that a part of the upstreams lacks may still be there -#}
    {%- set rows_sql = adapter.without_deletions(rows_sql, columns.dbt_is_deleted if strategy.hard_deletes == 'new_record' else none) -%}
  {%- endif -%}
  {%- if config.get('updated_at') -%}
    {%- set other_id = snapshot_hash_arguments([columns.dbt_scd_id, snapshot_get_time()]) -%}
    {%- set rows_sql = adapter.ended_rows(rows_sql, target_relation, columns.dbt_valid_to, snapshot_get_time()) -%}
    {%- set rows_sql = adapter.unique_ids(rows_sql, target_relation, columns.dbt_scd_id, other_id) -%}
  {%- endif -%}
  {%- set changes = make_temp_relation(this, '__dbt_tmp') -%}
  {%- call statement('stage') -%}
    {{ arctic__create_temporary_view(changes, adapter.unique_rows(rows_sql, snapshot_sql, model, queried)) }}
  {%- endcall -%}

  {%- set not_stored = ['dbt_change_type', 'dbt_unique_key'] -%}
  {%- set stored = adapter.get_columns_in_relation(changes) | rejectattr('name', 'in', not_stored) | list -%}
  {%- set existing = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | map('lower') | list -%}
  {%- set added = [] -%}
  {%- for column in stored if column.name | lower not in existing -%}
    {%- do added.append(column) -%}
  {%- endfor -%}
  {%- do arctic__alter_relation_add_remove_columns(target_relation, added, none) -%}

  {%- set write_to = adapter.begin_plain_write(target_relation, model, 2, staged) -%}
  {%- set merge_sql = snapshot_merge_sql(
      target=target_relation.on_branch(write_to.branch), source=changes,
      insert_cols=stored | map(attribute='quoted') | list) -%}
  {%- do write(merge_sql) -%}
  {{ return(adapter.execute_plain_write(write_to, model, [merge_sql])) }}
{%- endmacro %}

{#-
  The query with its columns in the shape of the snapshot's. For the record of a deletion, dbt looks columns
  up case-sensitively and omits those that the query does not return. So the query gets the snapshot's other
  columns as NULL, and the record of a deletion keeps their values.
-#}
{% macro arctic__as_stored(sql, queried, values, target_relation, updated_at) -%}
  {%- set stored = {} -%}
  {%- set selected = [] -%}
  {%- set differing = [] -%}
  {%- if config.get('hard_deletes') == 'new_record' -%}
    {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
    {%- set there = (names.values() | list + queried | map(attribute='name') | list) | map('lower') | list -%}
    {%- for column in adapter.get_columns_in_relation(target_relation) -%}
      {%- do stored.update({column.name | lower: column.quoted}) -%}
      {%- if column.name | lower not in there -%}
        {%- do selected.append('cast(null as ' ~ column.dtype ~ ') as ' ~ column.quoted) -%}
        {%- do differing.append(column.quoted) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if differing and config.get('updated_at') -%}
      {#- an error if the query lacks it: it must not find one of the NULLs -#}
      {%- do adapter.get_column_schema_from_query(
          'select ' ~ updated_at ~ ' from (\n' ~ sql ~ '\n) as source_data') -%}
    {%- endif -%}
  {%- endif -%}
  {%- for column in queried -%}
    {%- set value = values.get(column.name | lower, column.quoted) -%}
    {%- set name = stored.get(column.name | lower, column.quoted) -%}
    {%- do selected.append(value ~ ' as ' ~ name) -%}
    {%- if value != name -%}
      {%- do differing.append(name) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return('select ' ~ selected | join(', ') ~ ' from (\n' ~ sql ~ '\n) as arctic_stored' if differing else sql) }}
{%- endmacro %}

{#- dbt-spark's macro ends with a semicolon, and inserts with `*` -#}
{% macro arctic__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ return(default__snapshot_merge_sql(target, source, insert_cols)) }}
{%- endmacro %}

{#- The table is not read here: snapshot_strategy compares columns of all types, with case-insensitive names -#}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {{ return((true, [])) }}
{%- endmacro %}

{#
  Like dbt-spark's macro, but distinguishes rows that would get the same id: NULL and '', `a|b` in one part
  and `a`, `b` in two, `a, b` in one field or element and `a`, `b` in two, and the hour that repeats at the
  end of summer time, if the session has such a time zone. Other ids are unchanged.
-#}
{% macro arctic__snapshot_hash_arguments(args) -%}
  {#- the time of the run in full: one that is a date would give two runs of a day the same id -#}
  {%- set now = snapshot_get_time() -%}
  md5(
  {%- for arg in args -%}
    {%- set arg = current_timestamp() if arg == now else arg -%}
    {%- set text -%}
      if(typeof({{ arg }}) rlike '^(struct|array|map)<' or (contains(typeof({{ arg }}), 'timestamp') and typeof({{ arg }}) <> 'timestamp_ntz' and current_timezone() <> 'UTC'), to_json(struct({{ arg }} as at), {{ adapter.exact_json_options() }}), cast({{ arg }} as string))
    {%- endset -%}
    coalesce(replace(replace({{ text }}, '\\', '\\\\'), '|', '\\|'), '\\N'){{ " || '|' || " if not loop.last }}
  {%- endfor -%}
  )
{%- endmacro %}
