"""An Airflow DAG (Airflow 2.9 or later): a dbt build every 15 minutes, then compaction within a budget."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

PROJECT = "/srv/shop"
BIN = "/srv/shop/.venv/bin"

with DAG(
    dag_id="shop",
    schedule="*/15 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=2)},
) as dag:
    build = BashOperator(
        task_id="build",
        bash_command=f"cd {PROJECT} && {BIN}/dbt build --target prod",
    )
    # Runs after a failed build, too: the tables that were written still need it.
    compact = BashOperator(
        task_id="compact",
        bash_command=f"cd {PROJECT} && {BIN}/dbt-arctic compact --budget 5m --target prod",
        trigger_rule="all_done",
    )
    build >> compact
