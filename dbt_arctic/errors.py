"""All user-facing errors: one class per kind, each with a stable ``AR-`` code.

This module does not depend on dbt, Spark or Iceberg. The adapter converts these errors
to dbt's exceptions, so that dbt prints them like its own.
"""

from __future__ import annotations

from typing import ClassVar

from dbt_arctic.secret import without_secrets


class ArcticError(Exception):
    """An error that states what happened, where, why, and what to do next.

    :param what: one sentence: what failed.
    :param where: the model, table, column or file, if any.
    :param why: the cause, if known.
    :param fix: the next command to type, or the setting to change.
    """

    code: ClassVar[str] = "AR-000"
    title: ClassVar[str] = "dbt-arctic error"

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        # Messages of other programs may quote a password.
        self.what = without_secrets(what)
        self.where = without_secrets(where)
        self.why = without_secrets(why)
        self.fix = without_secrets(fix)
        super().__init__(self.render())

    def render(self) -> str:
        """The text for the user, one aspect per line."""
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
    title = "Java is missing or has an unsupported version"


class DependencyError(ArcticError):
    code = "AR-103"
    title = "Spark's jars could not be downloaded"


class CatalogUnavailable(ArcticError):
    code = "AR-104"
    title = "The catalog cannot be opened: it is locked, damaged or unreachable"


class SparkStartError(ArcticError):
    code = "AR-105"
    title = "Spark did not start"


class ServerUnreachable(ArcticError):
    code = "AR-106"
    title = "A server cannot be reached or cannot be used"


class ServerError(ArcticError):
    code = "AR-107"
    title = "The project's Spark server cannot be started or stopped"


class PackageMissing(ArcticError):
    code = "AR-108"
    title = "An optional Python package is not installed"


class PackageUnfit(ArcticError):
    code = "AR-109"
    title = "An installed Python package prevents the analysis of SQL"


class ClassArchiveError(ArcticError):
    code = "AR-110"
    title = "A class archive could not be created"


# 2xx: a statement


class StatementError(ArcticError):
    """A failed statement.

    :param statement: its complete SQL, in which the adapter finds the model's part; not shown.
    :param line: the line of the statement that Spark rejected, counted from 1; ``None`` if unknown.
    """

    code = "AR-201"
    title = "Spark rejected a statement, or the statement failed"

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        why: str = "",
        fix: str = "",
        statement: str = "",
        line: int | None = None,
    ) -> None:
        super().__init__(what, where=where, why=why, fix=fix)
        self.statement = statement
        self.line = line


class CommitConflict(ArcticError):
    code = "AR-202"
    title = "The commit conflicted with other writers, and all retries failed"


class CommitStateUnknown(ArcticError):
    code = "AR-203"
    title = "The state of a commit is unknown"


class StatementCancelled(ArcticError):
    code = "AR-204"
    title = "The statement was cancelled"


class ConnectionLost(CommitStateUnknown):
    code = "AR-205"
    title = "The connection to Spark was lost while a statement ran"


class DiskError(StatementError):
    code = "AR-206"
    title = "A disk is full, read-only or not writable by this user"


class SparkEnded(StatementError):
    """Raised when Spark ends during a run.

    Settings and views of the session are lost, so the run cannot continue.
    """

    code = "AR-207"
    title = "Spark ended while a statement ran"


class NameInDoubleQuotes(ArcticError):
    """Reported as a dbt warning; raised with ``--warn-error``."""

    code = "AR-208"
    title = "Spark reads a word in double quotes as a string, but it seems to be a name"


class ClockBehind(ArcticError):
    code = "AR-209"
    title = "The clock of a machine is behind the last commit of the table"


# 3xx: a model


class ConfigError(ArcticError):
    code = "AR-301"
    title = "A model's config is invalid, unknown or does not match the table"


class KeyColumnMissing(ArcticError):
    code = "AR-302"
    title = "The model's query does not return a column of its unique_key"


class NullKey(ArcticError):
    code = "AR-303"
    title = "A key column contains NULL"


class DuplicateKey(ArcticError):
    code = "AR-304"
    title = "A batch has two rows with the same key and no order between them"


class SchemaChanged(ArcticError):
    code = "AR-305"
    title = "The model's columns changed and on_schema_change does not allow it"


class UnknownRelation(ArcticError):
    code = "AR-306"
    title = "A table does not exist or has the wrong kind"


class ConstraintBroken(ArcticError):
    code = "AR-307"
    title = "A row violates a constraint of the model's contract"


class PythonModelFailed(ArcticError):
    code = "AR-308"
    title = "A Python model failed or returned no DataFrame"


class NoSequence(ArcticError):
    code = "AR-309"
    title = "A row has no valid value in its sequence_by column"


class SourceFileChanged(ArcticError):
    code = "AR-310"
    title = "A file of a source changed or disappeared"


class MalformedFile(ArcticError):
    code = "AR-311"
    title = "A file, a message or a row does not fit its source"


class SourceTruncated(ArcticError):
    code = "AR-312"
    title = "A table that a source follows was truncated or dropped"


class ValueUnknown(ArcticError):
    code = "AR-313"
    title = "A row lacks a value that no earlier row of its key has"


class OnlyBySpark(ArcticError):
    code = "AR-314"
    title = "The rows of a relation can only be read by Spark"


def only_by_spark(name: str, why: str, extra: str = "") -> OnlyBySpark:
    """The error for a relation that cannot be read without Spark.

    :param name: its full name.
    :param extra: the extra of dbt-arctic with which it could be.
    """
    install = f"pip install 'dbt-arctic[{extra}]', or " if extra else ""
    return OnlyBySpark(
        f"the rows of {name} can only be read by Spark",
        where=name,
        why=why,
        fix=f'{install}read them with a statement: dbt-arctic sql "SELECT * FROM {name}"',
    )


class RefreshDiffers(ArcticError):
    code = "AR-330"
    title = "A verified refresh of an automatic model differs from the model's query"


# 4xx: the keyed table


class DamagedKeyedTable(ArcticError):
    code = "AR-401"
    title = "The parts of a keyed table are inconsistent"


class NewerProtocol(ArcticError):
    code = "AR-402"
    title = "The keyed table was written by a newer dbt-arctic"


class VersionUnavailable(ArcticError):
    code = "AR-403"
    title = "A required version is no longer available"


class ConcurrentRun(ArcticError):
    code = "AR-404"
    title = "Another run of the same model committed first"
