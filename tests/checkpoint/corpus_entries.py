"""Files whose header is JSON, and wrong in what it says."""

from __future__ import annotations

from tests.checkpoint.corpus_words import AGAIN, DTYPES, MOST, U8_2, Case, extra, framed, one, said, shaped, tensor

KEYS = (
    Case(
        "a name twice",
        framed(b'{"a":' + U8_2 + b',"a":' + U8_2 + b"}", b"xx"),
        said('tensor "a": named 2 times; expected once'),
        True,
    ),
    Case(
        "a name twice, once escaped",
        framed(b'{"a":' + U8_2 + b',"\\u0061":' + U8_2 + b"}", b"xx"),
        said('tensor "a": named 2 times; expected once'),
        True,
    ),
    Case(
        "a name twice, first as a number",
        framed(b'{"a":5,"a":' + U8_2 + b"}", b"xx"),
        said('tensor "a": named 2 times; expected once', f"{AGAIN} (1 more fault in this header)"),
        False,
    ),
    Case(
        "a dtype twice", one(b'{"dtype":"U8",' + U8_2[1:]), tensor('key "dtype" stands 2 times; expected once'), False
    ),
    Case("an unknown key", extra(b'{"y":[1]}'), None, True),
    Case(
        "an unknown key twice", one(U8_2[:-1] + b',"x":1,"x":2}'), tensor('key "x" stands 2 times; expected once'), True
    ),
    Case("an unknown key past 64 bits", extra(b"99999999999999999999999"), None, True),
    Case(
        "an entry that is null",
        one(b"null", b""),
        tensor("null; expected an object with dtype, shape and data_offsets"),
        False,
    ),
    Case(
        "an entry that is a list",
        one(b'["U8",[2],[0,2]]'),
        tensor("a list; expected an object with dtype, shape and data_offsets"),
        True,
    ),
    Case(
        "no dtype",
        one(b'{"shape":[2],"data_offsets":[0,2]}'),
        tensor("no dtype; expected dtype, shape and data_offsets"),
        False,
    ),
    Case(
        "no shape",
        one(b'{"dtype":"U8","data_offsets":[0,2]}'),
        tensor("no shape; expected dtype, shape and data_offsets"),
        False,
    ),
    Case(
        "no offsets",
        one(b'{"dtype":"U8","shape":[2]}'),
        tensor("no data_offsets; expected dtype, shape and data_offsets"),
        False,
    ),
    Case("metadata of strings", framed(b'{"__metadata__":{"a:b":"c:d"},"a":' + U8_2 + b"}", b"xx"), None, True),
    Case(
        "metadata that is null",
        framed(b'{"__metadata__":null,"a":' + U8_2 + b"}", b"xx"),
        said("__metadata__: null; expected an object of strings"),
        True,
    ),
    Case(
        "metadata that is a list",
        framed(b'{"__metadata__":[],"a":' + U8_2 + b"}", b"xx"),
        said("__metadata__: a list; expected an object of strings"),
        False,
    ),
    Case(
        "metadata with a number",
        framed(b'{"__metadata__":{"step":12},"a":' + U8_2 + b"}", b"xx"),
        said('__metadata__: key "step" holds 12; expected a string'),
        False,
    ),
    Case(
        "metadata with a key twice",
        framed(b'{"__metadata__":{"k":"1","k":"2"},"a":' + U8_2 + b"}", b"xx"),
        said('__metadata__: key "k" stands 2 times; expected once'),
        True,
    ),
    Case(
        "metadata twice",
        framed(b'{"__metadata__":{},"__metadata__":{},"a":' + U8_2 + b"}", b"xx"),
        said("__metadata__: named 2 times; expected once"),
        False,
    ),
)

VALUES = (
    Case(
        "a dtype in lower case",
        one(shaped(b"[2]", dtype=b'"u8"')),
        tensor(f'dtype "u8"; expected one of {DTYPES}'),
        False,
    ),
    Case(
        "a dtype that is null",
        one(shaped(b"[2]", dtype=b"null")),
        tensor(f"dtype null; expected one of {DTYPES}"),
        False,
    ),
    Case(
        "a dtype that is an object",
        one(shaped(b"[2]", dtype=b'{"U8":null}')),
        tensor(f"dtype an object; expected one of {DTYPES}"),
        True,
    ),
    Case("a shape that is a number", one(shaped(b"2")), tensor("shape is 2; expected a list of integers"), False),
    Case(
        "a shape that is a string",
        one(shaped(b'""', b"[0,1]"), b"x"),
        tensor("shape is a string; expected a list of integers"),
        False,
    ),
    Case(
        "a negative dimension",
        one(shaped(b"[-2]")),
        tensor(f"shape holds -2; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of 2.0",
        one(shaped(b"[2.0]")),
        tensor(f"shape holds 2.0; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of 2e0",
        one(shaped(b"[2e0]")),
        tensor(f"shape holds 2e0; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of true",
        one(shaped(b"[true,2]")),
        tensor(f"shape holds true; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a list as dimension",
        one(shaped(b"[[2]]")),
        tensor(f"shape holds a list; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of 2**64",
        one(shaped(b"[18446744073709551616,0]", b"[0,0]"), b""),
        tensor(f"shape holds 18,446,744,073,709,551,616; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of 300 digits",
        one(shaped(b"[" + b"9" * 300 + b"]")),
        tensor(f"shape holds 99999999999999999999... (300 characters); expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "a dimension of 5,000 digits, more than JSON libraries read",
        one(shaped(b"[" + b"9" * 5000 + b"]")),
        said("the header is not JSON; expected one JSON object"),
        False,
    ),
    Case(
        "a dimension of 2**63",
        one(shaped(b"[9223372036854775808,0]", b"[0,0]"), b""),
        tensor(f"shape holds 9,223,372,036,854,775,808; expected integers from 0 to {MOST}"),
        True,
    ),
    Case(
        "a product of 2**64 and then 0",
        one(shaped(b"[4294967296,4294967296,0]", b"[0,0]"), b""),
        tensor(f"shape [4294967296, 4294967296, 0]; expected at most {MOST} elements"),
        False,
    ),
    Case("0, and then a product of 2**64", one(shaped(b"[0,4294967296,4294967296]", b"[0,0]"), b""), None, True),
    Case(
        "an offset of 0.0",
        one(shaped(b"[2]", b"[0.0,2]")),
        tensor(f"data_offsets holds 0.0; expected integers from 0 to {MOST}"),
        False,
    ),
    Case(
        "an offset of false",
        one(shaped(b"[2]", b"[false,2]")),
        tensor(f"data_offsets holds false; expected integers from 0 to {MOST}"),
        False,
    ),
    Case("an offset of -0", one(shaped(b"[2]", b"[-0,2]")), None, False),
    Case(
        "offsets that are null",
        one(shaped(b"[2]", b"null")),
        tensor("data_offsets is null; expected a list of integers"),
        False,
    ),
    Case("one offset", one(shaped(b"[2]", b"[0]")), tensor("1 data offset; expected 2, its begin and its end"), False),
    Case(
        "three offsets",
        one(shaped(b"[2]", b"[0,2,2]")),
        tensor("3 data offsets; expected 2, its begin and its end"),
        False,
    ),
    Case(
        "offsets in reverse",
        one(shaped(b"[2]", b"[2,0]")),
        tensor("data from byte 2 to 0; expected an end that is not before the begin"),
        False,
    ),
    Case(
        "more bytes than the shape",
        one(shaped(b"[2,3]", b"[0,8]"), bytes(8)),
        tensor("8 bytes of data (0 to 8); expected 6 for U8 [2, 3]"),
        False,
    ),
    Case("4-bit elements in whole bytes", one(shaped(b"[4]", b"[0,2]", b'"F4"')), None, True),
    Case(
        "3 elements of 4 bits",
        one(shaped(b"[3]", b"[0,2]", b'"F4"')),
        tensor("F4 [3] takes 12 bits; expected whole bytes"),
        False,
    ),
    Case(
        "3 elements of 6 bits",
        one(shaped(b"[3]", b"[0,2]", b'"F6_E2M3"')),
        tensor("F6_E2M3 [3] takes 18 bits; expected whole bytes"),
        False,
    ),
)


def two(first: bytes, second: bytes, data: bytes) -> bytes:
    return framed(b'{"a":' + shaped(b"[2]", first) + b',"b":' + shaped(b"[2]", second) + b"}", data)


LAYOUT = (
    Case(
        "a gap before the first",
        one(shaped(b"[2]", b"[1,3]"), b"xxx"),
        tensor("begins at byte 1; expected 0: a gap before the first tensor"),
        False,
    ),
    Case(
        "a gap between two",
        two(b"[0,2]", b"[3,5]", b"xxxxx"),
        said('tensor "b": begins at byte 3; expected 2: a gap after tensor "a"'),
        False,
    ),
    Case(
        "an overlap",
        two(b"[0,2]", b"[1,3]", b"xxx"),
        said('tensor "b": begins at byte 1; expected 2, where tensor "a" ends: they overlap'),
        False,
    ),
    Case(
        "one place for two",
        two(b"[0,2]", b"[0,2]", b"xx"),
        said('tensor "b": begins at byte 0; expected 2, where tensor "a" ends: they overlap'),
        False,
    ),
    Case("not in the order of the data", two(b"[2,4]", b"[0,2]", b"xxxx"), None, True),
    Case(
        "nothing in the middle of another",
        framed(b'{"a":' + shaped(b"[4]", b"[0,4]") + b',"b":' + shaped(b"[0]", b"[2,2]") + b"}", b"xxxx"),
        said('tensor "b": begins at byte 2; expected 4, where tensor "a" ends: they overlap'),
        False,
    ),
    Case(
        "nothing at either end",
        framed(
            b'{"c":'
            + shaped(b"[0]", b"[4,4]")
            + b',"a":'
            + shaped(b"[4]", b"[0,4]")
            + b',"b":'
            + shaped(b"[0]", b"[0,0]")
            + b"}",
            b"xxxx",
        ),
        None,
        True,
    ),
)
