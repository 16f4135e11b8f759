"""YAML and SQL of the how-to pages are read by the code that reads them in a project, and Python is compiled.

Which pages are executed as well: ``docs/explanation/testing.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jinja2
import pytest
import sqlglot
import yaml
from dbt.artifacts.resources import ModelConfig
from dbt.contracts.project import PackageConfig, Project
from sqlglot import exp

from dbt_arctic.adapter.capture_sources import declared_capture
from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.database_sources import database_source
from dbt_arctic.adapter.external_sources import kind_of, source_settings
from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.kafka_sources import kafka_source
from dbt_arctic.adapter.model_config import ArcticConfig
from dbt_arctic.compaction.settings import parse_settings
from dbt_arctic.refresh.config import OWN_SETTINGS, choose_strategy, parse_config, writes_keyed
from dbt_arctic.refresh.foreign_settings import reject_without_effect, settings_without_effect
from dbt_arctic.refresh.history_config import check_history, parse_history
from dbt_arctic.refresh.materializations import is_incremental
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.refresh.plain_config import parse_plain
from dbt_arctic.scheduling.settings import parse_keep
from tests.pages import HOW_TO, Block, blocks, commands_of

FOUND = [block for page in sorted(HOW_TO.glob("*.md")) for block in blocks(page)]
KNOWN = {*OWN_SETTINGS, *ModelConfig.__dataclass_fields__, *ArcticConfig.__dataclass_fields__}
PRE_HOOKS = {"post_hook", "pre_hook"}
VALUES = {"CRM": "postgresql://reader@db:5432/crm", "KAFKA": "broker:9092"}
"""What environment variables contain. Any other is ``x``."""


def of(language: str) -> list[Block]:
    return [block for block in FOUND if block.language == language]


def test_each_language_is_checked() -> None:
    assert {block.language for block in FOUND} == {"", "bash", "console", "python", "sh", "sql", "yaml"}


def rendered(text: str) -> str:
    """The text with the values of its environment variables."""
    environment = jinja2.Environment()
    context = {
        "env_var": lambda name, default="x": VALUES.get(name, default),
        "var": lambda name, default="x": default,
        "target": {"name": "dev"},
        "compact_due": lambda budget=None, shed=False: "",
    }
    return environment.from_string(text).render(context)


def check_yaml(block: Block) -> str:
    """Read a block as its kind of file; returns the kind."""
    content = yaml.safe_load(rendered(block.text))
    if isinstance(content, list):
        assert all(list(commands_of(step["run"])) or "gh pr" in step["run"] for step in content)
        return "workflow"
    if "packages" in content:
        PackageConfig.validate(content)
        return "packages"
    if {"models", "on-run-end", "dispatch"} & {*content}:
        check_project(content)
        return "project"
    if "sources" in content:
        for source in declared(content):
            check_source(source)
        return "sources"
    if all(isinstance(value, Mapping) and "outputs" in value for value in content.values()):
        for profile in content.values():
            for target in profile["outputs"].values():
                check_target(target)
        return "profile"
    return check_part(block, content)


def check_target(target: Mapping[str, Any]) -> None:
    settings = {"schema": "dev", **{name: value for name, value in target.items() if name != "type"}}
    assert target["type"] == "arctic"
    threads = settings.pop("threads", 1)
    assert isinstance(threads, int)
    settings = ArcticCredentials.translate_aliases(settings)
    ArcticCredentials.validate(settings)
    credentials = ArcticCredentials.from_dict(settings)
    assert credentials.databases is not None
    assert credentials.other_catalogs() is not None


def check_project(content: Mapping[str, Any]) -> None:
    hooks = {name: [text] for name, text in content.items() if name == "on-run-end"}
    Project.validate({"name": "shop", "version": "1.0", "config-version": 2, **content, **hooks})
    for project in content.get("models", {}).values():
        check_folder(project)


def check_folder(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if not name.startswith("+"):
            check_folder(value)
            continue
        assert name[1:] in KNOWN, f"{name[1:]} is not a setting"
        if name == "+compaction":
            parse_settings("shop", value)


def declared(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sources of a file, as the adapter sees them."""
    found = []
    for source in content["sources"]:
        of_all = source.get("config", {}).get("meta")
        for table in source["tables"]:
            settings = source_settings(of_all, None, table.get("config", {}).get("meta"))
            assert settings is not None
            name = f"{source['name']}.{table['name']}"
            found.append({"name": name, "where": "models", "settings": settings, "columns": {}})
    return found


def check_source(source: Mapping[str, Any]) -> None:
    kind = kind_of(source)
    if kind == "files":
        file_source(source, None)
    elif kind == "kafka":
        kafka_source(source, {})
    elif kind == "jdbc":
        database_source(source)
    elif kind == "postgres":
        declared_capture(source, {})
    else:
        url = source["settings"]["url"].replace("postgresql", kind)
        declared_capture({**source, "settings": {**source["settings"], "url": url}}, {})


def check_part(block: Block, content: Mapping[str, Any]) -> str:
    """Check some settings: of a table of the page's source, or of the page's target."""
    page = [yaml.safe_load(rendered(one.text)) for one in of("yaml") if one.page == block.page]
    sources = [source for whole in page if "sources" in whole for source in declared(whole)]
    settings = content.get("arctic", content)
    if sources:
        source = sources[0]
        own = {name: value for name, value in source["settings"].items() if name not in ("cursor", "overlap")}
        check_source({**source, "settings": {**own, **settings}})
        return "part of sources"
    check_target({"type": "arctic", **content})
    return "part of a profile"


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_yaml_is_valid(block: Block) -> None:
    assert check_yaml(block)


class Config:
    """dbt's ``config()``, which keeps what a model sets."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {"materialized": "view"}

    def __call__(self, **settings: Any) -> str:
        self.settings.update(settings)
        return ""


def compiled(text: str) -> tuple[str, dict[str, Any]]:
    """The SQL of a model, and its config."""
    config = Config()
    context = {
        "config": config,
        "ref": lambda *names: names[-1],
        "source": lambda *names: ".".join(names),
        "incremental_pull": lambda table, **options: f"{table}__changes",
        "is_incremental": lambda: False,
        "var": lambda name, default="2026-01-01": default,
        "this": "orders",
    }
    sql = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(context)
    return sql, config.settings


def check_model(text: str) -> None:
    sql, settings = compiled(text)
    assert {*settings} <= KNOWN | PRE_HOOKS, {*settings} - KNOWN
    reject_without_effect("orders", settings)
    assert settings_without_effect("orders", settings) == []
    parse_keep("orders", settings)
    if is_incremental(settings):
        if not writes_keyed("orders", settings):
            parse_plain("orders", choose_strategy("orders", settings), settings)
        elif settings.get("incremental_strategy") == "history":
            parse_history("orders", settings)
            parse_config("orders", settings)
        else:
            check_history("orders", settings, choose_strategy("orders", settings))
            parse_config("orders", settings)
    query = "\n".join(line for line in sql.splitlines() if line.strip())
    if query and not query.startswith("--"):
        check_query(query)


def check_query(sql: str) -> None:
    (parsed,) = sqlglot.parse(sql, dialect="spark")
    assert isinstance(parsed, exp.Query), sql


def check_sql(block: Block) -> str:
    if re.search(r"\{%-? *macro ", block.text):
        jinja2.Environment(extensions=["jinja2.ext.do"]).parse(block.text)
        return "macro"
    if "CREATE PUBLICATION" in block.text:
        assert all(sqlglot.parse(block.text, dialect="postgres"))
        return "PostgreSQL"
    if "GRANT " in block.text:
        assert all(sqlglot.parse(block.text, dialect="mysql"))
        return "MariaDB"
    if "MERGE INTO" in block.text:
        assert parse_modification(block.text).verb == "MERGE"
        return "statement"
    check_model(re.sub(r"^-- models/.*$", "", block.text, flags=re.MULTILINE))
    return "model"


@pytest.mark.parametrize("block", of("sql"), ids=str)
def test_sql_is_valid(block: Block) -> None:
    assert check_sql(block)


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shop: {outputs: {dev: {type: arctic, warehous: x}}}", "warehous is not a setting"),
        ("shop: {outputs: {dev: {type: arctic, catalog: {type: hives}}}}", "hives"),
        ("models: {shop: {+compactions: {}}}", "compactions is not a setting"),
        ("models: {shop: {+compaction: {triggers: never}}}", "triggers"),
        (
            "sources: [{name: a, tables: [{name: b, config: {meta: {arctic: {from: files, paths: x}}}}]}]",
            "paths",
        ),
        ("sources: [{name: a, tables: [{name: b, config: {meta: {arctic: {from: folder}}}}]}]", "folder"),
        ("small_datas: true", "small_datas is not a setting"),
    ],
)
def test_a_wrong_setting_in_yaml_is_found(text: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        check_yaml(Block("none.md", 1, "yaml", text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ config(materialized='incremental', unique_keys='id') }} select 1 as id", "unique_keys"),
        ("{{ config(materialized='table', delete_when='x') }} select 1 as id", "delete_when"),
        ("{{ config(materialized='incremental', unique_key='id', buckets='x') }} select 1 as id", "buckets"),
        ("{{ config(materialized='incremental', unique_key='id') }} select from", "."),
        ("MERGE INTO a USING b ON a.i = b.i WHEN MATCHING THEN DELETE", "MATCH"),
        ("select * from {{ sources('a', 'b') }}", "sources"),
    ],
)
def test_wrong_sql_is_found(text: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        check_sql(Block("none.md", 1, "sql", text))
