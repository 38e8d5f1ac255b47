"""Data sets side by side: while one trains models on a GPU, the chains of another use the cores."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from glasshouse import InputError
from glasshouse.compute.base import share_gpu
from glasshouse.compute.local import end_with
from glasshouse.core.progress import track
from glasshouse.io.files import sharing
from glasshouse_experiments.experiment import EXPERIMENTS
from glasshouse_experiments.jobs import Job, Order

__all__ = ["run_lanes"]

_LOOK = 1.0  # seconds between two looks at what is finished

Place = tuple[str, int]  # an experiment's name and the number of its part; parts hold functions, which do not travel


def run_lanes(jobs: Sequence[Job], order: Order, *, lanes: int) -> None:
    """Run jobs of different data sets side by side, those of one data set one after the other, in their order.

    A data set has a process of its own, because its experiments share models and scores. The process keeps tables in
    files; the caller finds them, or runs the job again and says what is wrong with it. Jobs that nothing may run beside
    are left to the caller too.

    Args:
        jobs: of all experiments.
        order: how they are run.
        lanes: how many data sets at most are run at the same time.
    """
    waiting: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.part.alone and job.holder(order.place) is None:
            waiting.setdefault(job.dataset, []).append(job)
    todo = [job for of_dataset in waiting.values() for job in of_dataset]
    shown = track(_finished(waiting, order, lanes), total=len(todo), label="Tables", unit="tables", show=order.progress)
    for _ in shown:
        pass


def _finished(waiting: dict[str, list[Job]], order: Order, lanes: int) -> Iterator[Job]:
    """Every job that a lane has finished, while lanes run."""
    from joblib.externals.loky.backend import get_context

    context = get_context("loky")  # as "spawn", but a script without a main guard is not run again by every lane
    left = [job for of_dataset in waiting.values() for job in of_dataset]
    queue = list(waiting)
    running: list[BaseProcess] = []
    try:
        while queue or running:
            while queue and len(running) < lanes:
                dataset = queue.pop(0)
                places = [(job.name, EXPERIMENTS.find(job.name).index(job.part)) for job in waiting[dataset]]
                lane: BaseProcess = context.Process(target=_lane, args=(dataset, places, order, lanes), name=dataset)
                lane.start()
                running.append(lane)
            wait([lane.sentinel for lane in running], timeout=_LOOK)
            running = [lane for lane in running if lane.is_alive()]
            done = [job for job in left if job.holder(order.place) is not None]
            left = [job for job in left if job not in done]
            yield from done
    finally:
        for lane in running:  # the caller was interrupted
            lane.terminate()


def _lane(dataset: str, places: Sequence[Place], order: Order, lanes: int) -> None:
    """What the process of a data set does."""
    end_with(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which then ends its lanes
    share_gpu(lanes)
    quiet = dataclasses.replace(order, progress=False)
    with sharing():
        for name, number in places:
            try:
                Job(name, EXPERIMENTS.find(name)[number], dataset).run(quiet)
            except InputError as error:  # the caller tries again, and then says all that is wrong
                sys.stderr.write(f"{dataset} ({name}): {error.faults[0]}\n")
