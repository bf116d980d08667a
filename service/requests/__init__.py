"""What operations take: a request for each, grouped as the store groups them."""

from memlog.eventlog.struct_fields import Field as Field
from memlog.eventlog.struct_fields import fields_of as fields_of
from memlog.query.request import Request as Request
from memlog.query.request import description_of as description_of
from memlog.query.request import given_as_texts as given_as_texts
from memlog.query.request import schema_of as schema_of
from memlog.query.request import time_of_words as time_of_words
