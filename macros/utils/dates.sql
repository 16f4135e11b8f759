{#-
  Adds and subtracts dates with Spark's functions. dbt-spark's macros count seconds since 1970: they lose
  fractions of a second, treat `n - 1` weeks as n - 7 days, and round up fractions. Here, fractions of hours and
  smaller units may be added.
-#}
{% macro arctic__dateadd(datepart, interval, from_date_or_timestamp) -%}
  {%- set unit = datepart | lower -%}
  {%- set microseconds = {'hour': '3600000000L', 'minute': '60000000L', 'second': '1000000L', 'millisecond': '1000L'} -%}
  {%- if unit in microseconds -%}
    dateadd(microsecond, cast(({{ interval }}) * {{ microseconds[unit] }} as bigint), cast({{ from_date_or_timestamp }} as timestamp))
  {%- elif unit == 'week' -%}
    dateadd(day, cast(({{ interval }}) * 7 as bigint), cast({{ from_date_or_timestamp }} as timestamp))
  {%- else -%}
    dateadd({{ datepart }}, cast(({{ interval }}) as bigint), cast({{ from_date_or_timestamp }} as timestamp))
  {%- endif -%}
{%- endmacro %}

{#- The number of boundaries between the two; a week begins on Sunday, as in dbt's other adapters -#}
{% macro arctic__datediff(first_date, second_date, datepart) -%}
  {%- set first, second = ('cast(' ~ first_date ~ ' as timestamp)', 'cast(' ~ second_date ~ ' as timestamp)') -%}
  {%- if datepart | lower == 'week' -%}
    {#- 4 January 1970 was a Sunday -#}
    (floor(datediff({{ second }}, date'1970-01-04') / 7) - floor(datediff({{ first }}, date'1970-01-04') / 7))
  {%- else -%}
    timestampdiff({{ datepart }}, date_trunc('{{ datepart }}', {{ first }}), date_trunc('{{ datepart }}', {{ second }}))
  {%- endif -%}
{%- endmacro %}
