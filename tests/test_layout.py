"""Policy: which module may import what, how large a module is, what may stand in a tracked file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core" / "src" / "atonnx"
PACKS = tuple(sorted((ROOT / "plugins").glob("*/src/*/")))

ARROWS = (
    "errors",
    "plugins",
    "dispatch",
    "build",
    "capture",
    "passes",
    "program",
    "exportable",
    "pipeline",
    "observer",
    "testing",
    "cli",
    "__main__",
)
MAX_LINES = 800

# torch's private names are used in `_torch.py` only; these two have no public form and are stable.
PRIVATE_BUT_STABLE = ("torch.utils._pytree", "torch.utils._sympy")

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|opt|mnt|Users)/\w|file:/{3}")
REGISTRY = re.compile(r"https?://[^\s\"')]*/simple\b|--(?:extra-)?index-url|--find-link[s]")


@cache
def tracked() -> tuple[Path, ...]:
    """The files that git has or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git working tree")
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return tuple(sorted(f for f in files if f.is_file()))


def python_files() -> list[Path]:
    """The Python files among them."""
    return [f for f in tracked() if f.suffix == ".py"]


def core_files() -> list[Path]:
    """The modules of the core."""
    return sorted(CORE.rglob("*.py"))


def name(path: Path) -> str:
    """A path as a message shows it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def is_type_checking(test: ast.expr) -> bool:
    """Whether an `if` is `if TYPE_CHECKING`."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def nodes(root: ast.AST, *, functions: bool = True) -> Iterator[ast.AST]:
    """All nodes that run: not those under `if TYPE_CHECKING`; bodies of functions on request."""
    if isinstance(root, ast.If) and is_type_checking(root.test):
        children: Iterator[ast.AST] | list[ast.stmt] = root.orelse
    elif not functions and isinstance(root, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return
    else:
        children = ast.iter_child_nodes(root)
    yield root
    for child in children:
        yield from nodes(child, functions=functions)


def package_of(path: Path) -> list[str]:
    """The package that relative imports of a file start from."""
    source = next(p for p in path.parents if p.name == "src")
    return list(path.relative_to(source).parent.parts)


def imported(path: Path, *, functions: bool = True) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import that runs; a `from` import gives module and name."""
    for node in nodes(tree(path), functions=functions):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                package = package_of(path)
                base = package[: len(package) - node.level + 1] + base
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)


def test_a_module_has_at_most_800_lines() -> None:
    lines = {name(f): len(f.read_text(encoding="utf-8").splitlines()) for f in python_files()}
    assert {f: n for f, n in lines.items() if n > MAX_LINES} == {}


def test_every_module_has_a_docstring() -> None:
    assert [name(f) for f in python_files() if not ast.get_docstring(tree(f))] == []


def test_git_ignores_no_source() -> None:
    sources = {*core_files(), *(f for pack in PACKS for f in pack.rglob("*.py"))}
    assert sorted(name(f) for f in sources - set(tracked())) == []


def test_every_part_of_the_core_has_a_place_in_the_order() -> None:
    parts = {f.relative_to(CORE).parts[0].removesuffix(".py") for f in core_files()} - {"__init__"}
    assert parts - set(ARROWS) == set()


def test_a_module_of_the_core_imports_only_what_is_left_of_it() -> None:
    wrong = []
    for path in core_files():
        part = path.relative_to(CORE).parts[0].removesuffix(".py")
        # The package itself imports what every import of a part would import first.
        place = ARROWS.index(part) if part in ARROWS else 0
        for line, target in imported(path):
            top, _, rest = target.partition(".")
            used = rest.split(".")[0]
            if top == "atonnx" and used in ARROWS and ARROWS.index(used) > place:
                wrong.append(f"{name(path)}:{line} imports {target}")
            if top.startswith("atonnx_"):
                wrong.append(f"{name(path)}:{line} imports the pack {target}")
    assert wrong == []


def test_a_pack_imports_no_other_pack() -> None:
    wrong = [
        f"{name(path)}:{line} imports {target}"
        for pack in PACKS
        for path in sorted(pack.rglob("*.py"))
        for line, target in imported(path)
        if target.startswith("atonnx_") and target.partition(".")[0] != pack.name
    ]
    assert wrong == []


def test_the_entry_module_of_a_pack_imports_only_the_plugin_interface() -> None:
    wrong = [
        f"{name(pack / '__init__.py')}:{line} imports {target}"
        for pack in PACKS
        for line, target in imported(pack / "__init__.py", functions=False)
        if target.partition(".")[0] not in sys.stdlib_module_names
        and not target.startswith("atonnx.plugins.")
    ]
    assert wrong == []


def assigned(path: Path) -> dict[str, ast.expr | None]:
    """The names that a module assigns at its top."""
    found: dict[str, ast.expr | None] = {}
    for node in tree(path).body:
        if isinstance(node, ast.Assign):
            found |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node.value
    return found


def test_every_family_of_a_pack_is_listed() -> None:
    for pack in PACKS:
        families = assigned(pack / "__init__.py").get("FAMILIES")
        if families is None:
            continue
        having = {f.stem for f in pack.glob("*.py") if {"table", "pack"} & assigned(f).keys()}
        listed = ast.literal_eval(families)
        assert having - set(listed) == set(), f"{pack.name}: not in FAMILIES"
        assert len(listed) == len(set(listed)), f"{pack.name}: FAMILIES has a name twice"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute access on a plain name, else nothing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_private_torch(target: str) -> bool:
    """Whether a dotted name is private to torch. Operators are not: their names may start with `_`."""
    if not target.startswith("torch.") or target.startswith(("torch.ops.", *PRIVATE_BUT_STABLE)):
        return False
    return any(part.startswith("_") and not part.startswith("__") for part in target.split("."))


def private_torch_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each use of a private name of torch."""
    yield from ((line, target) for line, target in imported(path) if is_private_torch(target))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and is_private_torch(dotted(node)):
            yield node.lineno, dotted(node)


def test_private_names_of_torch_are_used_in_torch_modules_only() -> None:
    wrong = [
        f"{name(path)}:{line} uses {target}"
        for path in core_files()
        if path.name != "_torch.py"
        for line, target in private_torch_names(path)
    ]
    assert wrong == []


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    wrong = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line) or REGISTRY.search(line):
                wrong.append(f"{name(path)}:{number}: {line.strip()}")
    assert wrong == []


def test_all_distributions_have_one_version() -> None:
    versions = {
        name(path): re.findall(r'^version = "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in (
            ROOT / "pyproject.toml",
            *sorted(ROOT.glob("*/pyproject.toml")),
            *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        )
    }
    assert len({tuple(v) for v in versions.values()}) == 1, versions


def test_the_requirements_list_every_distribution() -> None:
    listed = set(re.findall(r"^-e \./?([\w/]*)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE))
    parts = {f.parent.relative_to(ROOT).as_posix() for f in ROOT.glob("plugins/*/pyproject.toml")}
    assert listed == {"", "core"} | parts


RUN = """
import sys
{code}
heavy = {{"torch", "onnx", "onnx_ir", "onnxscript", "onnxruntime", "sympy"}} & set(sys.modules)
sys.exit(f"imported: {{sorted(heavy)}}" if heavy else 0)
"""
CLI = """
sys.argv = ["atonnx", {arguments}]
from atonnx.cli import main
try:
    main()
except SystemExit as end:
    if end.code:
        raise
"""


@pytest.mark.parametrize(
    "code",
    [
        "import atonnx",
        "import atonnx.plugins, atonnx.dispatch",
        CLI.format(arguments='"--help"'),
        CLI.format(arguments='"plugins"'),
    ],
    ids=["import", "import-plugins", "help", "plugins"],
)
def test_neither_torch_nor_onnx_is_imported_before_it_is_needed(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", RUN.format(code=code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_but_the_lazy_ones_is_there_at_once() -> None:
    code = (
        "import sys, atonnx\n"
        "missing = set(atonnx.__all__) - set(dir(atonnx))\n"
        "assert not missing, missing\n"
        "assert atonnx.__version__ and atonnx.errors.OnnxExporterError is atonnx.OnnxExporterError\n"
        "for name in atonnx.__all__: getattr(atonnx, name)\n"
        "assert callable(atonnx.export) and callable(atonnx.export)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
