"""Each command of dbt and dbt-arctic in the documentation is accepted by the parser of its arguments."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from dbt.cli.main import cli

from dbt_arctic.cli.main import main
from tests.pages import HOW_TO, ROOT, Command, blocks, commands_of, spans

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
PARSERS: dict[str, click.Command] = {"dbt": cli, "dbt-arctic": main}


def refusal(command: Command, *, may_be_incomplete: bool = False) -> str | None:
    """What the parser says against a command; ``None`` if it would run.

    :param may_be_incomplete: whether the command may lack arguments that it requires, as in a text.
    """
    parser, name, arguments = PARSERS[command.program], command.program, command.arguments
    parent = None
    try:
        while True:
            context = parser.make_context(name, list(arguments), parent=parent)
            if not isinstance(parser, click.Group):
                return None
            name, found, arguments = parser.resolve_command(
                context, [*context._protected_args, *context.args]
            )
            if found is None:
                return f"no command {name}"
            parser, parent = found, context
    except click.exceptions.Exit:
        return None  # --version or --help
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError) as error:
        return None if may_be_incomplete else f"{command}: {error.format_message()}"
    except click.BadOptionUsage as error:
        is_missing = "requires an argument" in error.format_message()
        return None if may_be_incomplete and is_missing else f"{command}: {error.format_message()}"
    except click.ClickException as error:
        if "No such file" in error.format_message() or "does not exist" in error.format_message():
            return None  # a file of the project
        return f"{command}: {error.format_message()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_are_accepted(page: Path) -> None:
    refused = [
        f"{block.line}: {told}"
        for block in blocks(page)
        for command in block.commands
        if (told := refusal(command))
    ]
    refused += [told for command in spans(page) if (told := refusal(command, may_be_incomplete=True))]
    assert refused == []


def test_most_pages_have_commands() -> None:
    found = {
        page.name for page in HOW_TO.glob("*.md") if spans(page) or any(b.commands for b in blocks(page))
    }
    assert len(found) > 30


def test_the_page_on_testing_says_how_each_how_to_is_tested() -> None:
    text = (ROOT / "docs" / "explanation" / "testing.md").read_text(encoding="utf-8")
    table = text.partition("\n| how-to page |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`", row.split(" | ")[0])}
    assert named == {page.stem for page in HOW_TO.glob("*.md")}
    modules = (ROOT / "tests" / "dbt" / "keyed").glob("test_followed_*pages.py")
    followed = "".join(module.read_text(encoding="utf-8") for module in modules)
    rows = [row for row in table.splitlines() if "| followed" in row]
    names = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert [name for name in names if f'"{name}"' not in followed] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dbt-arctic statuss", "No such command 'statuss'"),
        ("dbt-arctic compact --budgets 5m", "No such option"),
        ("dbt-arctic history a b", "unexpected extra argument"),
        ("dbt-arctic rollback", "Missing argument"),
        ("dbt-arctic history --limit x", "not a valid integer"),
        ("dbt-arctic ingest replays", "No such command 'replays'"),
        ("dbt runn", "No such command 'runn'"),
        ("dbt run --selects orders", "No such option"),
        ("dbt run-operation compact --args '{table'", "args"),
    ],
)
def test_a_wrong_command_is_found(line: str, said: str) -> None:
    (command,) = commands_of(line)
    assert said in str(refusal(command))


def test_a_command_in_a_text_may_lack_an_argument_but_has_no_wrong_option() -> None:
    (short,), (wrong,) = (list(commands_of(f"dbt-arctic rollback{more}")) for more in ("", " --yess"))
    assert refusal(short, may_be_incomplete=True) is None
    assert "--yess" in str(refusal(wrong, may_be_incomplete=True))
