#!/usr/bin/env python3
"""When tests/run gives a job up: one that waits or computes without end, and not one that is slow.

variants: release
"""
import os
import subprocess

import schedule
from tap import main, test


class Ended:
    """Ends after so many waits; 0: never."""

    def __init__(self, waits):
        self.waits = waits

    def wait(self, seconds):
        self.waits -= 1
        return self.waits == 0


def outlasts(used, waits=0):
    """Of a job that has used these CPU seconds after each wait of 100 s."""
    used = iter(used)
    own, schedule.cpu_seconds = schedule.cpu_seconds, lambda session: next(used)
    try:
        return schedule.outlasts(1, Ended(waits), 100)
    finally:
        schedule.cpu_seconds = own


@test
def a_job_that_ends_in_time_is_not_looked_at():
    assert not outlasts([], waits=1)


@test
def a_job_that_waits_is_given_up():
    assert outlasts([0.1])
    assert outlasts([30, 60, 60.5])


@test
def a_job_that_works_goes_on():
    assert not outlasts([30, 60, 90], waits=4)


@test
def a_job_that_computes_without_end_is_given_up():
    cpus = os.cpu_count()
    assert outlasts([50 * cpus, 99 * cpus, 101 * cpus])


@test
def the_time_of_a_session_and_of_its_children_counts():
    count = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
    with subprocess.Popen(["sh", "-c", f"sh -c '{count}'; echo; exec cat"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, start_new_session=True) as job:
        job.stdout.readline()
        assert schedule.cpu_seconds(job.pid) > 0
        job.stdin.close()


@test
def one_that_only_waits_is_killed_and_reported():
    job = schedule.Job("waits", ["sleep", "1000"], dict(os.environ), plain=True, seconds=1)
    failures = schedule.run_job(job).failures
    assert len(failures) == 1 and "1 s" in failures[0], failures


main()
