"""What dbt imports as ``dbt.include.arctic``: where this adapter's macros are."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
