"""The binary log of a MariaDB, read like a replica does, from a position up to the end that it has now.

A position is the number of the log's file times 2^32, plus the number of bytes in this file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dbt_arctic.databases.address import Address
from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.change_log import ChangeBatch, LogState
from dbt_arctic.databases.client import Run, package_missing
from dbt_arctic.databases.mariadb import connect, login
from dbt_arctic.databases.mariadb_client_events import at_ms, event_of, has_checksums, unreadable
from dbt_arctic.databases.mariadb_transactions import TransactionReader, file_and_offset, log_position
from dbt_arctic.databases.mariadb_versions import distinguished_types, read_versions, why_not_followed
from dbt_arctic.databases.table_versions import TableVersion
from dbt_arctic.errors import ArcticError, ConcurrentRun, ConfigError, ServerUnreachable, VersionUnavailable

_WAIT_S = 600
"""Another run that takes changes for the same target is waited for."""
_PREPARED = "XA RECOVER FORMAT = 'SQL'"
_PREPARED_S = 20
"""How long a prepared transaction is waited for. Managers of transactions commit at once."""
_ALL_VALUES = "its log must have all values of each changed row, and the names of the columns"
_TWO_PHASES = "the client of the log cannot read a statement that is in it twice"


class _Setting(NamedTuple):
    """A setting that the server must have.

    :param is_default: whether a server without it is like one that has the value.
    """

    name: str
    value: str
    why: str = _ALL_VALUES
    is_default: bool = False


_SETTINGS = (
    _Setting("log_bin", "ON"),
    _Setting("binlog_format", "ROW"),
    _Setting("binlog_row_image", "FULL"),
    _Setting("binlog_row_metadata", "FULL"),
    _Setting("log_bin_compress", "OFF", is_default=True),
    _Setting("binlog_alter_two_phase", "OFF", _TWO_PHASES, is_default=True),
)
_SERVER = ("server_id", "hostname", "port")
_VARIABLES = (
    *(one.name for one in _SETTINGS),
    *("version", "log_slave_updates", "gtid_slave_pos", "server_uid", *_SERVER),
)
_LOAD_AGAIN = "load the models of the source again: dbt run --full-refresh"
_FIRST_SERVER_ID = 2**31
"""Servers of a company have smaller ids."""
_NOT_ALLOWED, _NOT_THERE = (1044, 1045, 1142, 1227), (1236, 1373)


@dataclass(frozen=True)
class MariaLog:
    """The log, through a connection.

    :param tables: those that are to be followed.
    :param lock_name: what excludes another run.
    :param where: what declares the tables, for errors.
    """

    run: Run
    address: Address
    tables: Sequence[TableName]
    lock_name: str
    where: str

    @property
    def name(self) -> str:
        """The address of the server."""
        return self.address.shown

    def state(self) -> LogState:
        """The log as it is now.

        :raises ConfigError: there is no log, or it does not have all rows and the names of columns.
        """
        names = ", ".join(["%s"] * len(_VARIABLES))
        # A variable that the server does not know is left out.
        found = dict(self.run(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})", _VARIABLES))
        self._require_settings(found)
        identity = found.get("server_uid") or "/".join(found[name] for name in _SERVER)
        first = self._row("SHOW BINARY LOGS")[0]
        last, length, only, without = self._row("SHOW MASTER STATUS")
        for schema in sorted({one.schema for one in self.tables}):
            if (only and schema not in only.split(",")) or schema in without.split(","):
                raise self._not_set(
                    f"a log of the database {schema}", "correct binlog_do_db and binlog_ignore_db"
                )
        current, (seconds,) = log_position(last, int(length)), self._row("SELECT UNIX_TIMESTAMP()")
        name, oldest = f"{identity}/{self.address.database}", log_position(first, 0)
        return LogState(name, oldest, current, current, at_ms=int(seconds) * 1000)

    def _require_settings(self, found: Mapping[str, str]) -> None:
        """Refuse a server whose log does not have what is needed.

        :param found: its variables.
        """
        if "mariadb" not in found["version"].lower():
            raise ConfigError(
                f"the server at {self.name} is not MariaDB (version {found['version']})",
                where=self.where,
                why="a table of MySQL cannot be loaded together with its position in the log",
                fix="use from: kafka or from: files with change events of Debezium, or from: jdbc",
            )
        for name, value, why, is_default in _SETTINGS:
            if found.get(name, value if is_default else "") == value:
                continue
            fix = f"run SET GLOBAL {name} = '{value}', and set it in its configuration. Sessions that are "
            fix += "open keep the old setting"
            if name == "log_bin":
                fix = "set log_bin and server_id in its configuration"
            raise self._not_set(f"{name}={value}", fix, why)
        if found["gtid_slave_pos"] and found["log_slave_updates"] != "ON":
            raise self._not_set(
                "log_slave_updates",
                "read the log of the primary, or set log_slave_updates in its configuration",
                "it is a replica, and does not log the changes that it receives from the primary",
            )

    def _not_set(self, setting: str, fix: str, why: str = _ALL_VALUES) -> ConfigError:
        return ConfigError(
            f"the server at {self.name} does not have {setting}", where=self.where, why=why, fix=fix
        )

    def shown(self, position: int) -> str:
        """The number of a file of the log, and the bytes in it."""
        return "{}:{}".format(*file_and_offset(position))

    def why_removed(self, end: int, oldest: int) -> str:
        """Why the log begins after a position, as a part of an error."""
        (needed, _), (first, _) = file_and_offset(end), file_and_offset(oldest)
        return (
            f"the server has removed the files of its log before number {first}, and the capture needs "
            f"{needed} (binlog_expire_logs_seconds, or PURGE BINARY LOGS)"
        )

    def mark(self, position: int) -> str:
        """The transactions up to a position, and when the log's file was created.

        After RESET MASTER, the files have the same names again.
        """
        file, offset = self._file(position), file_and_offset(position)[1]
        if not file:
            return "no file"
        (transactions,) = self._row("SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
        with self._stream(file, 4) as stream:
            created = next((one.timestamp for one in stream if type(one).__name__ == _CREATED), 0)
        return f"{transactions}@{created}"

    def wait_for_prepared(self) -> None:
        """Wait until the XA transactions have ended that are prepared now. Their rows are in the log before.

        :raises ConcurrentRun: one of them does not end.
        """
        ends, prepared = time.monotonic() + _PREPARED_S, set(self.run(_PREPARED))
        while prepared := prepared & set(self.run(_PREPARED)):
            if time.monotonic() > ends:
                raise ConcurrentRun(
                    f"the XA transaction {sorted(prepared)[0][-1]} on {self.name} has not ended",
                    where=self.where,
                    why="its rows are in the log before those that this run would read",
                    fix="commit it or roll it back (XA RECOVER), and run again",
                )
            time.sleep(_PREPARED_S / 100)

    def write_visible(self) -> None:
        """Nothing: a transaction is in the log before others see its rows."""

    def followed(self) -> frozenset[TableName]:
        """The tables of which the log has all changes."""
        return frozenset(one for one in self.tables if not why_not_followed(self.run, one))

    def not_followed(self, table: TableName) -> ConfigError:
        """The error if the log does not have all changes of a table."""
        reason = why_not_followed(self.run, table)
        assert reason is not None, "the table is followed"
        return ConfigError(reason.what, where=self.where, why=reason.why, fix=reason.fix)

    def versions(self) -> Mapping[TableName, TableVersion]:
        """The columns of the tables as they are now."""
        return read_versions(self.run, self.tables)

    def changes(self, since: int, until: int, limit: int) -> ChangeBatch:
        """The changes after a position, in the order of the commits.

        :param until: of all transactions that ended before this position.
        :param limit: no further transaction after so many changes.
        :raises VersionUnavailable: the server has removed the log, or it has events that cannot be read.
        :raises ServerUnreachable: the log ended before ``until``.
        """
        if since >= until:
            return ChangeBatch((), until, True)
        # Also of a table that is not followed at this moment, because it is dropped and created again.
        reader = TransactionReader(self.tables, since)
        types, at = distinguished_types(self.run, self.tables), since
        (checksums,) = self._row("SELECT @@global.binlog_checksum <> 'NONE'")
        file = self._file(since)
        if not file:  # without a name, the server sends its first file
            raise VersionUnavailable(
                f"the log of {self.name} was removed while it was read",
                where=self.where,
                why=self.why_removed(since, log_position(self._row("SHOW BINARY LOGS")[0], 0)),
                fix=_LOAD_AGAIN,
            )
        with self._stream(file, max(file_and_offset(since)[1], 4)) as stream:
            for one in self._read(stream):
                if (problem := unreadable(one)) is not None:
                    raise self._unreadable(at, problem)
                if has_checksums(one) not in (None, bool(checksums)):
                    raise self._unreadable(at, "events from before binlog_checksum was changed")
                position = log_position(stream.log_file, stream.log_pos)
                if position < at:  # the log has positions of 32 bits
                    raise self._unreadable(at, "a file of more than 4 GiB")
                at = position
                if position > until:
                    return reader.batch(until)
                try:
                    event = event_of(one, types)
                except Exception as error:
                    raise self._undecoded(at, error) from error
                if event is not None:
                    reader.read(position, at_ms(one), event)
                if reader.number >= limit:
                    return reader.batch(None)
            at = log_position(stream.log_file, stream.log_pos)
        if at < until:
            raise ServerUnreachable(
                f"the server at {self.name} has ended the connection that reads its log",
                where=self.where,
                why=f"the log was read up to {at}, and continues to {until}",
                fix="run again. Nothing was written",
            )
        return reader.batch(until)

    def _read(self, stream: Any) -> Iterator[Any]:
        """The events of a stream.

        :raises VersionUnavailable: the client cannot read one.
        """
        import pymysql

        while True:
            try:
                event = stream.fetchone()
            except (pymysql.Error, OSError):
                raise
            except Exception as error:
                at = log_position(stream.log_file, stream.log_pos)
                raise self._undecoded(at, error) from error
            if event is None:
                return
            yield event

    def _undecoded(self, at: int, error: Exception) -> VersionUnavailable:
        # repr() of an error may have the whole value of a row.
        return self._unreadable(at, f"an event that cannot be decoded ({type(error).__name__}: {error})")

    def _unreadable(self, at: int, what: str) -> VersionUnavailable:
        number, offset = file_and_offset(at)
        return VersionUnavailable(
            f"the log of {self.name} has {what}",
            where=self.where,
            why=f"the client of the log cannot read it (file {number}, after byte {offset})",
            fix=f"{_LOAD_AGAIN}; or read change events of Debezium",
        )

    def advance(self, position: int) -> None:
        """Nothing: the server keeps its log as long as its own settings say."""

    def lock(self) -> None:
        """Wait until no other connection has locked the log, and lock it as long as this one is open.

        :raises ConcurrentRun: another connection has kept it locked for long.
        """
        if not self._locked(_WAIT_S):
            raise ConcurrentRun(
                f"the changes of {self.name} are being captured",
                where=self.where,
                why="another run for the same target is capturing them",
                fix="run again when it has ended; nothing was written",
            )

    def try_lock(self) -> bool:
        """Lock the log like ``lock``, unless another connection has."""
        return self._locked(0)

    def _locked(self, wait_s: int) -> bool:
        # MariaDB limits the length of a name.
        (found,) = self._row("SELECT GET_LOCK(SHA1(%s), %s)", (f"dbt-arctic {self.lock_name}", wait_s))
        return bool(found)

    def _row(self, text: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
        row: Sequence[Any] = self.run(text, values)[0]
        return row

    def _file(self, position: int) -> str:
        """The name of the file of a position; empty if the server does not have it."""
        names = [str(name) for name, *_ in self.run("SHOW BINARY LOGS")]
        number, _ = file_and_offset(position)
        return next((name for name in names if file_and_offset(log_position(name, 0))[0] == number), "")

    @contextlib.contextmanager
    def _stream(self, file: str, offset: int) -> Iterator[Any]:
        from pymysqlreplication import BinLogStreamReader

        stream = BinLogStreamReader(
            connection_settings=login(self.address, self.where),
            server_id=_FIRST_SERVER_ID + random.SystemRandom().randrange(_FIRST_SERVER_ID - 1),
            log_file=file,
            log_pos=offset,
            resume_stream=True,
            filter_non_implemented_events=False,
            only_schemas=sorted({one.schema for one in self.tables}),
            only_tables=sorted({one.name for one in self.tables}),
            enable_logging=False,
            pymysql_wrapper=_connected,
        )
        with contextlib.closing(stream):
            yield stream


_CREATED = "FormatDescriptionEvent"


def _connected(**settings: Any) -> Any:
    """A connection of the client, which gives one setting a deprecated name."""
    import pymysql

    return pymysql.connect(
        **{"database" if name == "db" else name: value for name, value in settings.items()}
    )


@contextlib.contextmanager
def open_log(address: Address, tables: Sequence[TableName], lock: str, where: str) -> Iterator[MariaLog]:
    """Open the log of a database.

    :param tables: those that are to be followed.
    :param lock: what is captured, so that no other run does the same at the same time.
    :param where: what declares them, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: PyMySQL or mysql-replication is not installed.
    """
    if importlib.util.find_spec("pymysqlreplication") is None:
        raise package_missing("mysql-replication", "mariadb", "the log of MariaDB", where)
    connection = connect(address, where)
    run = connection.run_explained(lambda error: _explained(error, address.user, where))
    log = MariaLog(run, address, tables, lock, where)
    with contextlib.closing(connection):
        try:
            yield log
        except ArcticError:
            raise
        except (connection.failures.error, OSError) as error:
            raise _explained(error, address.user, where) or ServerUnreachable(
                f"the log of {address.shown} cannot be read",
                where=where,
                why=" ".join(str(error).split()),
                fix="run again. Nothing was written",
            ) from error


def _explained(error: Exception, user: str, where: str) -> ArcticError | None:
    """The error of a statement about the log; ``None`` if it has nothing to do with the log."""
    code, why = next(iter(error.args), None), " ".join(str(part) for part in error.args[1:])
    if code in _NOT_ALLOWED:
        return ConfigError(
            f"the user {user} may not read the log of the database",
            where=where,
            why=why,
            fix=f"run this in the database: GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {user}",
        )
    if code in _NOT_THERE:
        return VersionUnavailable(
            "the server does not have the log from the position that was captured last",
            where=where,
            why=why,
            fix=_LOAD_AGAIN,
        )
    return None


__all__ = ["MariaLog", "open_log"]
