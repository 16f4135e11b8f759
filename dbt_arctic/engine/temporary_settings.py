"""Changes settings of a session temporarily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from dbt_arctic.engine.api import EXCLUDED_RULES, PARTITIONS, Connection


@contextmanager
def tuned(connection: Connection, conf: Mapping[str, str]) -> Iterator[None]:
    """Run statements with other session settings, and restore the settings afterwards.

    :param conf: the temporary settings. ``PARTITIONS`` can only be reduced, and ``EXCLUDED_RULES`` are added
        to those of the session.
    """
    settings = connection.session.conf
    if PARTITIONS in conf:
        # The session's value is suited to its machines, or was chosen by the user.
        conf = {**conf, PARTITIONS: str(min(int(settings.get(PARTITIONS)), int(conf[PARTITIONS])))}
    if EXCLUDED_RULES in conf:
        own = settings.get(EXCLUDED_RULES, "")
        conf = {**conf, EXCLUDED_RULES: f"{own},{conf[EXCLUDED_RULES]}" if own else conf[EXCLUDED_RULES]}
    before = {key: settings.get(key, "") if key == EXCLUDED_RULES else settings.get(key) for key in conf}
    try:
        for key, value in conf.items():
            settings.set(key, value)
        yield
    except BaseException:
        with suppress(Exception):  # report the original failure, which may be the loss of the session
            _put_back(connection, before)
        raise
    _put_back(connection, before)


def _put_back(connection: Connection, before: Mapping[str, str]) -> None:
    # A session that was lost in between has been replaced.
    settings = connection.session.conf
    for key, value in before.items():
        settings.set(key, value)
