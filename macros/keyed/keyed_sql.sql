{#
  UPDATE, DELETE or MERGE on a keyed table, in one commit: in a hook, in a macro or as an operation. Returns
  nothing, so that it can be a hook; the log contains the numbers of rows.

      post_hook="{{ keyed_sql('delete from ' ~ this ~ ' where ordered_at < current_date - 365') }}"
      dbt run-operation keyed_sql --args '{sql: "update shop.orders set status = null where id = 7"}'
#}
{% macro keyed_sql(sql) -%}
  {%- if arctic__may_write() -%}
    {%- set done = adapter.keyed_sql(sql) -%}
    {%- do log(done.table ~ ': ' ~ done.updated ~ ' updated, ' ~ done.inserted ~ ' inserted, ' ~ done.deleted ~ ' deleted', info=true) -%}
  {%- endif -%}
{%- endmacro %}
