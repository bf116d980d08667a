"""Requests that the query layer declares, since it reads them: `store.search`, `store.context`."""

from memlog.query.context.request import BuildContext as BuildContext
from memlog.query.search.request import Search as Search
