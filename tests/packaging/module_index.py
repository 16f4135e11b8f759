"""Writes the page that lists every module: ``python -m tests.packaging.module_index``.

Each module has the first sentence of its docstring, and the names that it defines for others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dbt_arctic"
PAGE = ROOT / "docs" / "contributing" / "modules.md"
INTRODUCTION = """# All modules

Each module, what it is for, and the classes and functions that other modules use. The layers are in the order
of [the picture](../explanation/architecture.md#overview), and the packages of the planner in that of their
imports. Search this page for a word or a name. It is generated: `python -m tests.packaging.module_index`.
"""
ORDER = (
    *("cli", "adapter", "maintenance", "compaction", "scheduling", "auto", "sources", "refresh", "store"),
    *("planner", "planner/spark", "planner/algebra", "planner/typing", "planner/frontend"),
    *("planner/properties", "planner/delta", "planner/delta/rules", "planner/auxiliary"),
    *("keyed", "brokers", "databases", "engine", "catalog", "_entry", ""),
)
_END_OF_SENTENCE = re.compile(r"(?<!et al)\.(?=\s|$)")
_COMMENT = re.compile(r"\{#-?(.*?)-?#\}", re.DOTALL)
_MACRO = re.compile(r"\{%-? *(?:macro|materialization) +(\w+)")


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION]
    for folder in ORDER:
        modules = sorted(one for one in (PACKAGE / folder).glob("*.py") if one.name != "__init__.py")
        rows = [_row(module.relative_to(PACKAGE), *_described(module)) for module in modules]
        parts.append(
            _section(f"`{folder or 'dbt_arctic'}`", _first_sentence(PACKAGE / folder / "__init__.py"), rows)
        )
    for folder in sorted({path.parent for path in (ROOT / "macros").rglob("*.sql")}):
        files = [(path, path.read_text()) for path in sorted(folder.glob("*.sql"))]
        rows = [_row(path.relative_to(ROOT), _of_macros(text), _MACRO.findall(text)) for path, text in files]
        parts.append(_section(f"`{folder.relative_to(ROOT)}`", "", rows))
    return "\n".join(parts)


def _section(title: str, sentence: str, rows: list[str]) -> str:
    head = f"## {title}\n" + (f"{sentence}\n" if sentence else "")
    return f"{head}\n| module | what it is for | defines |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _row(path: Path, sentence: str, names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names)
    return f"| `{path.as_posix()}` | {sentence} | {shown} |".replace("|  |", "| |")


def _described(module: Path) -> tuple[str, list[str]]:
    tree = ast.parse(module.read_text())
    return _first_sentence(module), list(_public(tree))


def _first_sentence(module: Path) -> str:
    return _sentence(ast.get_docstring(ast.parse(module.read_text())) or "")


def _of_macros(text: str) -> str:
    """The first sentence of the comment that a file of macros begins with."""
    comment = _COMMENT.match(text)
    sentence = _sentence(comment[1].strip() if comment else "")
    first = sentence[:1] if sentence.startswith("dbt") else sentence[:1].upper()
    return first + sentence[1:] + ("." if sentence and not sentence.endswith(".") else "")


def _sentence(text: str) -> str:
    summary = " ".join(text.split("\n\n")[0].split())
    end = _END_OF_SENTENCE.search(summary)
    sentence = summary if end is None else summary[: end.end()]
    return sentence.replace("``", "`").replace("|", "\\|")


def _public(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def main() -> None:
    PAGE.write_text(page())
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
