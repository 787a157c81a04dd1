"""Names of verdicts for what a candidate reports; a claim never becomes a pass or our fault."""

import pytest

from kernel_env.terms import UNSCORED, Stage, Verdict
from server.protocol import Failure
from server.verdicts import verdict_of


@pytest.mark.parametrize("failure", [None, *Failure])
@pytest.mark.parametrize("stage", list(Stage))
def test_no_report_of_a_candidate_is_a_pass_or_unscored(failure: Failure | None, stage: Stage) -> None:
    verdict = verdict_of(failure, stage)
    assert verdict not in UNSCORED | {Verdict.PASSED, Verdict.ROOFLINE_VIOLATION}


@pytest.mark.parametrize("failure", [None, Failure.EXCEPTION, Failure.NOT_CAPTURABLE])
def test_an_exception_is_a_compile_error_until_the_first_call_is_over(failure: Failure | None) -> None:
    assert verdict_of(failure, Stage.COMPILE) is Verdict.COMPILE_ERROR
    assert verdict_of(failure, Stage.CORRECTNESS) is Verdict.RUNTIME_ERROR
    assert verdict_of(failure, Stage.TIMING) is Verdict.RUNTIME_ERROR


@pytest.mark.parametrize("stage", [Stage.COMPILE, Stage.CORRECTNESS, Stage.TIMING])
def test_failures_with_a_name_of_their_own_keep_it_in_every_stage(stage: Stage) -> None:
    assert verdict_of(Failure.OUT_OF_MEMORY, stage) is Verdict.OUT_OF_MEMORY
    assert verdict_of(Failure.CONSTRUCTOR, stage) is Verdict.COMPILE_ERROR
    assert verdict_of(Failure.COMPILATION, stage) is Verdict.COMPILE_ERROR
    assert verdict_of(Failure.STRUCTURE, stage) is Verdict.INCORRECT_STRUCTURE
