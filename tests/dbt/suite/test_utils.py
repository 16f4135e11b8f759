"""The suite's classes on dbt's cross-database macros and its types.

In the short form, `test_macros_of_ours.py` has the models of those on macros and types that we define.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.utils import fixture_get_intervals_between
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampAware
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import (
    BaseEscapeSingleQuotesBackslash,
    BaseEscapeSingleQuotesQuote,
)
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod

TIMESTAMP_SQL = """
select current_timestamp() as current_timestamp,
    current_timestamp::timestamp as current_timestamp_in_utc_backcompat,
    current_timestamp::timestamp as current_timestamp_backcompat
"""


def in_iso(sql: str) -> str:
    """With dates as Spark reads them: ISO 8601."""
    return sql.replace("09/01/2023", "2023-09-01").replace("09/12/2023", "2023-09-12")


@pytest.mark.long
class TestTypeBigInt(BaseTypeBigInt):
    pass


@pytest.mark.long
class TestTypeBoolean(BaseTypeBoolean):
    pass


@pytest.mark.long
class TestTypeFloat(BaseTypeFloat):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """A seed's numbers are BIGINT or DOUBLE unless it says more."""
        return {"seeds": {"+column_types": {"float_col": "float"}}}


@pytest.mark.long
class TestTypeInt(BaseTypeInt):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """A seed's numbers are BIGINT or DOUBLE unless it says more."""
        return {"seeds": {"+column_types": {"int_col": "int"}}}


@pytest.mark.long
class TestTypeNumeric(BaseTypeNumeric):
    pass


@pytest.mark.long
class TestTypeString(BaseTypeString):
    pass


@pytest.mark.long
class TestTypeTimestamp(BaseTypeTimestamp):
    pass


@pytest.mark.long
class TestAnyValue(BaseAnyValue):
    pass


@pytest.mark.long
class TestArrayAppend(BaseArrayAppend):
    pass


@pytest.mark.long
class TestArrayConcat(BaseArrayConcat):
    pass


@pytest.mark.long
class TestArrayConstruct(BaseArrayConstruct):
    pass


@pytest.mark.long
class TestBoolOr(BaseBoolOr):
    pass


@pytest.mark.long
class TestCast(BaseCast):
    pass


@pytest.mark.long
class TestCastBoolToText(BaseCastBoolToText):
    pass


@pytest.mark.long
class TestConcat(BaseConcat):
    pass


@pytest.mark.long
class TestCurrentTimestampAware(BaseCurrentTimestampAware):
    pass


@pytest.mark.long
class TestDate(BaseDate):
    pass


@pytest.mark.long
class TestDateSpine(BaseDateSpine):
    pass


@pytest.mark.long
class TestDateTrunc(BaseDateTrunc):
    pass


@pytest.mark.long
class TestDateAdd(BaseDateAdd):
    pass


@pytest.mark.long
class TestDateDiff(BaseDateDiff):
    pass


@pytest.mark.long
class TestEquals(BaseEquals):
    pass


@pytest.mark.long
class TestEscapeSingleQuotesQuote(BaseEscapeSingleQuotesQuote):
    pass


@pytest.mark.long
class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    pass


@pytest.mark.long
class TestExcept(BaseExcept):
    pass


@pytest.mark.long
class TestGenerateSeries(BaseGenerateSeries):
    pass


@pytest.mark.long
class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = fixture_get_intervals_between.models__test_get_intervals_between_sql
        return {
            "test_get_intervals_between.yml": (
                fixture_get_intervals_between.models__test_get_intervals_between_yml
            ),
            "test_get_intervals_between.sql": self.interpolate_macro_namespace(
                in_iso(sql),
                "get_intervals_between",
            ),
        }


@pytest.mark.long
class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    pass


@pytest.mark.long
class TestHash(BaseHash):
    pass


@pytest.mark.long
class TestIntersect(BaseIntersect):
    pass


@pytest.mark.long
class TestLastDay(BaseLastDay):
    pass


@pytest.mark.long
class TestLength(BaseLength):
    pass


@pytest.mark.long
class TestListagg(BaseListagg):
    pass


@pytest.mark.long
class TestMixedNullCompare(BaseMixedNullCompare):
    pass


@pytest.mark.long
class TestNullCompare(BaseNullCompare):
    pass


@pytest.mark.long
class TestPosition(BasePosition):
    pass


@pytest.mark.long
class TestReplace(BaseReplace):
    pass


@pytest.mark.long
class TestRight(BaseRight):
    pass


@pytest.mark.long
class TestSafeCast(BaseSafeCast):
    pass


class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    pass


@pytest.mark.long
class TestSplitPart(BaseSplitPart):
    pass


@pytest.mark.long
class TestStringLiteral(BaseStringLiteral):
    pass


@pytest.mark.long
class TestCurrentTimestamps(BaseCurrentTimestamps):
    """Spark's TIMESTAMP is an instant, so there is one current timestamp for all three."""

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return TIMESTAMP_SQL

    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return {
            "current_timestamp": "timestamp",
            "current_timestamp_in_utc_backcompat": "timestamp",
            "current_timestamp_backcompat": "timestamp",
        }


class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass
