"""The digest of the code that a case runs: when it changes, what was measured is stale.

Roots are the experiment's `prepare` and the workload that the case names. From there every
module-level name that the code mentions is followed, within its module and into other modules of
the article's package; reportkit is left to `records.PROTOCOL`, libraries to the lane. Sources are
parsed, not imported: the article's workloads import torch, which the report world does not have.

Not part of it: comments, docstrings, formatting, the annotations of functions, claims and prose,
and what a case is estimated to cost. What is hashed is an own dump of the syntax tree, because
`ast.dump`, and positions and tokens even more, differ between versions of Python.

On the safe side: a local variable that has the name of something in its module counts as a mention
of it; statements of a reached module that bind nothing but have effects count always; a module
that is handed around as a value counts whole. Not seen: imports by a name made at run time.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reportkit.plan import PlanError, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reportkit.plan import Article, Case, Experiment

LENGTH = 16
"""Hexadecimal digits that are kept: 64 bits tell a few thousand versions of a case apart."""

WORKLOADS = "workloads"
"""The module beside the experiments' where cases find the functions that they name."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WHOLE = "*"


def digest(article: Article, case: Case) -> str:
    """Return the digest of one case.

    Raises:
        PlanError: its workload function does not exist, or a source can't be read.
    """
    return _of(article.experiment(case.experiment), case, _Sources())


def digests(article: Article) -> dict[str, str]:
    """Return the digest of every case by its name, each source parsed once.

    Raises:
        PlanError: as `digest`.
    """
    sources = _Sources()
    return {
        case.name: _of(experiment, case, sources) for experiment in article.experiments for case in experiment.cases
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A function, a class or another thing that a case reaches, as it stands in the source."""

    name: str
    path: str
    """Of its source, relative to the folder that holds the article's package, with forward slashes."""
    line: int
    """Of its first line, a decorator's where it has any."""
    text: str
    root: bool
    """Whether it is where a case starts: `prepare`, or the workload that the case names."""


def codes(article: Article, cases: Mapping[str, Iterable[Case]]) -> dict[str, tuple[Code, ...]]:
    """Return what some cases run, from their source: that which their digests are of, but for imports.

    Several groups of cases by a name each, so that each source is parsed once. `prepare` and the workloads come
    first, then what they reach in the order of the sources; each once.

    Raises:
        PlanError: as `digest`.
    """
    sources = _Sources()
    return {name: _codes(article, group, sources) for name, group in cases.items()}


def _codes(article: Article, cases: Iterable[Case], sources: _Sources) -> tuple[Code, ...]:
    roots: dict[tuple[str, str], None] = {}
    reached: set[tuple[str, str]] = set()
    for case in cases:
        experiment = article.experiment(case.experiment)
        roots |= dict.fromkeys(_roots(experiment, case, sources))
        reached |= _reached(experiment, case, sources).keys()
    first = {(one.path, one.line): one for place in roots for one in sources.code(*place, root=True)}
    rest = {(one.path, one.line): one for place in sorted(reached) for one in sources.code(*place)}
    return (*first.values(), *(rest[place] for place in sorted(rest.keys() - first.keys())))


def _of(experiment: Experiment, case: Case, sources: _Sources) -> str:
    reached = _reached(experiment, case, sources)
    runs = {
        "kind": experiment.kind,
        "axes": dict(case.axes),
        "workload": case.workload,
        "settings": dict(case.settings),
        "cache": case.cache,
        "follows": case.follows,
        "steady": case.steady,
        **({"passes": sorted(case.passes)} if case.passes else {}),
    }
    code = {f"{module}:{name}": dumps for (module, name), dumps in reached.items()}
    effects = {module: sources.module(module).effects for module in {module for module, _ in reached}}
    text = json.dumps([runs, code, effects], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _roots(experiment: Experiment, case: Case, sources: _Sources) -> list[tuple[str, str]]:
    module, name = experiment.prepare.__module__, experiment.prepare.__qualname__
    package = module.rpartition(".")[0]
    home = f"{package}.{WORKLOADS}" if package else WORKLOADS
    if name not in sources.module(module).bindings:
        message = f"experiment {experiment.id!r}: prepare must be a function of its module, not {name!r}"
        raise PlanError(message)
    workloads = sources.module(home)
    if case.workload not in workloads.bindings:
        message = f"case {case.name!r}: {unknown(f'function of {home}', case.workload, workloads.bindings)}"
        raise PlanError(message)
    return [(module, name), (home, case.workload)]


def _reached(experiment: Experiment, case: Case, sources: _Sources) -> dict[tuple[str, str], list[str]]:
    """Return the code behind every name that a case reaches, by module and name."""
    reached: dict[tuple[str, str], list[str]] = {}
    pending = _roots(experiment, case, sources)
    while pending:
        place = pending.pop()
        if place in reached:
            continue
        reached[place] = sources.dumps(*place)
        # A computed name can only be the case's workload, and that is a root.
        pending += [mentioned for mentioned in sources.mentions(*place) if mentioned[1]]
    return reached


@dataclass(slots=True)
class _Module:
    """A parsed source: the statements that bind each of its names, and dumps of those that bind none."""

    name: str
    package: str
    path: Path
    text: str
    bindings: dict[str, list[ast.stmt]] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    loose: list[ast.stmt] = field(default_factory=list)


class _Sources:
    """The article's modules, each read and parsed once, and what each of their names mentions."""

    def __init__(self) -> None:
        self._modules: dict[str, _Module] = {}
        self._found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._dumped: dict[tuple[str, str], list[str]] = {}

    def module(self, name: str) -> _Module:
        if name not in self._modules:
            path = _path(name)
            if path is None:
                message = f"the code of {name} was not found; digests are of source files"
                raise PlanError(message)
            try:
                source = path.read_bytes()
                tree = ast.parse(source, filename=str(path))
            except (OSError, SyntaxError, ValueError) as error:
                message = f"{path.name} can't be read as Python: {error}"
                raise PlanError(message) from error
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            text = source.decode(errors="replace")  # Only shown; what is hashed is the tree.
            self._modules[name] = module = _Module(name, package, path, text)
            for statement in tree.body:
                names = list(_bound(statement))
                for bound in names:
                    module.bindings.setdefault(bound, []).append(statement)
                if not names and not _is_nothing(statement):
                    module.effects.append(_dump(statement))
                    module.loose.append(statement)
        return self._modules[name]

    def code(self, name: str, binding: str, *, root: bool = False) -> Iterator[Code]:
        """Return what binds a name, as it stands in the source; an import, or a module as a whole, is left out."""
        module = self.module(name)
        above = name.count(".") + (module.path.name == "__init__.py")
        for statement in module.bindings.get(binding, []):
            if not _no_code(statement):
                decorators = [one.lineno for one in getattr(statement, "decorator_list", ())]
                first = min([statement.lineno, *decorators])
                lines = module.text.splitlines()[first - 1 : statement.end_lineno]
                shown = module.path.relative_to(module.path.parents[above]).as_posix()
                yield Code(name=binding, path=shown, line=first, text="\n".join(lines), root=root)

    def dumps(self, name: str, binding: str) -> list[str]:
        """Return the code behind a name, as text; of an import, only what it gives that name."""
        place = (name, binding)
        if place not in self._dumped:
            module = self.module(name)
            statements = _all(module) if binding == _WHOLE else module.bindings.get(binding, [])
            self._dumped[place] = [
                f"{binding} is {'.'.join(_imports(statement, module.package)[binding])}"
                if isinstance(statement, ast.Import | ast.ImportFrom) and binding != _WHOLE
                else _dump(statement)
                for statement in statements
            ]
        return self._dumped[place]

    def mentions(self, name: str, binding: str) -> list[tuple[str, str]]:
        """Return what the code behind a name mentions, as (module, name); (module, "") is by a computed name."""
        place = (name, binding)
        if place not in self._found:
            module = self.module(name)
            statements = _all(module) if binding == _WHOLE else [*module.bindings.get(binding, []), *module.loose]
            found: set[tuple[str, str]] = set()
            for statement in statements:
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    target = _imports(statement, module.package).get(binding)
                    found |= set(self._target(target)) if target else set()
                else:
                    found |= set(self._mentioned(statement, module))
            self._found[place] = sorted(found)
        return self._found[place]

    def _mentioned(self, statement: ast.stmt, module: _Module) -> Iterator[tuple[str, str]]:
        local: dict[str, tuple[str, str]] = {}
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                local |= _imports(node, module.package)
        for target in local.values():
            # Importing a name mentions it. A module is mentioned by what is taken from it.
            if self._as_module(target) is None:
                yield from self._target(target)
        accounted: set[ast.AST] = set()
        for node in _walk(statement):
            reached = self._through_module(node, local, module)
            if reached:
                accounted.add(reached[0])
                yield reached[1]
            elif isinstance(node, ast.Name) and node not in accounted:
                if node.id in local:
                    yield from self._target(local[node.id])
                elif node.id in module.bindings:
                    yield module.name, node.id

    def _through_module(
        self, node: ast.AST, local: Mapping[str, tuple[str, str]], module: _Module
    ) -> tuple[ast.AST, tuple[str, str]] | None:
        """Return the name node and what it stands for, of `module.attribute` and `getattr(module, attribute)`."""
        match node:
            case ast.Attribute(value=ast.Name(id=alias) as used, attr=attribute):
                pass
            case ast.Call(
                func=ast.Name(id="getattr"), args=[ast.Name(id=alias) as used, ast.Constant(value=str(attribute)), *_]
            ):
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=alias) as used, _, *_]):
                attribute = ""
            case _:
                return None
        target = local.get(alias) or self._module_import(alias, module)
        home = self._as_module(target) if target else None
        if home is None:
            return None
        inner = self._as_module((home, attribute)) if attribute else None
        if inner is not None:
            return used, (inner, _WHOLE)
        if not attribute and home.rpartition(".")[2] != WORKLOADS:
            attribute = _WHOLE
        return used, (home, attribute)

    def _module_import(self, alias: str, module: _Module) -> tuple[str, str] | None:
        for statement in module.bindings.get(alias, []):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                return _imports(statement, module.package).get(alias)
        return None

    def _target(self, target: tuple[str, str]) -> Iterator[tuple[str, str]]:
        """Return what an imported name stands for, where it belongs to the article."""
        home = self._as_module(target)
        if home is not None:
            yield home, _WHOLE
        elif self._is_ours(target[0]):
            yield target

    def _as_module(self, target: tuple[str, str]) -> str | None:
        name = ".".join(part for part in target if part)
        return name if self._is_ours(name) and _path(name) is not None else None

    def _is_ours(self, name: str) -> bool:
        """Whether a module belongs to the package of those read so far, that is, to the article."""
        top = name.partition(".")[0]
        return any(known.partition(".")[0] == top for known in self._modules)


def _all(module: _Module) -> list[ast.stmt]:
    return [*(statement for statements in module.bindings.values() for statement in statements), *module.loose]


def _path(name: str) -> Path | None:
    """Return the source file of a module of the article, without importing it."""
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
        return Path(file) if file else None
    parent, _, leaf = name.rpartition(".")
    if parent:
        home = _path(parent)
        if home is None or home.name != "__init__.py":
            return None
        candidates = (home.parent / f"{leaf}.py", home.parent / leaf / "__init__.py")
        return next((path for path in candidates if path.is_file()), None)
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _no_code(statement: ast.stmt) -> bool:
    """Whether a statement only imports, or is there for type checkers only."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> dict[str, tuple[str, str]]:
    """Return the names that an import binds, each with its module and the name there ("" for the module)."""
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: (
                alias.name if alias.asname else alias.name.partition(".")[0],
                "",
            )
            for alias in statement.names
        }
    base = statement.module or ""
    if statement.level:
        above = package.split(".")[: len(package.split(".")) - statement.level + 1]
        base = ".".join([*above, base] if base else above)
    return {alias.asname or alias.name: (base, alias.name) for alias in statement.names}


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Return the names that a statement of a module binds, however deep inside `if`, `try` or `with`."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        case _:
            for node in ast.iter_child_nodes(statement):
                if isinstance(node, ast.stmt):
                    yield from _bound(node)
                elif isinstance(node, ast.ExceptHandler):
                    yield from (name for inner in node.body for name in _bound(inner))
                else:
                    yield from _stored(node)


def _stored(node: ast.AST) -> Iterator[str]:
    """Return the names that an expression or target binds; those of a comprehension are its own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if not isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for inner in ast.iter_child_nodes(node):
            yield from _stored(inner)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Return a node and all inside it, parents first, without what is not hashed."""
    yield node
    for _, child in _children(node):
        yield from _walk(child)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in _fields(node):
        if isinstance(value, ast.AST):
            yield name, value
        elif isinstance(value, list):
            yield from ((name, item) for item in value if isinstance(item, ast.AST))


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Return a node's fields that carry meaning: nothing empty, so that a new version's new field is none."""
    for name, found in ast.iter_fields(node):
        value = found
        if name in {"ctx", "type_comment", "kind"} or value is None or value == []:
            continue
        if name == "annotation" and not isinstance(node, ast.AnnAssign):
            continue
        if name == "returns" and isinstance(node, _FUNCTIONS):
            continue
        if name in {"body", "orelse", "finalbody"} and isinstance(value, list):
            value = [statement for statement in value if not _is_nothing(statement)]
        if name == "values" and isinstance(node, ast.JoinedStr):
            value = _joined(node.values)
        yield name, value


def _is_nothing(statement: ast.stmt) -> bool:
    """Whether a statement does nothing: a docstring or other bare text, or `pass`."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Return the parts of an f-string with neighbouring texts merged, as not every version does."""
    merged: list[ast.expr] = []
    for value in values:
        match merged[-1:], value:
            case _, ast.Constant(value=""):
                pass
            case [ast.Constant(value=str(before))], ast.Constant(value=str(after)):
                merged[-1] = ast.Constant(before + after)
            case _:
                merged.append(value)
    return merged


def _dump(value: object) -> str:
    """Return a text that is the same for the same code on every version of Python."""
    if isinstance(value, ast.Constant):
        # ascii, since which characters count as printable depends on the version.
        number = hex(value.value) if isinstance(value.value, int) else ascii(value.value)
        return f"{type(value.value).__name__} {number}"
    if isinstance(value, ast.AST):
        return f"{type(value).__name__}({', '.join(f'{name}={_dump(inner)}' for name, inner in _fields(value))})"
    if isinstance(value, list):
        return f"[{', '.join(_dump(item) for item in value)}]"
    return ascii(value)
