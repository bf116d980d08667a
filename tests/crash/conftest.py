"""Tests of failure take long: `make test-deep` runs them."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.deep)
