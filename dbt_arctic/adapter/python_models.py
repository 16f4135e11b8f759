"""Python models: the code runs in this process, and its result becomes a view of the session.

After that, a Python model is a SQL model that selects from that view, so it is written in the same way.
"""

from __future__ import annotations

import importlib.metadata
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt.adapters.base.impl import log_code_execution
from dbt.adapters.base.meta import available
from packaging.requirements import InvalidRequirement, Requirement

from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.frames import activate_session, functions_of, register_frame
from dbt_arctic.engine.thrift import SqlSession, refuse
from dbt_arctic.errors import ArcticError, ConfigError, PythonModelFailed
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.build import BuildStart, begin
from dbt_arctic.refresh.config import choose_strategy, writes_keyed
from dbt_arctic.refresh.materializations import is_incremental

SUBMISSION_METHOD = "session"
"""The only way to run a model: in this process, on the Spark session of the connection."""


_LOOKS_UP_A_SESSION = re.compile(r"pyspark\.pandas|pyspark +import +pandas|\.pandas_api\(")
"""pandas-on-Spark uses the active session of the process, which the code of another model may change."""


class SharedExclusiveLock:
    """A lock for any number of threads together, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other threads."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)
            yield


_running = SharedExclusiveLock()


class PythonModelsApi(KeyedApi):
    """The methods of the adapter for Python models."""

    _thread_views = threading.local()

    @log_code_execution  # type: ignore[untyped-decorator] # dbt's own, without types
    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> ArcticResponse:
        """Run a model's code and register its DataFrame as a view.

        dbt calls this for ``language='python'``.
        """
        path = parsed_model["original_file_path"]
        with as_dbt_errors():
            check_config(parsed_model["name"], parsed_model["config"])
            file = Path(getattr(self.config, "project_root", None) or "") / path
            handle = self._handle()
            session = handle.session
            if isinstance(session, SqlSession):
                refuse("a Python model", path)
            self._note_beginning(parsed_model)
            code = "\n" * leading_lines(file) + compiled_code
            last_line = len(code.splitlines()) - len(compiled_code.splitlines())
            last_line += len(parsed_model["raw_code"].splitlines())
            looks_up = bool(_LOOKS_UP_A_SESSION.search(compiled_code))
            with _running.exclusive() if looks_up else _running.shared(), functions_of(session):
                if looks_up:
                    activate_session(session, path)
                frame = run_code(path, code, session, last_line)
                self._thread_views.last = session, view_name(parsed_model)
                handle.remember_state()
                keep_frame(path, session, view_name(parsed_model), frame)
        return ArcticResponse(_message="OK", code="OK")

    def _note_beginning(self, model: Mapping[str, Any]) -> None:
        """Record the start of the computation: rows that land in a keyed table from now on are newer."""
        name = Name(model["database"], model["schema"], model["alias"])
        writes = is_incremental(model["config"])
        keyed = writes and writes_keyed(model["name"], model["config"])
        self._thread_views.beginning = (
            (model["unique_id"], begin(self.context(), name)) if keyed else ("", None)
        )

    def beginning(self, unique_id: str) -> BuildStart | None:
        """The recorded start of a model's computation."""
        noted, beginning = getattr(self._thread_views, "beginning", ("", None))
        return beginning if noted == unique_id else None

    @available.parse(lambda *a, **k: "")
    def python_model_sql(self, model: Mapping[str, Any]) -> str:
        """SQL of the rows of a Python model that has run."""
        return f"select * from {quote(view_name(model))}"

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """Drop the view of the model, and with it its data."""
        session, view = getattr(self._thread_views, "last", (None, ""))
        self._thread_views.last = (None, "")
        self._thread_views.beginning = ("", None)
        # If the session is lost, so is the view.
        if session is not None and (handle := self._handle()).is_open and handle.session is session:
            session.catalog.dropTempView(view)
        super().post_model_hook(config, context)


def view_name(model: Mapping[str, Any]) -> str:
    """The name of the view of a model."""
    return f"{model['alias']}__python"


def check_config(model: str, config: Mapping[str, Any]) -> None:
    """Refuse settings that have no effect on a Python model.

    :raises ConfigError: a setting is not supported for Python models.
    """
    method = config.get("submission_method") or SUBMISSION_METHOD
    if method != SUBMISSION_METHOD:
        raise ConfigError(
            f"submission_method is {method!r}",
            where=model,
            why="a Python model runs in dbt's own process, on the Spark session of the profile",
            fix=f"remove the setting, or set it to {SUBMISSION_METHOD!r}",
        )
    if is_incremental(config) and choose_strategy(model, config) == "microbatch":
        raise ConfigError(
            "a Python model cannot have the strategy 'microbatch'",
            where=model,
            why="dbt filters the inputs of SQL models by event_time, but not those of Python models",
            fix="write it in SQL, or filter by dbt.is_incremental with another strategy",
        )
    missing = missing_packages(model, config.get("packages") or [])
    if missing:
        raise ConfigError(
            f"the model needs {', '.join(missing)}",
            where=model,
            why="a Python model runs in dbt's environment, and its packages are not installed automatically",
            fix=f"pip install {' '.join(repr(package) for package in missing)}",
        )


def missing_packages(model: str, packages: Sequence[str]) -> list[str]:
    """The requirements that this environment does not meet."""
    missing = []
    for package in [packages] if isinstance(packages, str) else packages:
        try:
            wanted = Requirement(package)
        except InvalidRequirement as error:
            raise ConfigError(
                f"packages contains {package!r}",
                where=model,
                why=str(error),
                fix="write 'name' or 'name==1.2'",
            ) from error
        try:
            found = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            missing.append(package)
    return missing


def run_code(path: str, code: str, session: Any, last_line: int) -> Any:
    """Run the model's function and return its result.

    :param path: the model's file, for errors.
    :param code: the file as dbt compiled it: the user's lines, then dbt's own.
    :param last_line: the last line of the user's code.
    :raises PythonModelFailed: the code fails; names the line.
    """
    # This name belongs to no module, so functions are serialized completely for Spark's workers.
    names: dict[str, Any] = {"__name__": "dbt_python_model", "__file__": path, "spark": session}
    try:
        exec(compile(code, path, "exec", dont_inherit=True), names)
        return names["model"](names["dbtObj"](_loader(session)), session)
    except (Exception, SystemExit) as error:
        line = _line(error, path, last_line)
        raise PythonModelFailed(
            "the Python model failed",
            where=path if line is None else f"{path}, line {line}",
            why=f"{type(error).__name__}: {_text(error)}",
            fix="correct the model's code at this line, or its inputs",
        ) from error


def keep_frame(path: str, session: Any, view: str, frame: Any) -> None:
    """Register the DataFrame that a Python model returned as a view.

    :raises PythonModelFailed: Spark does not support the result of the model.
    """
    try:
        register_frame(session, view, frame, path)
    except ArcticError:
        raise
    except Exception as error:
        raise PythonModelFailed(
            "no view can be created for the model's DataFrame",
            where=path,
            why=f"{type(error).__name__}: {_text(error)}",
            fix="return columns of Spark types with unique names",
        ) from error


def _loader(session: Any) -> Callable[[str], Any]:
    """The function behind ``dbt.ref`` and ``dbt.source``.

    It loads a table, a version of it with ``consistent_reads``, or a part of it with --empty and --sample.
    Each of these is valid in a FROM clause.
    """
    return lambda relation: session.sql(f"select * from {relation}")


def leading_lines(file: Path) -> int:
    """The number of leading empty lines of a file, which dbt removes from the code."""
    if not file.is_file():
        return 0
    text = file.read_text(encoding="utf-8")
    return text[: len(text) - len(text.lstrip())].count("\n")


def _line(error: BaseException, path: str, last: int) -> int | None:
    """The innermost line of the model's file in the traceback of an error; ``None`` if it has none."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    return next((line for line in reversed(lines) if line is not None and line <= last), None)


def _text(error: BaseException) -> str:
    """The message of an error without Java's stack trace, which Spark appends."""
    return str(error).partition("\n\nJVM stacktrace")[0].strip()
