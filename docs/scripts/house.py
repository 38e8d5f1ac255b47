"""A picture of the house, drawn from its imports: ``python docs/scripts/house.py`` writes ``docs/images/house.svg``.

Every room stands above those that it imports, so all arrows point down. With ``--check`` nothing is written, and the
command fails where the file is not what would be drawn.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "glasshouse"
PICTURE = ROOT / "docs" / "images" / "house.svg"

Graph = dict[str, set[str]]  # name -> those that it imports

_HEIGHT, _ACROSS, _DOWN = 32.0, 24.0, 28.0  # of a box, between two boxes, between two rows
_LANE = 14.0  # width of an arrow that passes a row
_PAD = 22.0

_STYLE = """
.house { --ink: #1b1f24; --paper: #ffffff; --card: #f3f6f8; --line: #b9c3cc; --arrow: #6b7783; --accent: #0066a1; }
@media (prefers-color-scheme: dark) {
  .house { --ink: #e6e9ec; --paper: #14171a; --card: #20262c; --line: #4a545e; --arrow: #97a3ae; --accent: #6cb8ea; }
}
text { font: 15px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink); text-anchor: middle; }
.ground { fill: var(--paper); }
.box { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
.wing { fill: none; stroke: var(--accent); stroke-width: 1.6; }
.wing-name { fill: var(--accent); font-weight: 600; text-anchor: start; }
.slab { fill: var(--line); opacity: .45; }
.arrow { fill: none; stroke: var(--arrow); stroke-width: 1.5; }
.head { fill: var(--arrow); }
""".strip()


def module_imports(source: Path = SOURCE) -> Graph:
    """Every module of the package with the modules of ours that it names, those inside functions too.

    ``from package import name`` is an import of the module ``package.name`` where there is one, else of the package.
    That Python runs the packages on the way to a module is not an import: they only gather what is below them.
    """
    paths = {_module(path, source): path for path in sorted(source.rglob("*.py"))}
    found: Graph = {}
    for module, path in paths.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                named |= {full if full in paths else node.module for full in inside.values()}
        found[module] = (named & paths.keys()) - {module}
    return found


def _module(path: Path, source: Path) -> str:
    return ".".join([source.name, *path.relative_to(source).with_suffix("").parts]).removesuffix(".__init__")


def room_imports(modules: Graph, package: str = "glasshouse") -> Graph:
    """The rooms of a package, its modules and folders, with the rooms that their modules import."""
    depth = package.count(".") + 1
    rooms: Graph = {}
    for module, imported in modules.items():
        # the package's own files hand out names of all rooms or start the last one, and are none
        if module.startswith(f"{package}.") and module != f"{package}.__main__":
            room = module.split(".")[depth]
            others = {name.split(".")[depth] for name in imported if name.startswith(f"{package}.")}
            rooms.setdefault(room, set()).update(others - {room})
    return rooms


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of names that import each other, directly or through others."""
    reach = _reachable(graph)
    return [
        group
        for name in sorted(graph)
        if name in reach[name] and (group := sorted(one for one in reach[name] if name in reach[one]))[0] == name
    ]


def _reachable(graph: Graph) -> Graph:
    """All that a name imports, at any distance."""
    reach: Graph = {}
    for name in graph:
        seen: set[str] = set()
        new = set(graph[name])
        while new:
            seen |= new
            new = set().union(*(graph[one] for one in new)) - seen
        reach[name] = seen
    return reach


def reduced(graph: Graph) -> Graph:
    """The imports that do not follow from others: an arrow from a to c is left out where a way leads over b."""
    reach = _reachable(graph)
    return {
        name: {one for one in imported if not any(one in reach[other] for other in imported)}
        for name, imported in graph.items()
    }


@dataclass
class Box:
    """A room, or the place where an arrow passes a row; x is its middle, y its upper side."""

    name: str
    width: float
    height: float
    row: int
    room: bool = True
    x: float = 0.0
    y: float = 0.0
    floor: float = 0.0  # the lower side of its row


@dataclass
class Plan:
    """Rooms in rows, the first at the bottom, and arrows as the boxes that they pass."""

    rows: list[list[Box]]
    arrows: list[list[Box]]
    width: float = 0.0
    height: float = 0.0
    neighbours: dict[int, list[Box]] = field(default_factory=dict)


def _levels(graph: Graph) -> dict[str, int]:
    """Each room above those that it imports, as near as possible to the side on which it has more arrows."""
    level: dict[str, int] = {}

    def lowest(name: str) -> int:
        return 1 + max((level[one] for one in graph[name]), default=-1)

    reach = _reachable(graph)
    order = sorted(graph, key=lambda name: (len(reach[name]), name))
    for name in order:
        level[name] = lowest(name)
    for name in reversed(order):
        above = [level[other] for other in graph if name in graph[other]]
        if above and len(above) >= len(graph[name]):
            level[name] = min(above) - 1
    for name in order:
        if len([other for other in graph if name in graph[other]]) < len(graph[name]):
            level[name] = lowest(name)
    return level


def laid_out(graph: Graph, sizes: Mapping[str, tuple[float, float]]) -> Plan:
    """Places for all rooms, with few crossings and short arrows."""
    level = _levels(graph)
    rows: list[list[Box]] = [[] for _ in range(max(level.values()) + 1)]
    boxes = {name: Box(name, *sizes[name], level[name]) for name in sorted(graph)}
    for box in boxes.values():
        rows[box.row].append(box)
    plan = Plan(rows, [])
    for name, other in sorted((name, other) for name, imported in graph.items() for other in imported):
        between = [Box("", _LANE, 0.0, row, room=False) for row in range(level[name] - 1, level[other], -1)]
        for box in between:
            rows[box.row].append(box)
        arrow = [boxes[name], *between, boxes[other]]
        plan.arrows.append(arrow)
        for one, two in itertools.pairwise(arrow):
            plan.neighbours.setdefault(id(one), []).append(two)
            plan.neighbours.setdefault(id(two), []).append(one)
    _order(plan)
    _place(plan)
    return plan


def _order(plan: Plan) -> None:
    """Sort each row by the middle of its neighbours, up and down again; the order with the fewest crossings stays."""
    best = [list(row) for row in plan.rows]
    fewest = _crossings(plan)
    for turn in range(24):
        numbers = range(len(plan.rows))
        for row in numbers if turn % 2 else reversed(numbers):
            place = {id(box): at / max(len(one) - 1, 1) for one in plan.rows for at, box in enumerate(one)}
            side = -1 if turn % 2 else 1
            plan.rows[row].sort(key=lambda box: _middle(box, plan, place, row + side))
        if (count := _crossings(plan)) < fewest:
            fewest, best = count, [list(row) for row in plan.rows]
    plan.rows[:] = best


def _middle(box: Box, plan: Plan, place: Mapping[int, float], row: int) -> float:
    near = [place[id(one)] for one in plan.neighbours.get(id(box), []) if one.row == row]
    return sum(near) / len(near) if near else place[id(box)]


def _crossings(plan: Plan) -> int:
    at = {id(box): number for row in plan.rows for number, box in enumerate(row)}
    steps = [step for arrow in plan.arrows for step in itertools.pairwise(arrow)]
    return sum(
        a.row == c.row and (at[id(a)] - at[id(c)]) * (at[id(b)] - at[id(d)]) < 0
        for (a, b), (c, d) in itertools.combinations(steps, 2)
    )


def _place(plan: Plan) -> None:
    """X so that arrows are as short as boxes allow, y by rows from the bottom to the top."""
    for _ in range(1500):
        for row in plan.rows:
            for box, x in zip(row, _apart(row, [_pull(box, plan) for box in row]), strict=True):
                box.x = x
    left = min(box.x - box.width / 2 for row in plan.rows for box in row)
    for row in plan.rows:
        for box in row:
            box.x -= left
    plan.width = max(box.x + box.width / 2 for row in plan.rows for box in row)
    y = 0.0
    for row in reversed(plan.rows):
        tallest = max(max(box.height for box in row), _HEIGHT)
        for box in row:
            box.y, box.floor = y, y + tallest
        y += tallest + _DOWN
    plan.height = y - _DOWN


def _pull(box: Box, plan: Plan) -> tuple[float, float]:
    """Where the neighbours want a box to be, and how strongly; an arrow that passes many rows is kept straight."""
    near = [(one.x, 1.0 if box.room or one.room else 30.0) for one in plan.neighbours.get(id(box), [])]
    strength = sum(weight for _, weight in near)
    return (sum(x * weight for x, weight in near) / strength, strength) if near else (box.x, 0.01)


def _apart(row: Sequence[Box], pulls: Sequence[tuple[float, float]]) -> list[float]:
    """The places nearest to those wanted at which no two boxes touch, in the row's order."""
    offset = [0.0]
    for one, two in itertools.pairwise(row):
        offset.append(offset[-1] + (one.width + two.width) / 2 + _ACROSS)
    blocks: list[tuple[float, float, int]] = []  # place, strength and number of boxes that stand side by side
    for (place, strength), shift in zip(pulls, offset, strict=True):
        at, total, count = place - shift, strength, 1
        while blocks and blocks[-1][0] > at:
            before, weight, boxes = blocks.pop()
            at = (at * total + before * weight) / (total + weight)
            total, count = total + weight, count + boxes
        blocks.append((at, total, count))
    starts = [at for at, _, count in blocks for _ in range(count)]
    return [start + shift for start, shift in zip(starts, offset, strict=True)]


def _drawn(plan: Plan, x: float, y: float, place: Path, inside: Mapping[str, str]) -> list[str]:
    """The rooms of a folder and their arrows as SVG, moved by x and y; ``inside`` is drawn into boxes of that name."""
    parts = [f'<g transform="translate({x:.1f} {y:.1f})">']
    parts += [_arrow(arrow, plan) for arrow in plan.arrows]
    for box in (box for row in plan.rows for box in row if box.room):
        left, top = box.x - box.width / 2, box.y
        shape = f'x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"'
        label = f"{box.name}/" if (place / box.name).is_dir() else box.name
        if box.name in inside:
            parts.append(f'<rect class="wing" {shape}/>')
            parts.append(f'<text class="wing-name" x="{left + 12:.1f}" y="{top + 22:.1f}">{label}</text>')
            parts.append(f'<g transform="translate({left:.1f} {top:.1f})">{inside[box.name]}</g>')
        else:
            parts.append(
                f'<rect class="box" {shape}/><text x="{box.x:.1f}" y="{box.y + _HEIGHT / 2 + 5:.1f}">{label}</text>'
            )
    return [*parts, "</g>"]


def _arrow(arrow: Sequence[Box], plan: Plan) -> str:
    """A line that runs down through the rows and bends between them."""
    first, last = arrow[0], arrow[-1]
    start = _port(first, arrow[1], plan)
    points = [(start, first.y + first.height), (start, first.floor)]
    for box in arrow[1:-1]:
        points += [(box.x, box.y), (box.x, box.floor)]
    points.append((_port(last, arrow[-2], plan), last.y - 5))
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        middle = (y1 + y2) / 2
        bend = f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
        path.append(bend if abs(x1 - x2) > 0.5 else f"L{x2:.1f} {y2:.1f}")
    return f'<path class="arrow" marker-end="url(#head)" d="{" ".join(path)}"/>'


def _port(box: Box, other: Box, plan: Plan) -> float:
    """Where on a box's side an arrow starts or ends: side by side, in the order of their other ends."""
    above = other.row > box.row
    near = sorted((one for one in plan.neighbours[id(box)] if (one.row > box.row) == above), key=lambda one: one.x)
    share = (next(at for at, one in enumerate(near) if one is other) + 0.5) / len(near) - 0.5
    return box.x + share * min(0.8 * box.width, 34.0 * len(near))


def _size(name: str) -> tuple[float, float]:
    return 8.3 * len(name) + 34, _HEIGHT


def picture(source: Path = SOURCE) -> str:
    """The whole house as SVG."""
    modules = module_imports(source)
    rooms, wing = room_imports(modules), room_imports(modules, "glasshouse.graph")
    if back := cycles(rooms) + cycles(wing):
        sys.exit(f"Rooms import each other, so there is no first one: {back}.")
    ground = sorted(name for name, imported in rooms.items() if not imported)
    above = reduced({name: imported - set(ground) for name, imported in rooms.items() if name not in ground})
    inner = laid_out(reduced(wing), {name: _size(name) for name in wing})
    sizes = {name: _size(name) for name in above}
    sizes["graph"] = (inner.width + 2 * _PAD, inner.height + 2 * _PAD + 12)
    house = laid_out(above, sizes)
    widths = [_size(name)[0] for name in ground]
    slab = sum(widths) + _ACROSS * (len(widths) + 1)
    width = max(house.width, slab) + 2 * _PAD
    height = house.height + 2 * _PAD + 2 * _DOWN + _HEIGHT
    rooms_within = {"graph": "".join(_drawn(inner, _PAD, _PAD + 12, source / "graph", {}))}
    parts = _drawn(house, (width - house.width) / 2, _PAD, source, rooms_within)
    y = house.height + _PAD + _DOWN
    parts.append(
        f'<rect class="slab" x="{_PAD}" y="{y:.1f}" width="{width - 2 * _PAD:.1f}" height="{_HEIGHT + 24}" rx="6"/>'
    )
    x = (width - slab) / 2 + _ACROSS
    for name, one in zip(ground, widths, strict=True):
        parts.append(
            f'<rect class="box" x="{x:.1f}" y="{y + 12:.1f}" width="{one:.1f}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{x + one / 2:.1f}" y="{y + 12 + _HEIGHT / 2 + 5:.1f}">{name}</text>'
        )
        x += one + _ACROSS
    head = '<marker id="head" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
    head += '<path class="head" d="M0 0L8 4L0 8z"/></marker>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="house" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" aria-labelledby="title">',
            '<title id="title">The rooms of Glasshouse: each stands above those that it imports</title>',
            f"<style>{_STYLE}</style><defs>{head}</defs>",
            f'<rect class="ground" width="{width:.0f}" height="{height:.0f}" rx="10"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def main(arguments: Sequence[str]) -> None:
    """Write the picture, or check it."""
    drawn = picture()
    if "--check" not in arguments:
        PICTURE.write_text(drawn, encoding="utf-8")
        print(f"{PICTURE.relative_to(ROOT)}: {len(drawn) // 1000} kB")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not what the imports say. Run: python docs/scripts/house.py")


if __name__ == "__main__":
    main(sys.argv[1:])
