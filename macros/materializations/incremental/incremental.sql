{# An incremental model: the order of its steps, for keyed and plain tables. #}
{% materialization incremental, adapter='arctic', supported_languages=['sql', 'python'] -%}
  {#- a materialized view has done both before it runs this; dbt runs Python only in a materialization itself -#}
  {%- if model.config.materialized != 'materialized_view' -%}
    {%- do adapter.check_config(model) -%}
    {%- do recover_swap(this) -%}
  {%- endif -%}
  {%- set strategy = adapter.incremental_strategy(model) -%}
  {%- set keyed = adapter.writes_keyed(model) -%}
  {%- set plain = none if keyed else adapter.plain_config(model, strategy) -%}
  {%- if strategy not in ('upsert', 'auto', 'history') -%}
    {#- an unknown strategy is already an error on the first run -#}
    {%- do adapter.get_incremental_strategy_macro(context, strategy) -%}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='materialized_view' if model.config.materialized == 'materialized_view' else 'table') -%}
  {%- set grant_config = config.get('grants') -%}
  {#- only a materialized view, or a model that was one, has a mark to change -#}
  {%- set existing = load_cached_relation(this) -%}
  {%- set marks = model.config.materialized == 'materialized_view' or (existing is not none and existing.is_materialized_view) -%}
  {%- set kind = adapter.relation_kind(this) -%}
  {%- do adapter.require_form(model, kind, keyed, arctic__is_partial() and not should_full_refresh()) -%}
  {%- set sample = invocation_args_dict.get('sample') -%}
  {%- set full_refresh = (should_full_refresh() or adapter.is_rebuilt(model))
      and not adapter.is_later_batch(model, sample.start if sample else invocation_args_dict.get('event_time_start')) -%}
  {%- set rebuild = full_refresh or kind not in ('keyed' if keyed else 'table', 'clone') -%}
  {%- if keyed and rebuild -%}
    {%- do adapter.require_views(this, model, 'a keyed table') -%}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- set first_relation = arctic__first_relation(target_relation, kind, pre_hooks) -%}

  {%- set compiled = namespace(code=compiled_code) -%}
  {%- set reason = none -%}
  {%- if not rebuild and adapter.was_part(model) -%}
    {%- set reason = 'it was written with --empty or --sample' -%}
  {%- elif not rebuild and adapter.has_other_columns(this, model, compiled_code, arctic__is_partial()) -%}
    {#- on_schema_change is full_refresh -#}
    {%- set reason = 'the columns of its model have changed' -%}
  {%- endif -%}
  {%- if reason -%}
    {#- from here on, as with --full-refresh -#}
    {%- do log('Rebuilding ' ~ this ~ ', because ' ~ reason, info=true) -%}
    {%- set compiled.code = adapter.code_of_rebuild(model) -%}
    {%- set full_refresh = true -%}
    {%- set rebuild = true -%}
  {%- endif -%}

  {%- if not rebuild and (adapter.keeps_table(model) or (
      arctic__is_partial() and not should_full_refresh() and adapter.keeps_batch(this, model, sample))) -%}
    {#- the query is only analysed, so that a mistake in it is found -#}
    {%- set header = arctic__run_sql_header() -%}
    {%- do adapter.get_column_schema_from_query(header ~ '\n' ~ adapter.without_end(compiled_code)) -%}
    {%- if config.get('contract').enforced -%}
      {%- do get_assert_columns_equivalent(compiled_code) -%}
    {%- endif -%}
    {%- call noop_statement('main', 'SKIP (--empty and --sample read a part)', 'SKIP', 0) -%}
      -- nothing was written: no later run would correct the rows of {{ this }} that a part of its upstreams changes
    {%- endcall -%}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}

  {%- if not rebuild and adapter.nothing_to_pull(this, model) -%}
    {#- no upstream has changed since the last commit, so nothing is run or written -#}
    {%- call noop_statement('main', 'SKIP (no upstream change)', 'SKIP', 0) -%}
      -- nothing to do: no upstream of {{ this }} has changed since its last commit
    {%- endcall -%}
    {%- do persist_docs(target_relation, model) if kind != 'clone' -%}
    {%- do adapter.apply_indexes(target_relation, model) if keyed and config.get('indexes') and kind != 'clone' -%}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {%- do adapter.require_pull(model, arctic__is_partial()) -%}

  {%- if kind == 'clone' and not rebuild -%}
    {%- do arctic__own_the_clone(target_relation, keyed) -%}
    {%- set kind = 'keyed' if keyed else 'table' -%}
  {%- endif -%}
  {%- if model.language == 'python' -%}
    {#- dbt allows this only in a materialization: the DataFrame becomes a view, and the rest is SQL -#}
    {%- call statement('python_model', language='python') -%}{{ compiled_code }}{%- endcall -%}
  {%- endif -%}
  {%- set model_sql = adapter.python_model_sql(model) if model.language == 'python' else compiled.code -%}
  {%- if strategy == 'microbatch' -%}
    {#- the interval is compared with a column of the model's SQL, which may depend on its header -#}
    {%- do arctic__run_sql_header() -%}
  {%- endif -%}
  {%- set model_sql = adapter.batch_sql(this, model, model_sql, kind, full_refresh, graph) -%}

  {%- if keyed -%}
    {%- do adapter.check_indexes(model, model_sql) -%}
  {%- endif -%}
  {%- if not (keyed and rebuild) -%}
    {%- do adapter.apply_properties(this, model, kind, rebuild) -%}
  {%- endif -%}
  {%- if keyed -%}
    {%- set response = arctic__refresh_keyed(target_relation, model_sql, rebuild) -%}
    {%- if marks -%}
      {%- do adapter.mark_materialized(target_relation, model) -%}
    {%- endif -%}
    {%- do adapter.trim_when_due(target_relation, model) -%}
    {%- do adapter.apply_indexes(target_relation, model) -%}
  {%- elif rebuild -%}
    {%- set response = arctic__build_plain(first_relation, model_sql, plain) -%}
  {%- else -%}
    {%- set response = arctic__refresh_plain(plain, target_relation, model_sql) -%}
  {%- endif -%}
  {%- do store_result('main', response=response, agate_table=none) -%}
  {%- if response.rows_affected != 0 -%}
    {%- do adapter.warn_of_many_files(target_relation, model) -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, grant_config, should_revoke=should_revoke(kind, rebuild)) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{# Whether a run reads only a part of its upstreams. #}
{% macro arctic__is_partial() -%}
  {{ return(flags.EMPTY or (invocation_args_dict.get('sample') is not none)) }}
{%- endmacro %}

{# A keyed table: a new generation, or one commit to the change table. #}
{% macro arctic__refresh_keyed(target_relation, compiled_code, rebuild) -%}
  {%- set compiled_code = arctic__run_sql_header() ~ '\n' ~ compiled_code if config.get('sql_header') else compiled_code -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(compiled_code) -%}
  {%- endif -%}
  {%- do write(compiled_code) -%}
  {%- if adapter.incremental_strategy(model) == 'auto' -%}
    {%- set response = adapter.refresh_auto(target_relation, model, compiled_code, rebuild, graph, arctic__is_partial(), selected_resources) -%}
  {%- elif adapter.incremental_strategy(model) == 'history' -%}
    {%- set response = adapter.refresh_history(target_relation, model, compiled_code, rebuild) -%}
  {%- else -%}
    {%- set response = adapter.refresh_keyed(target_relation, model, compiled_code, rebuild) -%}
  {%- endif -%}
  {%- do write(response.statement) -%}
  {{ return(response) }}
{%- endmacro %}

{# First build and full refresh of a plain table, in one atomic statement. #}
{% macro arctic__build_plain(target_relation, compiled_code, plain) -%}
  {%- if plain.named_columns or plain.predicates -%}
    {%- do arctic__run_sql_header() -%}
    {%- set columns = adapter.get_column_schema_from_query(
        'SELECT * FROM (\n' ~ adapter.without_end(compiled_code) ~ '\n)') -%}
    {%- do adapter.check_plain_model(plain, columns) -%}
    {%- do adapter.check_predicates(plain, columns, target_relation) -%}
  {%- endif -%}
  {%- set built = target_relation if target_relation.is_new else arctic__relation_to_build(target_relation, compiled_code) -%}
  {%- set statement_sql = get_create_table_as_sql(False, built, compiled_code) -%}
  {%- do write(statement_sql) -%}
  {%- set response = adapter.execute_first_build(model, statement_sql, built) -%}
  {%- do arctic__put_in_place(built, target_relation) -%}
  {{ return(response) }}
{%- endmacro %}

{# A run of a plain incremental table. #}
{% macro arctic__refresh_plain(plain, target_relation, compiled_code) -%}
  {%- set strategy = plain.strategy -%}
  {%- set warning = adapter.check_partitions(plain, target_relation) -%}
  {%- if warning -%}
    {%- do exceptions.warn(warning) -%}
  {%- endif -%}
  {%- set on_schema_change = config.get('on_schema_change') -%}
  {#- with full_refresh, the columns are those of the table; otherwise it would have been rebuilt -#}
  {%- set on_schema_change = 'ignore' if on_schema_change == 'full_refresh'
      else incremental_validate_on_schema_change(on_schema_change, default='ignore') -%}
  {%- set source_relation = make_temp_relation(this, '__dbt_tmp') -%}
  {%- set header = arctic__run_sql_header() -%}
  {%- set stored = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | list if config.get('contract').enforced -%}
  {%- set contracted = arctic__contracted(compiled_code, stored) -%}
  {%- call statement('create_source') -%}
    {{ header }} {{ arctic__create_temporary_view(source_relation, contracted) }}
  {%- endcall -%}
  {#- analysed once: a large query takes long -#}
  {%- set batch_columns = adapter.get_columns_in_relation(source_relation) -%}
  {%- do adapter.check_plain_model(plain, batch_columns) -%}
  {%- set batch = adapter.evolve_plain(on_schema_change, batch_columns, target_relation, plain, context) -%}
  {#- what is to be dropped still exists: dbt's macro would drop it before the rows are written -#}
  {%- set dest_columns = process_schema_changes(
      'append_new_columns' if batch.changed.dropped else on_schema_change, source_relation, target_relation) -%}
  {%- if not dest_columns -%}
    {%- set dest_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- endif -%}
  {%- if strategy == 'microbatch' -%}
    {%- set response = arctic__replace_rows(target_relation, source_relation, dest_columns, batch.values) -%}
    {%- do adapter.drop_columns(target_relation, model, batch) -%}
    {{ return(response) }}
  {%- endif -%}
  {%- set staged = none -%}
  {%- if strategy == 'delete+insert' -%}
    {%- set staged = adapter.stage_batch(this, source_relation | string, batch_columns) -%}
    {%- set source_relation = this.incorporate(path={'identifier': staged.name.identifier}) -%}
  {%- endif -%}
  {%- set write_to = adapter.begin_plain_write(target_relation, model, 2 if staged else 1, staged) -%}
  {%- set statements = arctic__incremental_statements(strategy, {
      'target_relation': target_relation.on_branch(write_to.branch),
      'temp_relation': source_relation,
      'batch_columns': batch_columns,
      'unique_key': config.get('unique_key'),
      'dest_columns': dest_columns,
      'values': batch.values,
      'incremental_predicates': plain.predicates | list or none,
  }) -%}
  {%- do write(statements | join(';\n')) -%}
  {%- set response = adapter.execute_plain_write(write_to, model, statements) -%}
  {%- do adapter.drop_columns(target_relation, model, batch) -%}
  {{ return(response) }}
{%- endmacro %}

{# One batch of a plain microbatch table: its interval is replaced, directly or on a branch. #}
{% macro arctic__replace_rows(target_relation, source_relation, dest_columns, values) -%}
  {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- set write_to = adapter.begin_plain_write(target_relation, model, 2) -%}
  {%- set arguments = {
      'target_relation': target_relation,
      'temp_relation': source_relation,
      'target_columns': target_columns,
      'dest_columns': dest_columns,
      'values': values,
      'condition': adapter.batch_condition(model, target_columns),
  } -%}
  {%- set on_branch = dict(arguments, target_relation=target_relation.on_branch(write_to.branch)) -%}
  {%- set direct = get_incremental_microbatch_sql(arguments) | trim -%}
  {%- do write(direct) -%}
  {{ return(adapter.replace_rows(write_to, model, direct, arctic__delete_interval_sql(arguments),
      [arctic__delete_interval_sql(on_branch), arctic__insert_sql(on_branch)])) }}
{%- endmacro %}
