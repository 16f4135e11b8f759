"""moto's server with Glue's condition on the version of a table, which moto ignores.

Run with moto in the path: ``python tests/matrix/moto_server.py -H 127.0.0.1 -p PORT``.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import main

_update = GlueResponse.update_table
_alone = threading.Lock()


def update_table(response: Any) -> Any:
    """Refuse an update that names another version than the current one, as AWS does."""
    given = response.parameters.get("VersionId")
    names = response.parameters["DatabaseName"], response.parameters["TableInput"]["Name"]
    with _alone:
        current = response.glue_backend.get_table(*names).as_dict()["VersionId"]
        if given is not None and given != current:
            raise JsonRESTError("ConcurrentModificationException", f"the version is {current}")
        return _update(response)


GlueResponse.update_table = update_table

if __name__ == "__main__":
    main()
