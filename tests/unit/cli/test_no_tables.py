"""A command that finds no tables says where it looked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dbt_arctic.cli.options import no_tables_text

if TYPE_CHECKING:
    from dbt_arctic.adapter.target_session import TargetSession


class _Operator:
    def __init__(self, *schemas: str) -> None:
        self._schemas = list(schemas)

    def schemas(self, chosen: tuple[str, ...]) -> list[str]:
        return list(chosen) or self._schemas


def _text(chosen: tuple[str, ...] = (), everything: bool = False) -> str:
    return no_tables_text(cast("TargetSession", _Operator("shop", "shop_ods")), chosen, everything)


def test_the_schemas_are_named_with_the_option_that_looks_in_all() -> None:
    assert _text() == "There are no tables in shop, shop_ods. To look in every schema of the catalog: --all"
    assert _text(("raw",)).startswith("There are no tables in raw.")


def test_nothing_more_is_advised_after_looking_everywhere() -> None:
    assert _text(everything=True) == "There are no tables yet."


def test_a_schema_that_does_not_exist_yet_is_one_without_tables() -> None:
    text = no_tables_text(cast("TargetSession", _Operator()), (), everything=False)
    assert text.startswith("There are no tables in the schema of the target. To look in every schema")
