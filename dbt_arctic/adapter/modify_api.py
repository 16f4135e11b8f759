"""Macro method that changes rows of a keyed table: a thin method over ``refresh.dml``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt_common.invocation import get_invocation_id

from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.parse_dml import parse_modification

if TYPE_CHECKING:
    from dbt_arctic.adapter.keyed_api import KeyedApi as _Base
else:
    _Base = object


class ModifyApi(_Base, metaclass=AdapterMeta):
    """The method of the adapter for DML on keyed tables."""

    @available.parse(lambda *a, **k: {})
    def keyed_sql(self, sql: str) -> dict[str, Any]:
        """Run an UPDATE, DELETE or MERGE on a keyed table.

        Returns ``table`` and the numbers of rows: ``updated``, ``inserted`` and ``deleted``.
        """
        credentials = self.config.credentials
        with as_dbt_errors():
            parsed = parse_modification(sql)
            defaults = (credentials.database, credentials.schema)
            if len(parsed.target) > 3 or (len(parsed.target) == 3 and parsed.target[0] != defaults[0]):
                raise ConfigError(
                    f"{'.'.join(parsed.target)} is not in the catalog {defaults[0]}",
                    fix="write schema.table, or a ref()",
                )
            parts = (
                (*defaults, parsed.target[-1])
                if len(parsed.target) == 1
                else (
                    defaults[0],
                    *parsed.target[-2:],
                )
            )
            context = self.context(f"{get_invocation_id()}:keyed_sql")
            return asdict(modify(context, Name(*parts), parsed))
