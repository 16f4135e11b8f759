"""Python models: the model's code runs in this process, and what it returns becomes a view of the session.

From there on a Python model is a SQL model that selects from that view: there is no second way to write.
"""

from __future__ import annotations

import importlib.metadata
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import log_code_execution
from dbt.adapters.base.meta import AdapterMeta, available
from packaging.requirements import InvalidRequirement, Requirement

from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.frames import functions_of, register_frame, take_up
from dbt_arctic.errors import ArcticError, ConfigError, PythonModelFailed
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.build import Beginning, begin
from dbt_arctic.refresh.config import choose_strategy, writes_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.keyed_api import KeyedApi as _Base
else:
    _Base = object

SUBMISSION_METHOD = "session"
"""The one way to run a model: in this process, on the connection's own Spark session."""


_LOOKS_UP_A_SESSION = re.compile(r"pyspark\.pandas|pyspark +import +pandas|\.pandas_api\(")
"""pandas-on-Spark takes the process's active session, which any other model's code may change."""


class Turns:
    """Any number of threads together, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)
            yield


_running = Turns()


class PythonModels(_Base, metaclass=AdapterMeta):
    _thread_views = threading.local()

    @log_code_execution  # type: ignore[untyped-decorator] # dbt's own, without types
    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> ArcticResponse:
        """Run a model's code and keep its DataFrame as a view. dbt calls this for ``language='python'``."""
        path = parsed_model["original_file_path"]
        with as_dbt_errors():
            check_config(parsed_model["name"], parsed_model["config"])
            file = Path(getattr(self.config, "project_root", None) or "") / path
            handle = self._handle()
            session = handle.session
            self._note_beginning(parsed_model)
            code = "\n" * leading_lines(file) + compiled_code
            last_line = len(code.splitlines()) - len(compiled_code.splitlines())
            last_line += len(parsed_model["raw_code"].splitlines())
            looks_up = bool(_LOOKS_UP_A_SESSION.search(compiled_code))
            with _running.alone() if looks_up else _running.together(), functions_of(session):
                if looks_up:
                    take_up(session, path)
                frame = run_code(path, code, session, last_line)
                self._thread_views.last = session, view_name(parsed_model)
                handle.remember_state()
                keep_frame(path, session, view_name(parsed_model), frame)
        return ArcticResponse(_message="OK", code="OK")

    def _note_beginning(self, model: Mapping[str, Any]) -> None:
        """The rows are computed from here on: what lands in a keyed table's generation now comes later."""
        name = Name(model["database"], model["schema"], model["alias"])
        writes = model["config"].get("materialized") == "incremental"
        keyed = writes and writes_keyed(model["name"], model["config"])
        self._thread_views.beginning = (
            (model["unique_id"], begin(self.context(), name)) if keyed else ("", None)
        )

    def beginning(self, unique_id: str) -> Beginning | None:
        noted, beginning = getattr(self._thread_views, "beginning", ("", None))
        return beginning if noted == unique_id else None

    @available.parse(lambda *a, **k: "")
    def python_model_sql(self, model: Mapping[str, Any]) -> str:
        """The rows of a Python model that has run."""
        return f"select * from {quote(view_name(model))}"

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """Let go of the model's view, and with it of its data."""
        session, view = getattr(self._thread_views, "last", (None, ""))
        self._thread_views.last = (None, "")
        self._thread_views.beginning = ("", None)
        # Of a session that is lost the view is, too.
        if session is not None and (handle := self._handle()).is_open and handle.session is session:
            session.catalog.dropTempView(view)
        super().post_model_hook(config, context)


def view_name(model: Mapping[str, Any]) -> str:
    return f"{model['alias']}__python"


def check_config(model: str, config: Mapping[str, Any]) -> None:
    """Refuse settings that have no effect on a Python model.

    :raises ConfigError: a setting asks for what a Python model does not do here.
    """
    method = config.get("submission_method") or SUBMISSION_METHOD
    if method != SUBMISSION_METHOD:
        raise ConfigError(
            f"submission_method is {method!r}",
            where=model,
            why="a Python model runs in dbt's own process, on the Spark session of the profile",
            fix=f"remove the setting, or set it to {SUBMISSION_METHOD!r}",
        )
    if config.get("materialized") == "incremental" and choose_strategy(model, config) == "microbatch":
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
    """What the model's function returns.

    :param path: the model's file, as its errors name it.
    :param code: the file as dbt compiled it: the user's lines, then dbt's own.
    :param last_line: the last of the user's.
    :raises PythonModelFailed: the code fails; names the line.
    """
    # A name that no module has: functions that Spark sends to its workers are then sent whole.
    names: dict[str, Any] = {"__name__": "dbt_python_model", "__file__": path, "spark": session}
    try:
        exec(compile(code, path, "exec", dont_inherit=True), names)
        return names["model"](names["dbtObj"](_loader(session)), session)
    except (Exception, SystemExit) as error:
        raise PythonModelFailed(
            "the Python model failed",
            where=f"{path}, line {_line(error, path, last_line)}",
            why=f"{type(error).__name__}: {_text(error)}",
            fix="correct the model's code at this line, or its inputs",
        ) from error


def keep_frame(path: str, session: Any, view: str, frame: Any) -> None:
    """Make the data frame that a Python model returned readable for SQL.

    :raises PythonModelFailed: Spark cannot take what the model returned.
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
    """What ``dbt.ref`` and ``dbt.source`` load: a table; a version of it with ``consistent_reads``; a part of
    it with --empty and --sample. All of these stand in a FROM clause.
    """
    return lambda relation: session.sql(f"select * from {relation}")


def leading_lines(file: Path) -> int:
    """The empty lines at a file's beginning, which dbt leaves out of the code."""
    if not file.is_file():
        return 0
    text = file.read_text(encoding="utf-8")
    return text[: len(text) - len(text.lstrip())].count("\n")


def _line(error: BaseException, path: str, last: int) -> int:
    """The innermost line of the model's file that the error came through."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 0 for frame in frames if frame.filename == path]
    return next((line for line in reversed(lines) if line <= last), 0)


def _text(error: BaseException) -> str:
    """An error's message without Java's stack, which Spark appends to it."""
    return str(error).partition("\n\nJVM stacktrace")[0].strip()
