"""Every error a user can meet, one class a kind, each with a stable ``AR-`` code.

This module knows nothing of dbt, Spark or Iceberg; the adapter turns these errors
into dbt's own so that dbt prints them as it prints its own.
"""

from __future__ import annotations

from typing import ClassVar

from dbt_arctic.secret import without_secrets


class ArcticError(Exception):
    """An error that says what happened, where, why, and what to do next.

    :param what: one sentence: what could not be done.
    :param where: the model, table, column or file, if there is one.
    :param why: the cause, as far as it is known.
    :param fix: the next thing to type or to change.
    """

    code: ClassVar[str] = "AR-000"
    title: ClassVar[str] = "dbt-arctic error"

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        # What others said may quote a password.
        self.what = without_secrets(what)
        self.where = without_secrets(where)
        self.why = without_secrets(why)
        self.fix = without_secrets(fix)
        super().__init__(self.render())

    def render(self) -> str:
        """The text a user reads, one aspect a line."""
        lines = [f"{self.code} {self.what}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.why:
            lines.append(f"  why:   {self.why}")
        if self.fix:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


# 1xx: the machine and the profile


class ProfileError(ArcticError):
    code = "AR-101"
    title = "The profile has a wrong or missing setting"


class JavaError(ArcticError):
    code = "AR-102"
    title = "Java is missing or of a wrong version"


class DependencyError(ArcticError):
    code = "AR-103"
    title = "Spark's jars could not be had from the Maven repository"


class CatalogUnavailable(ArcticError):
    code = "AR-104"
    title = "The catalog cannot be opened: locked, damaged or out of reach"


class SparkStartError(ArcticError):
    code = "AR-105"
    title = "Spark did not start"


class ServerUnreachable(ArcticError):
    code = "AR-106"
    title = "The Spark Connect server cannot be reached or does not fit"


class ServerError(ArcticError):
    code = "AR-107"
    title = "The project's own server cannot be started or stopped"


class PackageMissing(ArcticError):
    code = "AR-108"
    title = "An optional Python package is not installed"


class PackageUnfit(ArcticError):
    code = "AR-109"
    title = "An installed Python package does not let SQL be analysed"


class ClassArchiveError(ArcticError):
    code = "AR-110"
    title = "A class archive could not be made"


# 2xx: a statement


class StatementError(ArcticError):
    code = "AR-201"
    title = "Spark refused or failed a statement"


class CommitConflict(ArcticError):
    code = "AR-202"
    title = "Other writers kept winning the commit, retries included"


class CommitStateUnknown(ArcticError):
    code = "AR-203"
    title = "The catalog did not say whether the commit landed"


class StatementCancelled(ArcticError):
    code = "AR-204"
    title = "The statement was cancelled"


class ConnectionLost(CommitStateUnknown):
    code = "AR-205"
    title = "The connection to Spark was lost while a statement ran"


class DiskError(StatementError):
    code = "AR-206"
    title = "A disk is full, read-only or not this user's to write to"


class SparkEnded(StatementError):
    """What the session had set is gone with it: nothing goes on from here by itself."""

    code = "AR-207"
    title = "Spark ended while a statement ran"


class NameInDoubleQuotes(ArcticError):
    """Told as dbt's warning, and raised with ``--warn-error``."""

    code = "AR-208"
    title = "A word in double quotes is a string to Spark, and seems to be meant as a name"


# 3xx: a model


class ConfigError(ArcticError):
    code = "AR-301"
    title = "A model's config is wrong, unknown or does not fit the table"


class KeyColumnMissing(ArcticError):
    code = "AR-302"
    title = "The model does not produce a column of its unique_key"


class NullKey(ArcticError):
    code = "AR-303"
    title = "A row has NULL in a key column"


class DuplicateKey(ArcticError):
    code = "AR-304"
    title = "Two rows of one batch have the same key and nothing orders them"


class SchemaChanged(ArcticError):
    code = "AR-305"
    title = "The model's columns changed and on_schema_change does not allow it"


class UnknownRelation(ArcticError):
    code = "AR-306"
    title = "The table that is asked for does not exist or is not of the needed kind"


class ConstraintBroken(ArcticError):
    code = "AR-307"
    title = "A row breaks a constraint of the model's contract"


class PythonModelFailed(ArcticError):
    code = "AR-308"
    title = "A Python model failed, or returned no DataFrame"


class NoSequence(ArcticError):
    code = "AR-309"
    title = "A row has no usable value in the column that orders the changes of its key"


# 4xx: the keyed table


class DamagedKeyedTable(ArcticError):
    code = "AR-401"
    title = "A keyed table's parts do not fit together"


class NewerProtocol(ArcticError):
    code = "AR-402"
    title = "The keyed table was written by a newer dbt-arctic"


class VersionUnavailable(ArcticError):
    code = "AR-403"
    title = "A version that has to be read is gone"


class ConcurrentRun(ArcticError):
    code = "AR-404"
    title = "Another run of the same model committed first"
