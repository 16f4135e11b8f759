{#
  A table and a view cannot replace each other in one statement, because they share one namespace. So the
  old relation is renamed to a unique name, the new one takes its name, and then the old one is dropped. A
  crash at any point leaves either the old relation under its name, or no relation under the name and the
  old one renamed. recover_swap, the first step of the next run, restores it. It also completes an
  interrupted adoption of a table as a keyed one.
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

{# Rename a relation of the other kind. Returns the renamed relation, or none. #}
{% macro make_way(relation, wanted) -%}
  {%- set kind = adapter.relation_kind(relation) -%}
  {%- set stored_as = 'table' if kind == 'table' else 'view' -%}
  {%- if kind is none or stored_as == wanted -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set old = relation.incorporate(type=stored_as) -%}
  {%- set aside = old.incorporate(path={'identifier': relation.identifier ~ '__arctic_old_' ~ adapter.swap_suffix()}) -%}
  {%- do arctic__rename_relation(old, aside) -%}
  {{ return(aside) }}
{%- endmacro %}

{% macro drop_aside(aside) -%}
  {%- if aside is not none -%}
    {%- do arctic__drop_relation(aside) -%}
  {%- endif -%}
{%- endmacro %}
