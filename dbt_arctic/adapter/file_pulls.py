"""Pulls from sources whose rows are in files, for macros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.pulls import where_it_fails
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.refresh.event_time import refuse_pull
from dbt_arctic.sources.file_list import file_list_name, last_list
from dbt_arctic.sources.pull import Purpose, plan_file_pull

logger = AdapterLogger("Arctic")


class FilePulls(KeyedApi):
    """The methods of the adapter that pull files of a folder."""

    @available.parse(lambda *a, **k: "")
    def pull_files(
        self,
        relation: ArcticRelation,
        this: ArcticRelation,
        model: Mapping[str, Any],
        first_run: bool,
        purpose: Purpose,
    ) -> str:
        """SQL of the rows of files that this model has not read; remembered for its commit.

        :param relation: a source with ``external``.
        """
        assert relation.external is not None
        unique_id, pulls, target = model["unique_id"], self._pulls(), this.name_parts
        is_consuming = purpose == "consume"
        with as_dbt_errors(), where_it_fails(lambda: self.post_model_hook({}, None)):
            refuse_pull(model)
            source = file_source(relation.external, getattr(self.config, "project_root", None))
            name = file_list_name(target, source.name)
            earlier = pulls.find(unique_id, name) if is_consuming else []
            if earlier:
                return earlier[0].sql
            begun = pulls.begun_from(unique_id) if is_consuming else None
            expected = begun if begun is not None else {} if first_run else self._consumed(target)
            last = last_list(self.catalog, name, source.name, expected)
            planned = plan_file_pull(
                self.context(), self._handle, source, name, last, model=model["name"], purpose=purpose
            )
            if is_consuming:
                pulls.add(unique_id, expected, planned, None if last is None else last[1])
                if last is None and not planned.stage:
                    logger.warning(f"The source {source.name} has no files in {source.path} yet.")
        return planned.sql


__all__ = ["FilePulls"]
