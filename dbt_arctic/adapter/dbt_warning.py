"""Shows an error of dbt-arctic as a warning of dbt: marked as one, and an error with ``--warn-error``."""

from __future__ import annotations

from dbt.events.types import JinjaLogWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.ui import warning_tag

from dbt_arctic.errors import ArcticError


def emit_warning(problem: ArcticError) -> None:
    """Emit a warning. Without the mark, its code would make it look like an error of the run.

    :raises EventCompilationError: dbt runs with ``--warn-error``.
    """
    warn_or_error(JinjaLogWarning(msg=warning_tag(str(problem))))
