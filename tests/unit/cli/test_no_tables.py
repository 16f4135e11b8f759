"""A command that finds no tables says where it looked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dbt_arctic.cli.options import no_tables_text

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator


class _Operator:
    def schemas(self, chosen: tuple[str, ...], everything: bool) -> list[str]:
        return list(chosen) or ["shop", "shop_ods"]


def _text(chosen: tuple[str, ...] = (), everything: bool = False) -> str:
    return no_tables_text(cast("Operator", _Operator()), chosen, everything)


def test_the_schemas_are_named_with_the_option_that_looks_in_all() -> None:
    assert _text() == "There are no tables in shop, shop_ods. To look in every schema of the catalog: --all"
    assert _text(("raw",)).startswith("There are no tables in raw.")


def test_nothing_more_is_advised_after_looking_everywhere() -> None:
    assert _text(everything=True) == "There are no tables yet."
