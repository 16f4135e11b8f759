"""An error of AWS's client (S3, Glue) says what to do, unless it is about one object or entry."""

from __future__ import annotations

import re

import pytest

from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import CatalogUnavailable, CommitStateUnknown, StatementError
from tests.unit.engine.test_faults import ICEBERG, WRITING, chain

S3 = "software.amazon.awssdk.services.s3.model."
GLUE = "software.amazon.awssdk.services.glue.model."
CORE = "software.amazon.awssdk.core.exception."
REST = "Request ID: C7VGJA131SXAAXK1, Extended Request ID: V3Uk6=) (SDK Attempt Count: 1)"

FAILURES = [
    (
        S3 + "S3Exception",
        f"The provided token has expired. (Service: S3, Status Code: 400, {REST}",
        "get new ones",
    ),
    (
        GLUE + "GlueException",
        f"The security token included in the request is expired (Service: Glue, Status Code: 400, {REST}",
        "get new ones",
    ),
    (
        GLUE + "GlueException",
        f"The security token included in the request is invalid. (Service: Glue, Status Code: 400, {REST}",
        "AWS_ACCESS_KEY_ID",
    ),
    (
        S3 + "S3Exception",
        f"The AWS Access Key Id you provided does not exist in our records. (Service: S3, Status Code: "
        f"403, {REST}",
        "check `s3`",
    ),
    (
        CORE + "SdkClientException",
        "Unable to load credentials from any of the providers in the chain AwsCredentialsProviderChain(..)",
        "check `s3`",
    ),
    (S3 + "S3Exception", f"Access Denied (Service: S3, Status Code: 403, {REST}", "grant"),
    (S3 + "S3Exception", "null (Service: S3, Status Code: 403, Request ID: null)", "grant"),
    (
        GLUE + "AccessDeniedException",
        "User: arn:aws:iam::1:user/x is not authorized to perform: glue:GetTable on resource: "
        "arn:aws:glue:.. "
        f"(Service: Glue, Status Code: 400, {REST}",
        "grant",
    ),
    (
        S3 + "NoSuchBucketException",
        f"The specified bucket does not exist (Service: S3, Status Code: 404, {REST}",
        "create the bucket",
    ),
    (
        S3 + "S3Exception",
        "The bucket you are attempting to access must be addressed using the specified endpoint. Please "
        "send all "
        f"future requests to this endpoint. (Service: S3, Status Code: 301, {REST}",
        "AWS_REGION",
    ),
    (
        CORE + "SdkClientException",
        "Unable to load region from any of the providers in the chain DefaultAwsRegionProviderChain(..)",
        "AWS_REGION",
    ),
    (
        S3 + "S3Exception",
        f"Please reduce your request rate. (Service: S3, Status Code: 503, {REST}",
        "`threads`",
    ),
    (GLUE + "ThrottlingException", f"Rate exceeded (Service: Glue, Status Code: 400, {REST}", "`threads`"),
    (S3 + "S3Exception", "null (Service: S3, Status Code: 500, Request ID: null)", "`endpoint`"),
    (
        CORE + "SdkClientException",
        "Unable to execute HTTP request: Connect to 127.0.0.1:9000 [/127.0.0.1] failed: Connection refused",
        "`endpoint`",
    ),
    (S3 + "S3Exception", f"null (Service: S3, Status Code: 400, {REST}", "have not expired"),
    (
        S3 + "S3Exception",
        "The difference between the request time and the current time is too large. "
        f"(Service: S3, Status Code: 403, {REST}",
        "NTP",
    ),
]


@pytest.mark.parametrize(("java_class", "message", "fix"), FAILURES)
@pytest.mark.parametrize("way", ["session", "task"])
def test_a_failure_of_the_store_or_glue_says_what_to_do(
    java_class: str, message: str, fix: str, way: str
) -> None:
    thrown = chain((java_class, message), ("java.net.ConnectException", "Connection refused"))
    # A server sends the failure of a task as one text.
    task = f"Job aborted due to stage failure: Task 0 in stage 1.0: {java_class}: {message}\n\tat a.B(C:1)"
    causes = [
        Cause(*WRITING),
        *(thrown if way == "session" else chain(("org.apache.spark.SparkException", task))),
    ]
    error = classify(causes, "INSERT INTO t SELECT 1").error
    assert type(error) is CatalogUnavailable
    assert fix in error.fix
    assert message in error.why
    assert error.where == "INSERT INTO t SELECT 1"
    service = re.search(r"Service: (\w+)", message)
    assert service is None or service[1] in error.what or "bucket" in error.what


def test_an_object_or_entry_that_is_missing_or_exists_is_no_failure_of_the_service() -> None:
    missing = chain(
        (ICEBERG + "NotFoundException", "Location does not exist: s3://b/a.parquet"),
        (S3 + "NoSuchKeyException", "null (Service: S3, Status Code: 404, Request ID: null)"),
    )
    error = classify(missing, "SELECT 1").error
    assert type(error) is StatementError
    assert "restore the file" in error.fix
    for name in ("AlreadyExistsException", "EntityNotFoundException"):
        other = chain((ICEBERG + name, "Cannot commit"), (GLUE + name, "x (Service: Glue, Status Code: 400)"))
        assert type(classify(other, "CREATE TABLE t").error) is StatementError
    aborted = chain((CORE + "AbortedException", "Thread was interrupted"))
    assert type(classify(aborted, "SELECT 1").error) is StatementError


def test_a_commit_to_glue_without_an_answer_stays_in_doubt() -> None:
    causes = chain(
        (
            ICEBERG + "CommitStateUnknownException",
            "Cannot determine whether the commit was successful or not",
        ),
        (CORE + "SdkClientException", "Unable to execute HTTP request: Read timed out"),
    )
    assert type(classify(causes, "INSERT INTO t SELECT 1").error) is CommitStateUnknown
