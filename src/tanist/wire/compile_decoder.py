"""Write the Python function that reads one version of one message.

The function is straight-line code over the field table: structs are inlined, runs of fixed-size fields (with the length
prefix or the tag count that follows them) are one `Struct.unpack_from`, and objects are made without their `__init__`.
So it is fast. `codec` compiles it on demand.

Bounds: every length is compared with the remaining bytes before a slice or a loop. An array's length is checked against
the least size of its elements, so that allocations are in proportion to the received bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any

from tanist.wire.errors import WireError
from tanist.wire.primitives import (
    KNOWN_UUIDS,
    LAYOUTS,
    MAX_STRING_BYTES,
    SHORT_ARRAY,
    learn_uuid,
    read_long_array,
    read_uvarint,
    short_array_readers,
    skip_tagged_fields,
)
from tanist.wire.schema import Array, Field, Message, Struct, Versions


def compile_decoder(cls: type[Message], version: int) -> Callable[[Any, int], tuple[Any, int]]:
    compiler = DecoderCompiler(cls, version)
    namespace = compiler.namespace
    exec(compile(compiler.source(), f"<decoder of {cls.__name__} version {version}>", "exec"), namespace)
    decode: Callable[[Any, int], tuple[Any, int]] = namespace["decode"]
    return decode


def within(version: int, versions: Versions | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


def regular_fields(cls: type[Struct], version: int) -> list[Field]:
    """The fields that this version has outside the tagged ones, in order of the wire."""
    return [field for field in cls.FIELDS if within(version, field.versions) and not within(version, field.tagged)]


def tagged_fields(cls: type[Struct], version: int) -> list[Field]:
    """The fields that this version has among the tagged ones, by tag."""
    found = [field for field in cls.FIELDS if within(version, field.versions) and within(version, field.tagged)]
    return sorted(found, key=lambda field: -1 if field.tag is None else field.tag)


def least_bytes(kind: str | type[Struct] | Array, version: int, flexible: bool, nullable: bool = False) -> int:
    """The least that a value of this type takes on the wire."""
    if isinstance(kind, Array):
        return 1 if flexible else 4
    if isinstance(kind, str):
        if kind in LAYOUTS:
            return LAYOUTS[kind][1]
        return 1 if flexible else 2 if kind == "string" else 4
    if nullable:
        return 1
    fields = regular_fields(kind, version)
    return int(flexible) + sum(
        least_bytes(field.type, version, flexible, within(version, field.nullable)) for field in fields
    )


def fail(message: str) -> None:
    raise WireError(message)


class DecoderCompiler:
    """Writes one function. `lines` is its source so far, `namespace` has the names in it."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.is_flexible(version)
        self.over_bytes = not _has_records(cls)
        self.lines: list[str] = []
        self.indent = 2
        self.namespace: dict[str, Any] = {
            "KNOWN": KNOWN_UUIDS.get,
            "learn": learn_uuid,
            "read_uvarint": read_uvarint,
            "skip": skip_tagged_fields,
            "long_array": read_long_array,
            "new": object.__new__,
            "fail": fail,
            "WireError": WireError,
            "struct_error": struct_error,
        }
        self.run: list[tuple[str, str]] = []
        """Fixed-size values that are still to be read: (format, target)."""
        self.depth = 0

    def source(self) -> str:
        self.struct(self.cls, "o0")
        self.flush()
        what = f"{self.cls.__name__} version {self.version}"
        # Slices of bytes are made quicker than slices of a memoryview, and small messages are cheap to copy whole.
        view = "bytes" if self.over_bytes else "memoryview"
        head = [
            "def decode(b, p):",
            f"    if type(b) is not {view}: b = {view}(b)",
            "    end = len(b)",
            "    try:",
        ]
        tail = [
            "    except (struct_error, IndexError, UnicodeDecodeError) as error:",
            f"        raise WireError(f'{what}: {{error}}') from error",
            "    return o0, p",
        ]
        return "\n".join([*head, *self.lines, *tail, ""])

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def constant(self, value: object, prefix: str) -> str:
        """The name under which the source knows `value`."""
        for name, known in self.namespace.items():
            if known is value and name.startswith(prefix):
                return name
        name = f"{prefix}{len(self.namespace)}"
        self.namespace[name] = value
        return name

    # What is read in one go

    def fixed(self, form: str, target: str) -> None:
        self.run.append((form, target))

    def flush(self) -> None:
        """Read the fixed-size values that are due."""
        if not self.run:
            return
        if len(self.run) == 1 and self.run[0][0] == "B":
            self.emit(f"{self.run.pop()[1]} = b[p]; p += 1")
            return
        layout = Layout(">" + "".join(form for form, _ in self.run))
        targets: list[str] = []
        after: list[str] = []
        for i, (form, target) in enumerate(self.run):
            if form == "16s":
                targets.append(f"u{i}")
                after.append(f"{target} = KNOWN(u{i}) or learn(u{i})")
            else:
                targets.append(target)
        comma = "," if len(targets) == 1 else ""
        name = f"S_{layout.format[1:]}".replace("?", "o")
        self.namespace.setdefault(name, layout.unpack_from)
        self.emit(f"{', '.join(targets)}{comma} = {name}(b, p); p += {layout.size}")
        for line in after:
            self.emit(line)
        self.run.clear()

    def length(self, fixed_form: str, compact: bool) -> None:
        """Read a length into `n`, so that null is -1; with it the fixed-size values that are due."""
        if compact:
            self.uvarint("n")
            self.emit("n -= 1")
        else:
            self.fixed(fixed_form, "n")
            self.flush()

    def uvarint(self, target: str) -> None:
        self.fixed("B", target)
        self.flush()
        self.emit(f"if {target} > 127: {target}, p = read_uvarint(b, p - 1)")

    # Structs and fields

    def struct(self, cls: type[Struct], target: str) -> None:
        self.emit(f"{target} = new({self.constant(cls, 'C')})")
        regular = regular_fields(cls, self.version)
        read_for_sure = {field.name for field in regular}
        for field in cls.FIELDS:
            if field.name not in read_for_sure:
                self.emit(f"{target}.{field.name} = {self.default(cls, field.name)}")
        for field in regular:
            self.value(
                field.type,
                f"{target}.{field.name}",
                within(self.version, field.nullable),
                compact=self.flexible and field.compact,
            )
        if self.flexible:
            self.tags(tagged_fields(cls, self.version), target)

    def default(self, cls: type[Struct], name: str) -> str:
        kind = cls.owned_kind(name)
        if kind is not None:
            return f"{self.constant(kind, 'C')}()"
        default = cls.default_of(name)
        if isinstance(default, int | str | bool | None):
            return repr(default)
        return self.constant(default, "D")

    def tags(self, fields: list[Field], target: str) -> None:
        count = f"k{self.depth}"
        self.uvarint(count)
        if not fields:
            self.emit(f"if {count}: p = skip(b, p, {count})")
            return
        self.emit(f"for _ in range({count}):")
        self.indent += 1
        self.depth += 1
        stop = f"e{self.depth}"
        self.uvarint("t")
        self.uvarint("n")
        self.emit(f"{stop} = p + n")
        self.emit(f"if {stop} > end: fail('a tagged field ends beyond the message')")
        for i, field in enumerate(fields):
            self.emit(f"{'elif' if i else 'if'} t == {field.tag}:")
            self.indent += 1
            nullable = within(self.version, field.nullable)
            if isinstance(field.type, type) and nullable:
                self.nested(field.type, f"{target}.{field.name}", nullable, null="n == 0")
            else:
                self.value(field.type, f"{target}.{field.name}", nullable, compact=True)
            self.flush()
            self.emit(f"if p != {stop}: fail('tagged field {field.name} has another size than it says')")
            self.indent -= 1
        self.emit(f"else: p = {stop}")
        self.depth -= 1
        self.indent -= 1

    def value(self, kind: str | type[Struct] | Array, target: str, nullable: bool, *, compact: bool) -> None:
        if isinstance(kind, Array):
            self.array(kind.element, target, nullable, compact)
        elif not isinstance(kind, str):
            self.nested(kind, target, nullable)
        elif kind in LAYOUTS:
            self.fixed(LAYOUTS[kind][0], target)
        else:
            self.sized(kind, target, nullable, compact)

    def nested(self, cls: type[Struct], target: str, nullable: bool, null: str = "n < 0") -> None:
        """A struct in a struct. One that may be null has a byte before it, negative for null; 0 among tagged fields."""
        if nullable:
            self.fixed("b", "n")
            self.flush()
            self.emit(f"if {null}: {target} = None")
            self.emit("else:")
            self.indent += 1
        self.depth += 1
        inner = f"o{self.depth}"
        # Values that are due must be read before: they belong to the objects outside.
        self.flush()
        self.struct(cls, inner)
        self.flush()
        self.emit(f"{target} = {inner}")
        self.depth -= 1
        if nullable:
            self.indent -= 1

    def sized(self, kind: str, target: str, nullable: bool, compact: bool) -> None:
        """A string, bytes or records: a length and that many bytes."""
        self.length("h" if kind == "string" else "i", compact)
        name = target.rpartition(".")[2]
        if kind == "string":
            found = "b[p:e].decode()" if self.over_bytes else "str(b[p:e], 'utf-8')"
        elif kind == "bytes":
            found = "b[p:e]" if self.over_bytes else "bytes(b[p:e])"
        else:
            found = "b[p:e]"
        if nullable or kind == "records":
            self.emit(f"if n == -1: {target} = None")
            self.emit("else:")
            self.indent += 1
        self.emit("e = p + n")
        limit = f" or n > {MAX_STRING_BYTES}" if kind == "string" and compact else ""
        self.emit(f"if n < 0 or e > end{limit}: fail(f'{name}: length {{n}}, {{end - p}} bytes left')")
        self.emit(f"{target} = {found}; p = e")
        if nullable or kind == "records":
            self.indent -= 1

    def array(self, element: str | type[Struct], target: str, nullable: bool, compact: bool) -> None:
        self.length("i", compact)
        name = target.rpartition(".")[2]
        if nullable:
            self.emit(f"if n == -1: {target} = None")
            self.emit("else:")
            self.indent += 1
        least = max(1, least_bytes(element, self.version, self.flexible))
        needed = "n" if least == 1 else f"n * {least}"
        self.emit(f"if n < 0 or {needed} > end - p: fail(f'{name}: {{n}} elements, {{end - p}} bytes left')")
        if isinstance(element, str) and element in LAYOUTS and element != "uuid":
            code, size = LAYOUTS[element]
            readers = f"A_{code}"
            self.namespace.setdefault(readers, short_array_readers(code))
            self.emit(f"{target} = {readers}[n](b, p) if n < {SHORT_ARRAY} else long_array('{code}', n, b, p)")
            self.emit(f"p += n * {size}" if size > 1 else "p += n")
        else:
            self.elements(element, target, compact)
        if nullable:
            self.indent -= 1

    def elements(self, element: str | type[Struct], target: str, compact: bool) -> None:
        self.depth += 1
        items, inner = f"l{self.depth}", f"o{self.depth}"
        self.emit(f"{items} = []")
        self.emit("for _ in range(n):")
        self.indent += 1
        if isinstance(element, str):
            self.value(element, inner, False, compact=compact)
        else:
            self.struct(element, inner)
        self.flush()
        self.emit(f"{items}.append({inner})")
        self.indent -= 1
        self.emit(f"{target} = tuple({items})")
        self.depth -= 1


def _has_records(cls: type[Struct]) -> bool:
    """Whether there are record batches in it somewhere, which must not be copied."""
    for field in cls.FIELDS:
        kind = field.type.element if isinstance(field.type, Array) else field.type
        if kind == "records" or (not isinstance(kind, str) and _has_records(kind)):
            return True
    return False
