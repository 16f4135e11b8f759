"""Options for dbt's selection that take several words, like those of dbt: ``--select orders customers``.

Only for commands without arguments of their own, because these take words, too. dbt's class for such options
imports all of dbt, which takes a second; this command line starts in a tenth of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import click


class SelectingCommand(click.Command):
    """A command whose ``--select`` and ``--exclude`` take all words up to the next option."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with an option for each word of a selection."""
        options = [
            name
            for option in self.params
            if isinstance(option, click.Option) and option.name in ("select", "exclude")
            for name in option.opts
        ]
        return super().parse_args(context, one_by_one(args, options))


def one_by_one(args: Sequence[str], options: Sequence[str]) -> list[str]:
    """Repeat an option before each of its words.

    >>> one_by_one(["--select", "a", "b", "--json"], ["--select", "-s"])
    ['--select', 'a', '--select', 'b', '--json']
    """
    found: list[str] = []
    current: str | None = None
    is_first = False
    for arg in args:
        name = arg.partition("=")[0]
        if name in options:
            current, is_first = name, name == arg
        elif current is not None and (is_first or not arg.startswith("-")):
            found += [] if is_first else [current]
            is_first = False
        else:
            current = None
        found.append(arg)
    return found


select_option = click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="MODELS",
    help="Only these models, in dbt's syntax: --select orders tag:daily.  [default: all]",
)
