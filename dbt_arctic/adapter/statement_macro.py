"""The macro that every statement of a keyed table passes through."""

from __future__ import annotations

from typing import Any

STATEMENT_MACRO = "keyed_statement"
"""The name of the macro, which a project may override."""

_OWN_PACKAGE = "dbt_arctic"


def is_overridden(resolver: Any) -> bool:
    """Whether a project or another package has a macro of that name, with or without an adapter's prefix.

    Otherwise the macro returns the statement unchanged and is not called: for each call, dbt builds a context
    of all macros of the project.

    :param resolver: dbt's manifest, or ``None`` if no project was parsed.
    """
    macros = {} if resolver is None else resolver.macros
    return any(
        macro.name.endswith(STATEMENT_MACRO) and macro.package_name != _OWN_PACKAGE
        for macro in macros.values()
    )
