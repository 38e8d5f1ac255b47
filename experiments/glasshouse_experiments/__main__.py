"""``python -m glasshouse_experiments``: `reproduce_all` on a machine that has no typer and no pydantic."""

from __future__ import annotations

import argparse

from glasshouse_experiments.runner import reproduce_all

__all__ = ["main"]


def main() -> None:
    """Run; the tables are files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--dataset", dest="datasets", action="append")
    parser.add_argument("--out", default="results")
    parser.add_argument("--pools", default="runs/pools")
    for name in ("seed", "lanes", "workers"):
        parser.add_argument(f"--{name}", type=int, default=int(name != "seed"))
    for _ in reproduce_all(progress=False, **vars(parser.parse_args())):
        pass


if __name__ == "__main__":
    main()
