"""Explains errors of AWS's client, with which Iceberg reads S3 and Glue, and what to do. Pure functions.

An object or an entry of Glue that does not exist, or exists already, is no failure of the service: other
modules recognise Iceberg's exceptions for these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ArcticError, CatalogUnavailable

_CLASS = re.compile(r"\bsoftware\.amazon\.awssdk\.[\w.$]*Exception\b")
_SERVICE = re.compile(r"\(Service: (?:Amazon ?)?([\w ]+?)[,;)]")
_STATUS = re.compile(r"Status Code: (\d{3})")
_INTERRUPTED = "AbortedException"
"""A task that was cancelled, not a failure of the service."""
_OF_PROFILE = (
    "`s3` in the catalog of the profile (access_key_id, secret_access_key, session_token), or AWS's default "
    "credentials (AWS_ACCESS_KEY_ID, ..)"
)
_OF_SERVER = "A Spark server of method: connect or thrift has credentials of its own"


class _Trouble(NamedTuple):
    """A kind of failure.

    :param words: recognise it.
    :param what: the sentence for the user, in which ``{}`` is the service.
    """

    words: re.Pattern[str]
    what: str
    fix: str


_TROUBLES = (
    _Trouble(
        re.compile(r"RequestTimeTooSkewed|difference between the request time|Signature (not yet|expired)"),
        "{} refused a request because of the time in it.",
        "synchronize the clock of Spark's machine (NTP), then run again",
    ),
    _Trouble(
        re.compile(
            r"ExpiredToken|\b[Tt]oken (has|is) expired|token included in the request is "
            r"expired|RequestExpired"
        ),
        "The credentials for {} have expired.",
        f"get new ones, and set them in {_OF_PROFILE}; then run again. {_OF_SERVER}. For runs longer than a "
        "token lives, use a role or a profile of AWS, which the client renews",
    ),
    _Trouble(
        re.compile(
            r"InvalidAccessKeyId|SignatureDoesNotMatch|UnrecognizedClient|InvalidClientTokenId|InvalidToken\b"
            r"|token included in the request is invalid|Access Key Id you provided does not exist"
            r"|signature we calculated does not match|Unable to load credentials|Status Code: 401"
        ),
        "{} does not accept the credentials, or there are none.",
        f"check {_OF_PROFILE}. {_OF_SERVER}",
    ),
    _Trouble(
        re.compile(
            r"AccessDenied|Access Denied|not authorized to perform|Insufficient Lake Formation|Code: 403"
        ),
        "{} does not permit this.",
        "grant the identity that Spark uses the permissions for the bucket, its keys of KMS and, with "
        f"Glue, the database and its tables; or use another identity: {_OF_PROFILE}. {_OF_SERVER}",
    ),
    _Trouble(
        re.compile(r"NoSuchBucket|specified bucket does not exist"),
        "The bucket does not exist.",
        "correct `warehouse` or `s3.endpoint` of the catalog in the profile, or create the bucket",
    ),
    _Trouble(
        re.compile(
            r"Status Code: 30[17]\b|PermanentRedirect|AuthorizationHeaderMalformed|the region .* is wrong"
            r"|must be addressed using the specified endpoint|Unable to load region"
        ),
        "{} is not in the region to which the request was sent, or the region is missing.",
        "set `region` of `s3` (of the catalog itself with type: glue) in the profile, or AWS_REGION",
    ),
    _Trouble(
        re.compile(r"SlowDown|Slow Down|reduce your request rate|Throttl|Rate exceeded|Code: (503|429)\b"),
        "{} gets more requests than it takes.",
        "run again later; if it lasts, use fewer `threads`, or raise s3.retry.num-retries "
        "in catalog_properties",
    ),
    _Trouble(
        re.compile(
            r"Unable to execute HTTP request|Status Code: 5\d\d|Api\w*TimeoutException|Read timed out"
        ),
        "{} does not answer, or fails.",
        "check `endpoint` and `region` of `s3` in the profile, the network and the store itself; then run "
        "again",
    ),
    _Trouble(
        # A request without a body (HEAD) has an answer without a reason.
        re.compile(r"null \(Service: S3, Status Code: 400"),
        "{} refused a request without a reason.",
        f"check the region and the endpoint, and that the credentials have not expired: {_OF_PROFILE}. "
        f"{_OF_SERVER}",
    ),
)


def aws_error(causes: Sequence[Cause], where: str) -> ArcticError | None:
    """The error if AWS's client failed for a reason that a user can remove; otherwise ``None``."""
    for cause in reversed(causes):
        text = f"{cause.java_class}: {cause.message}"
        thrown = _CLASS.search(text)
        if thrown is None or thrown[0].endswith(_INTERRUPTED):
            continue
        # A message of Spark may contain more than one exception.
        reason = text[thrown.start() :].partition("\n")[0]
        trouble = next((one for one in _TROUBLES if one.words.search(reason)), None)
        if trouble is None:
            continue
        named = _SERVICE.search(reason)
        what = trouble.what.format(named[1] if named else "the store or Glue")
        return CatalogUnavailable(
            what[0].upper() + what[1:],
            where=where,
            why=thrown[0].rpartition(".")[2] + reason[len(thrown[0]) :],
            fix=trouble.fix,
        )
    return None


__all__ = ["aws_error"]
