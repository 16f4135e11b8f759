"""A selection is typed as with dbt: several words after one ``--select``."""

from __future__ import annotations

import click
import pytest

from dbt_arctic.cli.diff import diff
from dbt_arctic.cli.ingest import plan, replay
from dbt_arctic.cli.keep import keep


def selected(command: click.Command, *arguments: str) -> tuple[str, ...]:
    required = ["--base", "prod"] if command is diff else []
    found: tuple[str, ...] = command.make_context("x", [*required, *arguments]).params["select"]
    return found


@pytest.mark.parametrize("command", [diff, keep, plan, replay], ids=lambda command: str(command.name))
def test_a_selection_has_all_words_up_to_the_next_option(command: click.Command) -> None:
    assert selected(command, "--select", "orders", "tag:daily", "+x") == ("orders", "tag:daily", "+x")
    assert selected(command, "-s", "a", "b", "--target", "dev", "--select=c", "d") == ("a", "b", "c", "d")
    assert selected(command) == ()


def test_words_after_another_option_are_not_selected() -> None:
    with pytest.raises(click.UsageError, match="unexpected extra argument"):
        keep.make_context("keep", ["--select", "a", "--json", "orders"])


def test_an_exclusion_has_several_words_too() -> None:
    arguments = ["--base", "prod", "--exclude", "a", "b", "--select", "c", "--samples", "0"]
    found = diff.make_context("diff", arguments).params
    assert (found["exclude"], found["select"], found["samples"]) == (("a", "b"), ("c",), 0)
