from collections.abc import Iterator

import pytest

from tests.support.provider import Provider, serving


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as server:
        yield server
