"""Documentation, docstrings, comments and messages use plain words; links lead to headings that exist.

This includes the comments of tests, benchmarks, the example project and the build files.

Every public module, class and function of the package has a docstring that begins with a summary.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SINGLE = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "example_project/README.md",
)
MODULES = sorted((ROOT / "dbt_arctic").rglob("*.py"))
OTHERS = sorted(
    path
    for folder in ("tests", "benchmarks", "example_project")
    for path in (ROOT / folder).rglob("*.py")
    if "target" not in path.parts
)
SETTINGS = [
    *(ROOT / name for name in ("Makefile", "pyproject.toml", "setup.py", ".ci/machine", ".ci/run")),
    *(ROOT / "example_project" / name for name in ("dbt_project.yml", "profiles.yml")),
]
MACROS = sorted((ROOT / "macros").rglob("*.sql"))
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in _SINGLE)])
INSTEAD = {
    r"told|tells?|asked|asks of": "reported, requested; or name who does what",
    r"somebody|someone|anybody|nobody|everybody|whoever": "the user, another run, another program",
    r"anew": "again; rebuild, recompute, rewrite",
    r"(?<!as )such(?! as)": "like this; or name it",
    r"at work|hands? (?:it |them |deletes )?on": "running, in progress; passes downstream",
    r"by hand": "yourself, manually",
    r"of a view that": "if a view",
    r"beside": "concurrently with, in addition to, next to",
    r"otherwise than|besides": "differently from; in addition",
    r"not as good as|let alone|in vain|as ever": "a plain statement",
}
"""Words that the style of the documentation avoids, and what to write."""
INSTEAD_IN_CODE = {
    pattern: instead
    for pattern, instead in INSTEAD.items()
    if "such" not in pattern and "view" not in pattern
} | {
    r"who(?:m|se turn)?": "name who does it: a run, a reader, the caller",
    r"be it|what becomes of|is there(?= that)": "a plain statement",
    r"told of|begun anew": "recorded, repeated",
}
"""Words that docstrings and comments avoid. They may name what they describe: a view that, such a table."""
NO_NAMES = frozenset(
    word
    for line in (
        "after alike anew asked asking begun beside besides confined done early either elsewhere fits found",
        "gathered given gone held inside judged kept known late left look looked looks made met narrowed",
        "others past quick ran seen sent settled shown small taken tell tells told took tried",
        "before near waiting was who written moved moves reading sums trimmed understand understood wraps",
    )
    for word in line.split()
)
"""Words that alone do not say what a module, a class or a function is: `found` is what of what?"""
PROPER_NAMES = ("Iceberg", "Java", "Maven", "Spark")
LONGEST = 45
"""Words in a sentence. Longer ones are easier to read as two, or as a list."""

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_JINJA_COMMENT = re.compile(r"\{#-?(.*?)-?#\}", re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\([^)]*\)")


def prose(page: Path) -> list[str]:
    """The paragraphs, list items and table cells of a page, without code and the targets of links."""
    text = _CODE.sub("CODE", _FENCE.sub("\n", page.read_text(encoding="utf-8")))
    text = _LINK.sub(lambda link: "" if link[1] else link[2], text)
    text = re.sub(r"^( {4}\S.*|#.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\|(.*)\|$", lambda row: "\n\n" + row[1].replace("|", "\n\n"), text, flags=re.MULTILINE)
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def texts_of(source: str) -> Iterator[str]:
    """The docstrings and comments of a module, without code and doctests; a block of comments is one text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value if isinstance(node.value.value, str) else ""
            text = re.sub(r"^ *>>>.*(?:\n(?! *$).*)*", "", text, flags=re.MULTILINE)
            yield " ".join(_CODE.sub("CODE", re.sub(r":param \w+:", "", text.replace("``", "`"))).split())
    comments = re.sub(r"\n *# *", " ", "\n".join(_comments(source)))
    yield from (_CODE.sub("CODE", comment).strip(" #") for comment in comments.splitlines())


def messages_of(source: str) -> Iterator[str]:
    """The strings of a module that have several words and are no docstrings: messages, labels and SQL."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        )
        if is_text and len(node.value.split()) > 2:
            yield " ".join(_CODE.sub("CODE", node.value).split())


def fixes_of(source: str) -> Iterator[str]:
    """The first literal part of each text that is given to an error as ``fix``, or assigned to ``fix``."""
    for node in ast.walk(ast.parse(source)):
        is_named = isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["fix"]
        if is_named or (isinstance(node, ast.keyword) and node.arg == "fix"):
            value = node.value  # type: ignore[attr-defined] # of both
            values = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            parts = [one.values[0] if isinstance(one, ast.JoinedStr) else one for one in values]
            yield from (str(one.value) for one in parts if isinstance(one, ast.Constant))


def _comments(source: str) -> Iterator[str]:
    """Comments; one that continues the line above begins with a ``#`` of its own line."""
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            stands_alone = not token.line[: token.start[1]].strip()
            yield token.string if stands_alone and token.start[0] == last + 1 else token.string[1:]
            last = token.start[0] if stands_alone else -1


def found_in(text: str) -> list[str]:
    """The words of ``INSTEAD_IN_CODE`` in a text, with what is around them and what to write."""
    return [
        f"{match[0]!r} in {text[max(match.start() - 40, 0) : match.end() + 40]!r}; write: {instead}"
        for pattern, instead in INSTEAD_IN_CODE.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    ]


def vague_names(module: str, tree: ast.Module) -> list[str]:
    """The names of a module, its classes and its functions that consist of words of ``NO_NAMES``."""
    names = [module, *(one.name for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef))]
    return [
        name
        for name in names
        if (words := re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))
        and {word.lower() for word in words} <= NO_NAMES
        and not name.startswith("_" if name == name.lower() else "__")
    ]


def without_summary(tree: ast.Module, documented: set[str]) -> Iterator[str]:
    """Public definitions of a module without a summary.

    :param documented: methods that some class of the package documents. An implementation need not repeat it.
    """
    yield from _without_summary(tree, documented, "module", is_method=False)


def _without_summary(
    node: ast.Module | ast.ClassDef | ast.FunctionDef, documented: set[str], name: str, *, is_method: bool
) -> Iterator[str]:
    summary = (ast.get_docstring(node) or "").split("\n\n")[0]
    has_title = isinstance(node, ast.ClassDef) and any(
        isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "title" for one in node.body
    )
    if not (has_title or (is_method and not summary and name in documented)) and (
        not summary or summary.startswith((":", ">>>"))
    ):
        yield name
    if not isinstance(node, ast.FunctionDef):
        for one in node.body:
            if isinstance(one, ast.ClassDef | ast.FunctionDef) and not one.name.startswith("_"):
                yield from _without_summary(
                    one, documented, one.name, is_method=isinstance(node, ast.ClassDef)
                )


def documented_methods(trees: list[ast.Module]) -> set[str]:
    """The names of the methods that a class of some modules documents."""
    return {
        method.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_avoids_the_words_of_the_list(page: Path) -> None:
    found = [
        f"{match[0]!r} in {block[max(match.start() - 40, 0) : match.end() + 40]!r}; write: {instead}"
        for block in prose(page)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", block, re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    sentences = [one for block in prose(page) for one in re.split(r"(?<=[.:;?!)*]) +(?=\S)", block)]
    assert [one for one in sentences if len(one.split()) > LONGEST] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings(page: Path) -> None:
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        if not linked.is_file() or anchor not in anchors(linked):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("macros", MACROS, ids=lambda macros: str(macros.relative_to(ROOT)))
def test_comments_of_macros_avoid_the_words_of_the_list(macros: Path) -> None:
    comments = _JINJA_COMMENT.findall(macros.read_text(encoding="utf-8"))
    assert found_in(_CODE.sub("CODE", "\n".join(" ".join(comment.split()) for comment in comments))) == []


@pytest.mark.parametrize("module", [*MODULES, *OTHERS], ids=lambda module: str(module.relative_to(ROOT)))
def test_docstrings_and_comments_avoid_the_words_of_the_list(module: Path) -> None:
    assert found_in("\n".join(texts_of(module.read_text(encoding="utf-8")))) == []


def test_names_say_what_they_name() -> None:
    names = [
        f"{module.relative_to(ROOT)}: {name}"
        for module in (*MODULES, *OTHERS)
        for name in vague_names(
            module.stem.removeprefix("test_"), ast.parse(module.read_text(encoding="utf-8"))
        )
    ]
    assert names == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_messages_avoid_the_words_of_the_list(module: Path) -> None:
    assert found_in("\n".join(messages_of(module.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_fix_begins_in_lower_case(module: Path) -> None:
    fixes = fixes_of(module.read_text(encoding="utf-8"))
    assert [
        text for text in fixes if re.match(r"[A-Z][a-z]", text) and text.split()[0] not in PROPER_NAMES
    ] == []


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.name)
def test_comments_of_build_files_avoid_the_words_of_the_list(settings: Path) -> None:
    comments = re.findall(r"(?:^|\s)#+ (.*)$", settings.read_text(encoding="utf-8"), re.MULTILINE)
    assert comments, "the pattern finds comments"
    assert found_in(_CODE.sub("CODE", "\n".join(comments))) == []


def test_public_definitions_have_a_summary() -> None:
    packages: dict[str, dict[Path, ast.Module]] = defaultdict(dict)
    for module in MODULES:
        package = module.relative_to(ROOT / "dbt_arctic").parts[0]
        packages[package][module] = ast.parse(module.read_text(encoding="utf-8"))
    missing = [
        f"{module.relative_to(ROOT)}: {name}"
        for trees in packages.values()
        for documented in [documented_methods(list(trees.values()))]
        for module, tree in trees.items()
        for name in without_summary(tree, documented)
    ]
    assert missing == []


def test_the_words_are_found_in_docstrings_and_comments_and_not_in_code() -> None:
    source = '''
told = "told"
"""Nobody is ``told`` of it.

:param told: a value.

>>> told
'told'
"""
# Whoever reads
# this `anew`
x = 1  # besides
'''
    assert list(texts_of(source)) == ["Nobody is CODE of it. a value.", "Whoever reads this CODE", "besides"]


def test_the_words_are_found_in_messages() -> None:
    source = '"""Nobody reads it."""\nraise Error(f"{name}: nobody can tell", "told")\n'
    assert list(messages_of(source)) == [": nobody can tell"]


def test_the_fixes_of_errors_are_found() -> None:
    source = 'Error("What", fix="Run it" if ready else f"Wait for {name}", why="Not")\nother(fix=found)\n'
    assert list(fixes_of(source + 'fix = "Look"\nwhy = "Not"')) == ["Look", "Run it", "Wait for "]


def test_a_definition_without_a_summary_is_found() -> None:
    source = '''
"""A module."""

class Error:
    title = "a title is a summary"

class Interface:
    """An interface."""
    def documented(self): ...
    def other(self):
        """:param self: no summary."""

def _private(): ...
def public():
    def inner(): ...
'''
    assert list(without_summary(ast.parse(source), {"documented", "other"})) == ["other", "public"]
    assert list(without_summary(ast.parse(""), set())) == ["module"]


def test_a_name_that_says_nothing_is_found() -> None:
    classes = ["class Seen: ...", "class _Kept: ...", "class SeenRows: ..."]
    source = "\n".join([*classes, "def made(): ...", "def _made(): ...", "def made_of(): ..."])
    assert vague_names("others", ast.parse(source)) == ["others", "Seen", "_Kept", "made"]
    assert vague_names("other_programs", ast.parse("")) == []


def test_a_word_of_the_list_is_found_in_code_comments() -> None:
    assert [one.split(" in ")[0] for one in found_in("The caller is told anew.")] == ["'told'", "'anew'"]


def test_the_words_are_found_in_prose_and_not_in_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Told\n\nIt is `told` to\n[nobody](such.md).\n\n```\nanew\n```\n\n| a | by hand |\n")
    assert prose(page) == ["It is CODE to nobody.", "a", "by hand"]
    with pytest.raises(AssertionError, match="nobody"):
        test_a_page_avoids_the_words_of_the_list(page)


def test_an_anchor_is_the_one_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## `dbt-arctic compact [TABLE]...`\n```\n# no heading\n```\n### Late, and `lost`\n")
    assert anchors(page) == {"dbt-arctic-compact-table", "late-and-lost"}
