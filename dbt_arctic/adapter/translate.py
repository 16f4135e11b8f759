"""Converts ``ArcticError``s to dbt errors.

dbt then reports them as errors of a model and not as a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_arctic.adapter.external_sources import explained
from dbt_arctic.adapter.file_sources import located
from dbt_arctic.adapter.model_error_position import in_model
from dbt_arctic.errors import ArcticError, MalformedFile, StatementError


@contextmanager
def as_dbt_errors() -> Iterator[None]:
    """Raise an ``ArcticError`` as the dbt error with the same text. The original is its cause."""
    try:
        yield
    except StatementError as error:
        explanation = explained(error)
        if explanation is error:
            raise DbtDatabaseError(str(in_model(error))) from error
        raise DbtRuntimeError(str(explanation)) from error
    except MalformedFile as error:
        found = located(error)
        raise DbtRuntimeError(str(found)) from found
    except ArcticError as error:
        raise DbtRuntimeError(str(error)) from error


@contextmanager
def as_own_errors() -> Iterator[None]:
    """Reverse the conversion: unwrap errors that dbt's connection manager has wrapped."""
    try:
        yield
    except DbtRuntimeError as error:
        if isinstance(error.__cause__, ArcticError):
            raise error.__cause__ from error.__cause__.__cause__
        raise
