"""What dbt imports as ``dbt.adapters.arctic``: the plugin, and nothing else.

It must not hold logic. ``project_name`` is spelled out because dbt would otherwise take it
from the macros' folder, and then never find the ``arctic__`` macros in an editable install.
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
