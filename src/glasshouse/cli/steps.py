"""What several commands share: options, and steps that check all input first, save and print."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from glasshouse.auditing.result import AuditResult
from glasshouse.cli.app import say, stopped_code
from glasshouse.config import read_policy
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.io.files import check_free, resolved, sharing
from glasshouse.io.limits import as_bytes, memory_limit, process_limit
from glasshouse.report import print_summary
from glasshouse.report.json_io import metrics_json
from glasshouse.report.policy import Policy
from glasshouse.report.redaction import key_beside, read_or_make_key


def _share(context: typer.Context, shared: bool) -> bool:
    """Let the option hold until the command ends."""
    context.with_resource(sharing(shared))
    return shared


def _limited(context: typer.Context, given: str | None) -> str | None:
    """The limit holds until the command ends; what an audit does after reading has one if the user gives it."""
    if given is not None:
        context.with_resource(memory_limit(as_bytes(given, place="--memory")))
    if given is not None or context.info_name != "audit":
        context.with_resource(process_limit())
    return given


Attacks = Annotated[list[str] | None, typer.Option("--attack", "-a", help="Attack to run; may be repeated.")]
Author = Annotated[str | None, typer.Option(help="Who is responsible for the audit; shown in the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", help="With --redact: the key file. Default: RUN.key beside the run.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        callback=_limited,
        help="Memory limit per input file and for CPU toggling (default 1GiB); a process may use twice as much.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the same folder.")]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared",
        envvar="GLASSHOUSE_SHARED",
        callback=_share,
        help="Write files with the umask's permissions instead of owner-only.",
    ),
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="YAML file of limits, as for check; the report rates the run by them.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run, written by audit or score.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code/--no-trust-code", help="Allow code that the file names: factories and pickled graphs."),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Number of local processes that train and score.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Print more: what was noticed, ε, precision, groups, and what could be found."
    ),
]
Redact = Annotated[bool, typer.Option("--redact", help="Replace the ids of records with keyed hashes.")]


@dataclass(frozen=True, kw_only=True)
class Output:
    """The options of a command that makes a run: how it is saved, judged and shown."""

    policy: PolicyFile = None
    author: Author = None
    redact: Redact = False
    key: KeyFile = None
    overwrite: Overwrite = False
    shared: Shared = False
    memory: Memory = None
    as_json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def progress(self) -> bool | None:
        """Whether to show progress."""
        return False if self.quiet or self.as_json else None

    def checked(self, out: Path | None, read: Callable[[], Any]) -> tuple[Any, Policy | None, Path | None]:
        """What is read, the policy and the place of the key: all input of the command, before the long work."""
        found, _, limits, key = checked(
            read,
            lambda: None if out is None else check_free(out, overwrite=self.overwrite),
            lambda: limits_of(self.policy),
            lambda: key_file(redact=self.redact, key=self.key, out=out),
        )
        return found, limits, key


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes ``output`` have the options of `Output`, after its own."""
    own, shared = (inspect.signature(one, eval_str=True).parameters for one in (command, Output))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        command(output=Output(**{name: given.pop(name) for name in shared}), **given)

    parameters = [one for name, one in own.items() if name != "output"]
    vars(called)["__signature__"] = inspect.Signature([*parameters, *shared.values()])
    return called


_LONG = 1.0  # seconds of loading that are worth a word


def key_file(*, redact: bool, key: Path | None, out: Path | None) -> Path | None:
    """Where the key of a redaction is or will be, checked before the long work; None if nothing is redacted."""
    if not redact and key is not None:
        raise InputError("--key: is only used with --redact; add --redact, or leave it out.")
    if not redact:
        return None
    place = key or (None if out is None else key_beside(out))
    if place is None:
        raise InputError("--redact: there is no run folder to store the key beside; add --out or --key.")
    if resolved(place).exists():
        read_or_make_key(place)
    return place


def limits_of(file: Path | None) -> Policy | None:
    """The policy in a file; None without one."""
    return None if file is None else read_policy(file)


def finish(
    result: AuditResult,
    output: Output,
    *,
    out: Path | None,
    policy: Policy | None,
    key: Path | None,
    seconds: float,
    loading: float = 0.0,
) -> None:
    """Save, print, and show where the report is; figures that cannot be saved are still printed."""
    fault: InputError | None = None
    if Path(sys.argv[0]).stem in ("glasshouse", "__main__"):  # not where another program calls the command
        result = with_setting(result, "command", shlex.join(["glasshouse", *sys.argv[1:]]))
    if output.author is not None:
        result = dataclasses.replace(result, context=dataclasses.replace(result.context, author=output.author))
    if key is not None:
        result = result.redacted(read_or_make_key(key))
    if out is not None:
        try:
            result.save(out, overwrite=output.overwrite, policy=policy)
        except InputError as error:
            fault = error
        except KeyboardInterrupt as error:
            say(f"Stopped while saving: {out} holds what it held before, or the complete new run.", err=True)
            raise typer.Exit(stopped_code(error)) from None
    if output.as_json:
        typer.echo(json.dumps(metrics_json(result.summary())))
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        print_summary(result.summary(), console, policy=policy, verbose=output.verbose)
        console.print()
        if out is not None and fault is None:
            say(f"Report: {(out / 'report.html').resolve()}")
        if key is not None:
            say(f"Key to the hashed ids: {key.resolve()}")
        apart = f", of which {seconds - loading:.1f} s computing" if loading >= _LONG else ""
        console.print(f"[dim]{seconds:.1f} s in total{apart}[/dim]", highlight=False)
    if fault is not None:
        raise fault


def with_setting(result: AuditResult, name: str, value: str) -> AuditResult:
    """The same result, whose report also says this of how it was made."""
    context = result.context
    context = dataclasses.replace(context, settings={**context.settings, name: value})
    return dataclasses.replace(result, context=context)


def checked(*steps: Callable[[], Any]) -> list[Any]:
    """What each step gives, before the long work; if some of them fail, the faults of all of them."""
    found: list[Any] = []
    faults: list[str] = []
    for step in steps:
        try:
            found.append(step())
        except InputError as error:
            faults.extend(error.faults)
    raise_faults(faults)
    return found
