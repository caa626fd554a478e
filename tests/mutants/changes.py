"""All one-place changes of a source file: what a slip or a wrong thought would leave behind.

Places are found in the syntax tree and changed in the text, so that a mutant differs from its file by a few characters.
Left alone is what no test is meant to notice: docstrings, annotations, decorators, protocols, `__all__`, the sentences
of errors, and the numbers at the head of a module (tolerances, limits, sizes: a neighbour would do as well).
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

OTHERS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
    "//": ("%",),
    "%": ("//",),
    "**": ("*",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "^": ("|",),
    "and": ("or",),
    "or": ("and",),
}
OPPOSITES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "floor": "ceil"}
OPPOSITES |= {right: left for left, right in OPPOSITES.items()}
OPERATOR = re.compile(r"is\s+not|not\s+in|\b(?:is|in|and|or)\b|//|\*\*|<<|>>|[<>=!]=|[-+*/%<>&|^]")
ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)
NEVER_TESTED = {"__repr__", "__str__"}

Edit = tuple[int, int, str]  # the first byte, the byte after the last, and what takes their place


class Change(NamedTuple):
    """One edit of a file, and the function that it is in: its name and the line where it begins (0: in none)."""

    begin: int
    end: int
    text: str
    function: str
    entry: int


class Text:
    """The text of a file, in the bytes that places in a syntax tree are counted in."""

    def __init__(self, source: str) -> None:
        self.bytes = source.encode()
        self.tree = ast.parse(source)
        arguments = (node for node in ast.walk(self.tree) if isinstance(node, ast.arg) and node.annotation)
        self._kinds = {node.arg: ast.unparse(node.annotation) for node in arguments if node.annotation}
        self._lines = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The first byte of a node, and the one after its last."""
        begin = self._lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        begin, end = self.span(node)
        return self.bytes[begin:end].decode()

    def operand(self, node: ast.AST) -> str:
        """The text of a node that stands anywhere in an expression."""
        return self.of(node) if isinstance(node, ATOMS) else f"({self.of(node)})"

    def kind(self, node: ast.AST) -> str:
        """The type of an argument or a constant; empty for other expressions, of which nothing is known."""
        if isinstance(node, ast.Constant):
            return type(node.value).__name__
        return self._kinds.get(node.id, "") if isinstance(node, ast.Name) else ""

    def swaps(self, left: ast.AST, right: ast.AST) -> Iterator[Edit]:
        """Other operators between two operands."""
        first, last = self.span(left)[1], self.span(right)[0]
        between = self.bytes[first:last].decode()
        found = OPERATOR.search(between)
        if found and "#" not in between:
            begin = first + len(between[: found.start()].encode())
            for other in OTHERS[" ".join(found[0].split())]:
                yield begin, begin + len(found[0].encode()), other


def changes_of(source: str) -> list[Change]:
    """All changes of a file; some may leave text that is no program."""
    text = Text(source)
    found = {
        (begin, end, new): Change(begin, end, new, *function)
        for node, function in places(text.tree, ("", 0))
        for begin, end, new in edits(node, text)
    }
    return [found[key] for key in sorted(found)]


def changed(source: str, change: Change) -> str:
    """The text of the mutant."""
    text = source.encode()
    return (text[: change.begin] + change.text.encode() + text[change.end :]).decode()


def places(node: ast.AST, function: tuple[str, int]) -> Iterator[tuple[ast.AST, tuple[str, int]]]:
    """All nodes below one that may be changed, each with the function that it is in."""
    for child in parts(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            entry = min(part.lineno for part in (child, *child.decorator_list))
            is_function = isinstance(child, ast.FunctionDef)
            inside = (f"{function[0]}.{child.name}".lstrip("."), entry if is_function else function[1])
        yield child, inside
        yield from places(child, inside)


@singledispatch
def parts(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes in a node that may be changed."""
    return ast.iter_child_nodes(node)


@parts.register
def _(node: ast.Module) -> Iterable[ast.AST]:
    return [part for part in node.body if not isinstance(part, ast.Assign)]


@parts.register
def _(node: ast.ClassDef) -> Iterable[ast.AST]:
    is_protocol = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    return () if is_protocol else node.body


@parts.register
def _(node: ast.FunctionDef) -> Iterable[ast.AST]:
    defaults = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
    return () if node.name in NEVER_TESTED else (*defaults, *node.body)


@parts.register
def _(node: ast.AnnAssign) -> Iterable[ast.AST]:
    return () if node.value is None else (node.value,)


@parts.register
def _(node: ast.Call) -> Iterable[ast.AST]:
    return () if isinstance(node.func, ast.Name) and node.func.id == "field" else ast.iter_child_nodes(node)


@parts.register
def _(node: ast.Raise | ast.JoinedStr) -> Iterable[ast.AST]:
    return ()


@singledispatch
def edits(node: ast.AST, text: Text) -> Iterator[Edit]:
    """The edits of one place."""
    yield from ()


@edits.register
def _(node: ast.Raise, text: Text) -> Iterator[Edit]:
    yield *text.span(node), "pass"


@edits.register
def _(node: ast.Assign, text: Text) -> Iterator[Edit]:
    targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
    if all(isinstance(target, ast.Subscript | ast.Attribute) for target in targets):
        yield *text.span(node), "pass"


@edits.register
def _(node: ast.AugAssign, text: Text) -> Iterator[Edit]:
    yield *text.span(node), "pass"
    yield from text.swaps(node.target, node.value)


@edits.register
def _(node: ast.Expr, text: Text) -> Iterator[Edit]:
    if isinstance(node.value, ast.Call):
        yield *text.span(node), "pass"


@edits.register
def _(node: ast.Break, text: Text) -> Iterator[Edit]:
    yield *text.span(node), "continue"


@edits.register
def _(node: ast.Continue, text: Text) -> Iterator[Edit]:
    yield *text.span(node), "break"


@edits.register
def _(node: ast.If | ast.IfExp, text: Text) -> Iterator[Edit]:
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # which are turned round themselves
        yield *text.span(node.test), f"not {text.operand(node.test)}"


@edits.register
def _(node: ast.Compare, text: Text) -> Iterator[Edit]:
    for left, right in zip((node.left, *node.comparators), node.comparators, strict=False):
        yield from text.swaps(left, right)


@edits.register
def _(node: ast.BoolOp, text: Text) -> Iterator[Edit]:
    operator = " and " if isinstance(node.op, ast.And) else " or "
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from text.swaps(left, right)
    for dropped in node.values:
        yield *text.span(node), operator.join(text.operand(value) for value in node.values if value is not dropped)


@edits.register
def _(node: ast.BinOp, text: Text) -> Iterator[Edit]:
    yield from text.swaps(node.left, node.right)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield *text.span(node), text.operand(node.left)
    if isinstance(node.op, ast.Add | ast.Mult):
        yield *text.span(node), text.operand(node.right)


@edits.register
def _(node: ast.UnaryOp, text: Text) -> Iterator[Edit]:
    yield *text.span(node), text.operand(node.operand)


@edits.register
def _(node: ast.Constant, text: Text) -> Iterator[Edit]:
    for other in neighbours(node.value):
        yield *text.span(node), repr(other)


def neighbours(value: object) -> tuple[object, ...]:
    """The values that a constant is easily taken for."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value - 1, value + 1) if value > 0 else (value + 1,)
    if isinstance(value, float):
        return ({0.0: 1.0, 1.0: 0.0}.get(value, 2 * value),)
    return ()


@edits.register
def _(node: ast.Name, text: Text) -> Iterator[Edit]:
    if node.id in OPPOSITES:
        yield *text.span(node), OPPOSITES[node.id]


@edits.register
def _(node: ast.Attribute, text: Text) -> Iterator[Edit]:
    if node.attr in OPPOSITES:
        end = text.span(node)[1]
        yield end - len(node.attr), end, OPPOSITES[node.attr]


@edits.register
def _(node: ast.Call, text: Text) -> Iterator[Edit]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in OPPOSITES:  # whose arguments come in any order
        for left, right in zip(node.args, node.args[1:], strict=False):
            yield from exchanged(left, right, text)
    if name == "range":
        last = node.args[min(1, len(node.args) - 1)]
        yield *text.span(last), f"{text.operand(last)} - 1"
        if len(node.args) > 1:
            yield *text.span(node.args[0]), f"{text.operand(node.args[0])} + 1"


def exchanged(left: ast.AST, right: ast.AST, text: Text) -> Iterator[Edit]:
    """Two arguments in each other's place, unless they are the same or of different types, which everybody notices."""
    (begin, first), (last, end) = text.span(left), text.span(right)
    between = text.bytes[first:last].decode()
    if between.strip() == "," and text.kind(left) == text.kind(right) and text.of(left) != text.of(right):
        yield begin, end, text.of(right) + between + text.of(left)
