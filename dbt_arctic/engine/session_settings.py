"""Settings of a session for as long as some statements run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from dbt_arctic.engine.api import EXCLUDED_RULES, PARTITIONS, Connection


@contextmanager
def tuned(connection: Connection, conf: Mapping[str, str]) -> Iterator[None]:
    """Run statements under other session settings, and restore the settings afterwards.

    :param conf: settings of the session inside; outside it has what it had, a user's own included. Of
    ``PARTITIONS`` it has no more than that inside, either, and of ``EXCLUDED_RULES`` those besides.
    """
    settings = connection.session.conf
    if PARTITIONS in conf:
        # What a session has is what its machines are for, or what its user has asked for.
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
        with suppress(Exception):  # what went wrong first is told; it may be the session that was lost
            _put_back(connection, before)
        raise
    _put_back(connection, before)


def _put_back(connection: Connection, before: Mapping[str, str]) -> None:
    # A session that was lost in between is another one by now.
    settings = connection.session.conf
    for key, value in before.items():
        settings.set(key, value)
