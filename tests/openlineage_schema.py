"""What the specification 2-0-2 of OpenLineage requires of an event and of our facets, as JSON Schema.

Written from https://openlineage.io/spec: the required properties and their types. Facets may have more.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

URI = {"type": "string", "pattern": r"^https?://\S+$"}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
UUID = {"type": "string", "pattern": r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}


def an_object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": [*required]}


def facet(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return an_object({"_producer": URI, "_schemaURL": URI, **required}, optional)


def facets(**known: Any) -> dict[str, Any]:
    return {"type": "object", "properties": known, "additionalProperties": facet({})}


NAMED = {"namespace": TEXT, "name": TEXT}
INPUT_FIELD = an_object(
    {**NAMED, "field": TEXT},
    {
        "transformations": {
            "type": "array",
            "items": an_object({"type": {"enum": ["DIRECT", "INDIRECT"]}}, {"subtype": TEXT}),
        }
    },
)
DATASET_FACETS = facets(
    schema=facet({}, {"fields": {"type": "array", "items": an_object({"name": TEXT}, {"type": TEXT})}}),
    version=facet({"datasetVersion": TEXT}),
    columnLineage=facet(
        {
            "fields": {
                "type": "object",
                "additionalProperties": an_object({"inputFields": {"type": "array", "items": INPUT_FIELD}}),
            }
        }
    ),
)
STATISTICS = facets(outputStatistics=facet({}, {"rowCount": COUNT, "size": COUNT}))
RUN_FACETS = facets(
    parent=facet({"run": an_object({"runId": UUID}), "job": an_object(NAMED)}),
    errorMessage=facet({"message": {"type": "string"}, "programmingLanguage": TEXT}),
)
JOB_FACETS = facets(jobType=facet({"processingType": TEXT, "integration": TEXT}, {"jobType": TEXT}))
KINDS = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
EVENT = an_object(
    {
        "eventTime": TIME,
        "producer": URI,
        "schemaURL": URI,
        "run": an_object({"runId": UUID}, {"facets": RUN_FACETS}),
        "job": an_object(NAMED, {"facets": JOB_FACETS}),
    },
    {
        "eventType": {"enum": [*KINDS]},
        "inputs": {"type": "array", "items": an_object(NAMED, {"facets": DATASET_FACETS})},
        "outputs": {
            "type": "array",
            "items": an_object(NAMED, {"facets": DATASET_FACETS, "outputFacets": STATISTICS}),
        },
    },
)


def check_event(event: Any) -> None:
    """Raise an error unless the specification allows the event."""
    Draft202012Validator(EVENT).validate(event)
