{#
  A table and a view cannot replace each other in one statement, because they share one namespace. Nor can a
  table be replaced if the names of its partition fields would be ambiguous or their columns would have another
  type (adapter.is_replaceable), or by one of an older format version. So the old relation is renamed to a
  unique name, the new one takes its name, and then the old one is dropped. A crash at any point leaves either
  the old relation under its name, or no relation under the name and the old one renamed. recover_swap, the
  first step of the next run, restores it. It also completes an interrupted adoption of a table as a keyed one.
#}

{% macro recover_swap(relation) -%}
  {%- do adapter.finish_adoption(relation) -%}
  {%- for left in adapter.set_aside(relation) -%}
    {%- if adapter.relation_kind(relation) is none -%}
      {%- do log('Recovering ' ~ relation ~ ' from ' ~ left ~ ', which an interrupted run set aside') -%}
      {%- do arctic__rename_relation(left, relation) -%}
    {%- else -%}
      {%- do arctic__drop_relation(left) -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{# The relation as which a table is built: itself, or a new one for arctic__put_in_place. #}
{% macro arctic__relation_to_build(relation, sql) -%}
  {%- set kind = adapter.relation_kind(relation) -%}
  {{ return(relation if kind is none or (kind == 'table' and arctic__is_replaceable(relation, sql)) else arctic__new_relation(relation)) }}
{%- endmacro %}

{#
  A table that is built for the first time: as a new one if nothing had its name when the run began. A pre-hook
  may have created it, and then it is replaced.
#}
{% macro arctic__first_relation(relation, kind, pre_hooks) -%}
  {{ return(relation.as_new(kind is none and (not pre_hooks or adapter.relation_kind(relation) is none))) }}
{%- endmacro %}

{% macro arctic__new_relation(relation) -%}
  {{ return(relation.incorporate(path={'identifier': relation.identifier ~ '__arctic_new_' ~ adapter.swap_suffix()})) }}
{%- endmacro %}

{% macro arctic__is_replaceable(relation, sql) -%}
  {%- if adapter.gets_older_format(relation, model) -%}
    {{ return(false) }}
  {%- endif -%}
  {%- if not config.get('partition_by') and not adapter.was_partitioned(relation) -%}
    {{ return(true) }}
  {%- endif -%}
  {%- set header = arctic__run_sql_header() -%}
  {%- set analyzed = none if header | trim else arctic__contracted(sql) -%}
  {{ return(adapter.is_replaceable(relation, config.get('partition_by'), analyzed, model.name)) }}
{%- endmacro %}

{# Give a table that was built as another relation its name. #}
{% macro arctic__put_in_place(built, relation) -%}
  {%- if built.identifier != relation.identifier -%}
    {%- set aside = arctic__set_aside(relation, adapter.relation_kind(relation)) -%}
    {%- do arctic__rename_relation(built, relation) -%}
    {%- do drop_aside(aside) -%}
  {%- endif -%}
{%- endmacro %}

{# Rename a relation of the other kind. Returns the renamed relation, or none. #}
{% macro make_way(relation, wanted) -%}
  {%- set kind = adapter.relation_kind(relation) -%}
  {{ return(none if ('table' if kind == 'table' else 'view') == wanted else arctic__set_aside(relation, kind)) }}
{%- endmacro %}

{# Rename a relation. Returns the renamed relation; none if there was none. #}
{% macro arctic__set_aside(relation, kind) -%}
  {%- if kind is none -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set old = relation.incorporate(type='table' if kind == 'table' else 'view') -%}
  {%- set aside = old.incorporate(path={'identifier': relation.identifier ~ '__arctic_old_' ~ adapter.swap_suffix()}) -%}
  {%- do arctic__rename_relation(old, aside) -%}
  {{ return(aside) }}
{%- endmacro %}

{% macro drop_aside(aside) -%}
  {%- if aside is not none -%}
    {%- do arctic__drop_relation(aside) -%}
  {%- endif -%}
{%- endmacro %}
