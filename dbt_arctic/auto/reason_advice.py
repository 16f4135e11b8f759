"""For each reason code: what a user can do about it, in one sentence.

A reason may have a fix of its own, which knows the query and comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

_ONCE = "Nothing: this happens once."

ADVICE: Mapping[str, str] = {
    "approximate": "Use an exact aggregate, or accept `approximate` in the setting `auto`.",
    "build": "Nothing: the first run builds the table.",
    "changed-columns": _ONCE,
    "changed-sql": _ONCE,
    "correlated": "Write the subquery as a join with a grouped subquery.",
    "costly-guard": "Make the subquery a model of its own, so that only its changes are read.",
    "differed": "Nothing: this run corrects all rows. Please report the difference.",
    "extreme": "Nothing: a group lost its minimum or maximum, so its other rows must be read.",
    "failed": "Use try_cast(), try_divide() or nullif() in the expression that the error names.",
    "few-rows": "Nothing: reading all rows is fastest here. `auto: strict` refreshes incrementally anyway.",
    "first-plan": _ONCE,
    "float-sum": "Cast the argument to a decimal, or accept `float_sum` in the setting `auto`.",
    "found-late": "See what the code in brackets requires, then run once with --full-refresh.",
    "guard": "Join with a relation that selects the rows, in place of a value that all rows depend on.",
    "history-gone": "Keep versions of the upstream for longer than the time between two runs.",
    "limit": "End the ORDER BY with the model's key, or leave the LIMIT to the readers of the model.",
    "many-changes": "Nothing: reading everything is faster. Or raise full_refresh_above.",
    "many-keys": "Nothing: reading everything is faster. Or raise full_refresh_above.",
    "no-key": "Select the column that unique_key names, or name one that is selected.",
    "not-a-query": "Write the model as a single SELECT.",
    "not-in": "Use EXISTS or NOT EXISTS.",
    "not-parsed": "Write the construct in another way, and report it.",
    "not-replaced": "Write the relation or the time function plainly, without a comment inside.",
    "not-resolved": "Qualify the columns by aliases, and list them in place of *.",
    "not-unique": "Remove the rows that share a key, or declare another key of the table.",
    "order-dependent": "Use min(), max() or a sorted form, or accept `order_dependent` in `auto`.",
    "partial": "Run without --empty and --sample.",
    "qualified-column": "Give the relation an alias, and qualify its columns by the alias.",
    "random": "Compute the value outside of the model. A hash of the key is stable.",
    "recursive": "Join the table with itself, once for each level.",
    "session": "Pass the value as a variable of dbt.",
    "setting": "Remove the setting from spark_conf, or read a table in place of the session's object.",
    "slower": "Nothing: reading everything has been faster. `auto: strict` refreshes incrementally anyway.",
    "small": "Nothing: the auxiliary view is small, so reading all of it is fastest.",
    "ties": "End the ORDER BY with a key of its rows, or set auto={'ties': 'by_key'}.",
    "time": "Pass the date as a variable of dbt, or use the current time only in WHERE.",
    "too-large": "Make the inner aggregates models of their own.",
    "unchanged": "Nothing: there is nothing to do.",
    "unknown-function": "Use built-in functions of Spark.",
    "unknown-relation": "Read a table, a view or a model of the profile's catalog.",
    "unsupported": "Write the construct as the page on reason codes shows.",
    "without-state": _ONCE,
    "written-to": "Nothing: this happens once. Write to the model's upstreams in place of its table.",
}
"""Advice by reason code."""

__all__ = ["ADVICE"]
