"""What operations take: a request for each, grouped as the store groups them."""

from memlog.query.request import Field as Field
from memlog.query.request import Request as Request
from memlog.query.request import description_of as description_of
from memlog.query.request import fields_of as fields_of
from memlog.query.request import schema_of as schema_of
