from fastavro.schema import fingerprint, to_parsing_canonical_form

from setl.codec.dts.wire import published_schema


def test_record_schema_is_the_one_dts_writes_with():
    schema = published_schema()
    assert fingerprint(to_parsing_canonical_form(schema), "SHA-256") == (
        "0e8435432524070c198cb6492ff4c7428eb18d8cf3c3cfd00c9a68b3b0ae6220"
    )


def test_record_is_the_last_of_fourteen_types_and_has_fifteen_fields():
    schema = published_schema()
    assert [t["name"] for t in schema] == [
        "Field",
        "Integer",
        "Character",
        "Float",
        "Decimal",
        "Timestamp",
        "DateTime",
        "TimestampWithTimeZone",
        "BinaryGeometry",
        "TextGeometry",
        "BinaryObject",
        "TextObject",
        "EmptyObject",
        "Record",
    ]
    fields = [f["name"] for f in schema[-1]["fields"]]
    assert len(fields) == 15
    assert fields[8] == "objectName"
    assert fields[14] == "bornTimestamp"
