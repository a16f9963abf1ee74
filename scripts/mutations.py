"""Small changes of a module, each in one place, as a mistake could make them."""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Break: ast.Continue,
}


Key = tuple[str, str, int, str, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """`line` is the source line without its indentation; `column` includes it."""

    module: str
    number: int
    column: int
    line: str
    was: str
    becomes: str
    source: str

    @property
    def key(self) -> Key:
        return self.module, self.line, self.column, self.was, self.becomes

    def __str__(self) -> str:
        place = f"{self.module}.py:{self.number}:{self.column}"
        return f"{place}: {self.line}\n      {self.was} → {self.becomes}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change, each on a fresh copy of the tree."""
    module, text = path.stem, path.read_text()
    tree, lines = ast.parse(text), text.splitlines()
    _forget_words(tree)
    untouched = set(_decorations(tree))
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in untouched:
            for number in range(len(list(_changes(copy.deepcopy(node))))):
                mutant = _mutated(module, lines, tree, place, number)
                if mutant.was != mutant.becomes:
                    yield mutant


def _mutated(
    module: str, lines: Sequence[str], tree: ast.Module, place: int, number: int
) -> Mutant:
    changed = copy.deepcopy(tree)
    node = list(ast.walk(changed))[place]
    was = ast.unparse(node)
    changes = list(_changes(node))
    changes[number]()
    becomes = ast.unparse(node)
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    written = lines[line - 1].strip()
    source = ast.unparse(changed)
    return Mutant(module, line, column, written, _short(was), _short(becomes), source)


def _forget_words(tree: ast.Module) -> None:
    """Removes docstrings and types, which do not affect behaviour."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node
        ):
            del node.body[0]
            node.body = node.body or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("object")


def _decorations(tree: ast.Module) -> Iterator[int]:
    """Options of dataclasses and sizes of caches, which do not change results."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            for decorator in node.decorator_list:
                yield from map(id, ast.walk(decorator))


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """The changes of this node itself; each changes it in place."""
    for make in (_operators, _constants, _conditions, _collections, _calls, _statements):
        yield from make(node)


def _operators(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Compare(ops=ops):
            for place, operator in enumerate(ops):
                other = _OTHER.get(type(operator))
                if other is not None:
                    yield lambda place=place, other=other: ops.__setitem__(place, other())
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in _OTHER:
            yield lambda: setattr(node, "op", _OTHER[type(operator)]())
        case ast.UnaryOp(op=ast.Not()):
            yield lambda: setattr(node, "op", ast.UAdd())


def _constants(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Constant(value=bool() as value):
            yield lambda: setattr(node, "value", not value)
        case ast.Constant(value=int() | float() as value):
            yield lambda: setattr(node, "value", value + 1)
            yield lambda: setattr(node, "value", value - 1)
        case ast.Constant(value=str() as value) if value:
            yield lambda: setattr(node, "value", value + "X")
            yield lambda: setattr(node, "value", "")


def _conditions(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test))
            yield lambda: setattr(node, "test", ast.Constant(True))
            yield lambda: setattr(node, "test", ast.Constant(False))


def _collections(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Tuple(elts=items, ctx=ast.Load()) | ast.List(elts=items) | ast.Set(elts=items):
            for place in range(len(items)):
                yield lambda place=place: items.__delitem__(place)
        case ast.Dict(keys=keys, values=values):
            for place in range(len(keys)):
                yield lambda place=place: _without(keys, values, place)
                yield lambda place=place: _swapped(values, place)


def _without(keys: list[ast.expr | None], values: list[ast.expr], place: int) -> None:
    del keys[place], values[place]


def _swapped(values: list[ast.expr], place: int) -> None:
    """Swaps it with the next different one."""
    for step in range(1, len(values)):
        other = (place + step) % len(values)
        if ast.dump(values[other]) != ast.dump(values[place]):
            values[place], values[other] = values[other], values[place]
            return


def _calls(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Call(keywords=keywords):
            for place in range(len(keywords)):
                yield lambda place=place: keywords.__delitem__(place)


def _statements(node: ast.AST) -> Iterator[Callable[[], None]]:
    bodies = [getattr(node, name, None) for name in ("body", "orelse")]
    for body in bodies:
        if not isinstance(body, list):
            continue
        for place, statement in enumerate(body):
            match statement:
                case ast.Raise() | ast.Expr() | ast.AugAssign():
                    yield lambda body=body, place=place: body.__setitem__(place, ast.Pass())
                case ast.Return(value=value) if value is not None:
                    yield lambda body=body, place=place: body.__setitem__(
                        place, ast.Return(ast.Constant(None))
                    )
                case ast.Break():
                    yield lambda body=body, place=place: body.__setitem__(place, ast.Continue())


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
