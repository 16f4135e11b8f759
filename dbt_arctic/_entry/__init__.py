"""The plugin that dbt imports as ``dbt.adapters.arctic``.

It must not contain logic. ``project_name`` is set explicitly, because dbt would otherwise derive it from the
folder of the macros, and would then not find the ``arctic__`` macros in an editable install.
"""

from __future__ import annotations

from dbt.adapters.base import AdapterPlugin
from dbt.include import arctic

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.impl import ArcticAdapter

Plugin = AdapterPlugin(
    adapter=ArcticAdapter,
    credentials=ArcticCredentials,
    include_path=arctic.PACKAGE_PATH,
    dependencies=["spark"],
    project_name="dbt_arctic",
)
