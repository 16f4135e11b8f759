{#
  Writes what a reader of each seed, model and snapshot sees now into Parquet files, one folder a
  relation, so that something else than Spark can look at it:

    dbt run-operation export_relations --args '{folder: /tmp/shop}'
#}
{% macro export_relations(folder) %}
    {% do run_query("SET spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS") %}
    {% for node in graph.nodes.values()
        if node.resource_type in ('seed', 'model', 'snapshot') and node.config.materialized != 'ephemeral' %}
        {% do run_query(
            "INSERT OVERWRITE DIRECTORY '" ~ folder ~ "/" ~ node.name ~ "' USING parquet SELECT * FROM "
            ~ api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)
        ) %}
        {% do log('read ' ~ node.name, info=true) %}
    {% endfor %}
{% endmacro %}
