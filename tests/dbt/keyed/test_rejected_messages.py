"""Messages of topics that do not fit: they fail the run, are stored in a table, or are counted."""

from __future__ import annotations

from .conftest import Shop, Terminal
from .kafka_topics import Broker, Message
from .test_kafka_sources import declare, order, running

__all__ = ["running"]

KEPT = """{{ config(materialized='incremental', incremental_strategy='append') }}
select order_id, status, cast(amount as string) as amount, _source_key, _source_headers, _source_partition,
  _source_offset, _action as action
from {{ incremental_pull(source('shop', 'NAME')) }}"""
NO_NUMBER = '{"order_id": 3, "status": "new", "amount": "much"}'
BAD = [
    (1, NO_NUMBER, "the value of amount is not a decimal(10,2)"),
    (1, "no json", "the value is not a valid JSON object"),
    (1, "[1]", "the value is not a valid JSON object"),
    (1, '{"amount": 5}', "the required column status is missing or NULL"),
    ("x", '{"status": "a | b"}', "the value of order_id is not a bigint"),
    ("y", None, "the value of order_id is not a bigint"),
    (None, '{"status": "new"}', "the required column order_id is missing or NULL"),
]
"""Keys and values that do not fit, and why. A tombstone has no values, so it does not lack any."""
Offset = tuple[int, int]


def offsets(shop: Shop, name: str) -> list[Offset]:
    found = shop.sql(f"SELECT _source_partition, _source_offset FROM {{s}}.{name}")
    return sorted((row[0], row[1]) for row in found)


def rejected(shop: Shop, name: str) -> dict[Offset, tuple[str, str | None]]:
    """The error and the text of each message; the message as it was sent is compared with the topic's."""
    columns = "message.partition, position, error, raw"
    found = shop.sql(f"SELECT {columns} FROM {{s}}.{name}__rejected")
    made = {(row[0], row[1]): (row[2], row[3]) for row in found}
    assert len(made) == len(found), "a message was rejected twice"
    return made


def test_messages_that_do_not_fit_are_stored_and_taken_again_once(shop: Shop, running: Broker) -> None:
    topic = running.topic()
    required = {"topic": topic.name, "key": "order_id", "required": ["order_id", "STATUS"]}
    kept = {**required, "on_bad_row": "quarantine"}
    shared = {"kept": kept, "dropped": {**kept, "on_bad_row": "drop"}}
    declare(shop, running.servers, **shared, strict=required)
    for name in ("kept", "dropped", "strict"):
        shop.model(name, KEPT.replace("NAME", name))
    wrong: dict[Offset, tuple[str, str | None]] = {}
    good: list[Message] = [topic.send(2, None, 0), topic.send(2, order(2), 1)]
    for at, (key, value, error) in enumerate(BAD):
        sent = topic.send(key, value, at % 2)
        wrong[sent.partition, sent.offset] = error, value
        good.append(topic.send(at, order(at), at % 2))
    broken = running.producer.send(topic.name, key=b"5", value=b"\xff\xfe", partition=0).get(10).offset
    wrong[0, broken] = "the value is not UTF-8", "\ufffd\ufffd"
    results = {one.node.name: one for one in shop.try_dbt("run").result.results}
    assert {name: str(one.status) for name, one in results.items() if name != "strict"} == {
        "kept": "success",
        "dropped": "success",
    }
    said = str(results["strict"].message)
    assert "AR-311" in said
    assert any(f": partition {partition}, offset {at}: " in said for partition, at in wrong)
    assert topic.name in said
    fit = sorted((message.partition, message.offset) for message in good)
    assert offsets(shop, "kept") == offsets(shop, "dropped") == fit
    assert rejected(shop, "kept") == wrong
    stored = "location, position, message.key, message.value, message.headers[0].value"
    sent_as = {(f"{topic.name}-{m.partition}", m.offset): m for m in topic.messages}
    for place, at, key, value, header in shop.sql(f"SELECT {stored} FROM {{s}}.kept__rejected"):
        message = sent_as.get((place, at))
        if message is None:
            assert (place, at, bytes(value)) == (f"{topic.name}-0", broken, b"\xff\xfe")
            continue
        assert (key and bytes(key).decode(), value and bytes(value).decode()) == (message.key, message.value)
        assert bytes(header) == b"test"
    counted = shop.sql("SELECT location, error, row_count, message, raw FROM {s}.dropped__rejected")
    by_error = [(f"{topic.name}-{partition}", error) for (partition, _), (error, _) in wrong.items()]
    assert sorted(map(tuple, counted)) == sorted(
        (place, error, by_error.count((place, error)), None, None) for place, error in set(by_error)
    )

    terminal = Terminal(shop)
    late = topic.send(1, "{", 1)
    wrong[1, late.offset] = BAD[1][2], "{"
    good.append(topic.send(8, order(8), 1))
    told = {one["model"]: one for one in terminal.json("ingest", "plan")}
    assert (told["kept"]["messages"], told["kept"]["rejected"]) == (2, len(wrong) - 1)
    assert (told["dropped"]["dropped"], told["strict"]["reads_all"]) == (len(wrong) - 1, True)

    # A run that ends at any of its statements rejects nothing twice, and loses nothing.
    for at in (2, 4, 5, 7):
        shop.end({"kept": (at, at % 2 == 0)})
        shop.try_dbt("run", "--select", "kept")
    shop.end({})
    shop.dbt("run", "--select", "kept")
    fit = sorted((message.partition, message.offset) for message in good)
    assert (offsets(shop, "kept"), rejected(shop, "kept")) == (fit, wrong)

    # After a fix, a replay takes the messages that fit, with their keys, headers and offsets.
    columns = {"order_id": "string", "status": "string", "amount": "string"}
    declare(shop, running.servers, kept={**kept, "columns": columns, "required": []})
    for name in ("dropped", "strict"):
        (shop.folder / "models" / f"{name}.sql").unlink()
    as_number = "select try_cast(order_id as bigint) as order_id"
    shop.model("kept", KEPT.replace("NAME", "kept").replace("select order_id", as_number))
    broken_still = {place for place, (error, _) in wrong.items() if "value is not" in error}
    good += [topic.send(9, order(9), 0)]
    terminal("ingest", "replay")
    left = rejected(shop, "kept")
    assert left == {place: wrong[place] for place in broken_still}
    fit = sorted([*((m.partition, m.offset) for m in good), *(set(wrong) - broken_still)])
    assert offsets(shop, "kept") == fit
    message = "amount, action, _source_key, _source_headers"
    again = shop.sql(f"SELECT {message} FROM {{s}}.kept WHERE amount = 'much'")
    assert [(row[0], row[1], bytes(row[2]), bytes(row[3][0]["value"])) for row in again] == [
        ("much", "U", b"1", b"test")
    ]
    assert shop.sql("SELECT action FROM {s}.kept WHERE _source_key = 'y'")[0][0] == "D"
    terminal("ingest", "replay")
    assert (offsets(shop, "kept"), rejected(shop, "kept")) == (fit, left)
