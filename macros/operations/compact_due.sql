{#
  Run the compactions that are due for the project's tables, the most valuable first, within a budget.

      on-run-end: "{{ compact_due(budget='5 minutes') }}"

  shed: true skips it, for example while the load is high: shed=var('shed', false).
#}
{% macro compact_due(budget=none, shed=false) -%}
  {%- if arctic__may_write() -%}
    {%- set models = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type in ('model', 'seed', 'snapshot') -%}
      {%- do models.append({
        'database': node.database, 'schema': node.schema, 'identifier': node.alias,
        'compaction': node.config.get('compaction'), 'buckets': node.config.get('buckets')
      }) -%}
    {%- endfor -%}
    {%- for line in adapter.compact_due(models, budget, shed) -%}
      {%- do log(line, info=true) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}
