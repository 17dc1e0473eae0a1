"""Write the Python function that writes one version of one message. The mirror of `compile_decoder`.

The function appends chunks to a list, which is joined once. Runs of fixed-size fields are packed together with a
following length prefix or an empty set of tagged fields.

A tagged field that has its default is left out: not only shorter, but required by clients that take such a field as
damage (librdkafka before 2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any

from tanist.wire.compile_decoder import regular_fields, tagged_fields, within
from tanist.wire.errors import EncodingError
from tanist.wire.primitives import (
    LAYOUTS,
    SHORT_ARRAY,
    UVARINTS,
    pack_long_array,
    short_array_packers,
    string_prefix,
    write_uvarint,
)
from tanist.wire.schema import Array, Field, Message, Struct

Write = Callable[[Any, list[Any]], None]
"""Appends the chunks of a message to a list."""


def compile_encoder(cls: type[Message], version: int) -> Write:
    compiler = EncoderCompiler(cls, version)
    namespace = compiler.namespace
    exec(compile(compiler.source(), f"<encoder of {cls.__name__} version {version}>", "exec"), namespace)
    write: Write = namespace["write"]
    return write


class EncoderCompiler:
    """Writes one function. `lines` is its source so far, `namespace` has the names in it."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.is_flexible(version)
        self.lines: list[str] = []
        self.indent = 2
        self.namespace: dict[str, Any] = {
            "V": UVARINTS,
            "uvarint": write_uvarint,
            "string_prefix": string_prefix,
            "long_array": pack_long_array,
            "EncodingError": EncodingError,
            "struct_error": struct_error,
        }
        self.run: list[tuple[str, str | None]] = []
        """Fixed-size values that are still to be packed: (format, expression); None where the format needs none."""
        self.depth = 0
        self.put = "put"

    def source(self) -> str:
        self.struct(self.cls, "o0")
        self.flush()
        what = f"{self.cls.__name__} version {self.version}"
        head = ["def write(o0, out):", "    put = out.append", "    try:"]
        tail = [
            "    except (struct_error, TypeError, AttributeError, UnicodeEncodeError, OverflowError) as error:",
            f"        raise EncodingError(f'{what}: {{error}}') from error",
        ]
        body = self.lines or ["        pass"]
        return "\n".join([*head, *body, *tail, ""])

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    # Values that are packed in one call

    def packed(self, run: list[tuple[str, str | None]]) -> str:
        if run == [("x", None)]:
            return f"{self.put}(V[0])"
        layout = Layout(">" + "".join(form for form, _ in run))
        name = f"S_{layout.format[1:]}".replace("?", "o")
        self.namespace.setdefault(name, layout.pack)
        return f"{self.put}({name}({', '.join(value for _, value in run if value is not None)}))"

    def flush(self) -> None:
        if self.run:
            self.emit(self.packed(self.run))
            self.run = []

    def prefix(self, fixed_form: str, length: str, compact: bool, long: str = "uvarint") -> None:
        """A length, together with the values that are due. `length` is an expression."""
        if not compact:
            self.run.append((fixed_form, length))
            self.flush()
            return
        self.emit(f"n = {length} + 1")
        if not self.run:
            self.emit(f"{self.put}(V[n] if n < 128 else {long}(n))")
            return
        self.emit(f"if n < 128: {self.packed([*self.run, ('B', 'n')])}")
        self.emit(f"else: {self.packed(self.run)}; {self.put}({long}(n))")
        self.run = []

    def null(self, fixed_form: str, compact: bool) -> None:
        """The length that stands for null, and the values that are due."""
        self.run.append(("x", None) if compact else (fixed_form, "-1"))
        self.flush()

    # Structs and fields

    def struct(self, cls: type[Struct], source: str) -> None:
        for field in regular_fields(cls, self.version):
            self.value(
                field.type,
                f"{source}.{field.name}",
                within(self.version, field.nullable),
                compact=self.flexible and field.compact,
            )
        if self.flexible:
            self.tags(cls, tagged_fields(cls, self.version), source)

    def value(self, kind: str | type[Struct] | Array, source: str, nullable: bool, *, compact: bool) -> None:
        if isinstance(kind, str) and kind in LAYOUTS:
            self.run.append((LAYOUTS[kind][0], f"{source}.bytes" if kind == "uuid" else source))
        elif isinstance(kind, Array):
            self.maybe_null(source, nullable, "i", compact, lambda it: self.array(kind.element, it, compact))
        elif not isinstance(kind, str):
            self.nested(kind, source, nullable)
        elif kind == "string":
            self.maybe_null(source, nullable, "h", compact, lambda it: self.string(it, compact))
        else:
            self.maybe_null(source, nullable or kind == "records", "i", compact, lambda it: self.blob(it, compact))

    def maybe_null(self, source: str, nullable: bool, form: str, compact: bool, present: Callable[[str], None]) -> None:
        if not nullable:
            present(source)
            return
        it = f"x{self.depth}"
        self.emit(f"{it} = {source}")
        run = self.run
        self.emit(f"if {it} is None:")
        self.indent += 1
        self.run = list(run)
        self.null(form, compact)
        self.indent -= 1
        self.emit("else:")
        self.indent += 1
        self.run = list(run)
        present(it)
        self.flush()
        self.indent -= 1

    def string(self, source: str, compact: bool) -> None:
        self.emit(f"s = {source}.encode()")
        self.prefix("h", "len(s)", compact, "string_prefix")
        self.emit(f"{self.put}(s)")

    def blob(self, source: str, compact: bool) -> None:
        self.prefix("i", f"len({source})", compact)
        self.emit(f"{self.put}({source})")

    def nested(self, cls: type[Struct], source: str, nullable: bool, null: str = "-1") -> None:
        """A struct in a struct. One that may be null has a byte before it, -1 for null; 0 among tagged fields."""
        self.depth += 1
        inner = f"o{self.depth}"
        self.emit(f"{inner} = {source}")
        if nullable:
            run = self.run
            self.emit(f"if {inner} is None:")
            self.indent += 1
            self.run = [*run, ("b", null)]
            self.flush()
            self.indent -= 1
            self.emit("else:")
            self.indent += 1
            self.run = [*run, ("b", "1")]
        self.struct(cls, inner)
        if nullable:
            self.flush()
            self.indent -= 1
        else:
            self.flush()  # the names of the due values are free again after this
        self.depth -= 1

    def array(self, element: str | type[Struct], source: str, compact: bool) -> None:
        if isinstance(element, str) and element in LAYOUTS and element != "uuid":
            code = LAYOUTS[element][0]
            packers = f"A_{code}_{int(compact)}"
            self.namespace.setdefault(packers, short_array_packers(code, compact))
            self.flush()
            self.emit(f"a = {source}; n = len(a)")
            length = "n + 1" if compact else "n"
            self.emit(f"if n < {SHORT_ARRAY}: {self.put}({packers}[n]({length}, *a))")
            self.emit(f"else: {self.put}(long_array('{code}', {compact}, a))")
            return
        self.depth += 1
        items, inner = f"l{self.depth}", f"o{self.depth}"
        self.emit(f"{items} = {source}")
        self.prefix("i", f"len({items})", compact)
        self.emit(f"for {inner} in {items}:")
        self.indent += 1
        before = len(self.lines)
        if isinstance(element, str):
            self.value(element, inner, False, compact=compact)
        else:
            self.struct(element, inner)
        self.flush()
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1
        self.depth -= 1

    # Tagged fields

    def tags(self, cls: type[Struct], fields: list[Field], source: str) -> None:
        if not fields:
            self.run.append(("x", None))
            return
        self.flush()
        count, chunks = f"k{self.depth}", f"t{self.depth}"
        self.emit(f"{count} = 0; {chunks} = []")
        for field in fields:
            self.emit(f"if {self.differs_from_default(cls, field, f'{source}.{field.name}')}:")
            self.indent += 1
            self.depth += 1
            body = f"b{self.depth}"
            outer, self.put = self.put, f"{body}.append"
            self.emit(f"{body} = []")
            nullable = within(self.version, field.nullable)
            if isinstance(field.type, type) and nullable:
                self.nested(field.type, f"{source}.{field.name}", nullable, null="0")
            else:
                self.value(field.type, f"{source}.{field.name}", nullable, compact=True)
            self.flush()
            self.put = outer
            self.depth -= 1
            self.emit(f"{body} = b''.join({body})")
            self.emit(f"{chunks} += uvarint({field.tag}), uvarint(len({body})), {body}; {count} += 1")
            self.indent -= 1
        self.emit(f"{self.put}(uvarint({count}) + b''.join({chunks}) if {count} else V[0])")

    def differs_from_default(self, cls: type[Struct], field: Field, source: str) -> str:
        default = cls.default_of(field.name)
        if default is None:
            return f"{source} is not None"
        if default == () and field.nullable is None:
            return source
        if isinstance(default, int | str | bool):
            return f"{source} != {default!r}"
        name = f"D{len(self.namespace)}"
        self.namespace[name] = default
        return f"{source} != {name}"
