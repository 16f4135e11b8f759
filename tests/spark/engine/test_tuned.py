"""Settings that a session has for some statements only."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.temporary_settings import tuned

SWITCH, NUMBER = "spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions"


def test_a_session_has_its_own_settings_again(connection: SessionConnection) -> None:
    conf = connection.session.conf
    conf.set(NUMBER, "7")  # a user's
    before = conf.get(SWITCH)
    with tuned(connection, {NUMBER: "3", SWITCH: "false"}):
        assert (conf.get(NUMBER), conf.get(SWITCH)) == ("3", "false")
    assert (conf.get(NUMBER), conf.get(SWITCH)) == ("7", before)
    with pytest.raises(KeyError), tuned(connection, {NUMBER: "3"}):
        raise KeyError
    assert conf.get(NUMBER) == "7"


def test_a_session_has_no_more_partitions_than_its_own(connection: SessionConnection) -> None:
    conf = connection.session.conf
    conf.set(NUMBER, "2")
    with tuned(connection, {NUMBER: "3"}):
        assert conf.get(NUMBER) == "2"
    assert conf.get(NUMBER) == "2"
