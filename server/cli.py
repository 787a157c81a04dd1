"""`kernel-env`: the command line. Serves, lists tasks, judges one file, examines the host. Trusted side.

Exit codes: 0 done, whatever the verdict; 1 `doctor` found something refused, `rejudge` another outcome, `tasks lint` a
fault, or `tasks fetch` fetched nothing; 2 the request cannot be served as it was made; 3 our own fault.
"""

import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from pydantic import ValidationError

from kernel_env.models import UNSCORED, KernelAction, KernelObservation

from .environment import KernelEnvironment
from .errors import EvaluatorError, InvalidRequest, KernelEnvError
from .evaluator.devices import candidate_devices, find_devices, kind_of
from .rejudge import rejudge
from .runtime import Build, Runtime, build_evaluator
from .sandbox.doctor import Check, State, run_checks
from .settings import BadSetting, Keep, Settings, parse_devices
from .tasks.commands import AsJson, tasks_app
from .tasks.registry import load_one, load_tasks

logger = logging.getLogger(__name__)

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_OUR_FAULT = 3

app = cyclopts.App(name="kernel-env", help="An environment in which agents write GPU kernels.", version_flags=[])
app.command(tasks_app(lambda: Settings.from_environ(os.environ).tasks_folder))

# A lone hyphen stands for standard input, which the parser would else take for an option.
SubmissionFile = Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `kernel-env` program."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Exit code of one command line."""
    try:
        code = app(list(arguments), exit_on_error=False, print_error=True, result_action="return_value")
    except cyclopts.CycloptsError:
        return EXIT_USAGE  # it has printed what is wrong
    except (BadSetting, InvalidRequest) as error:
        _complain(str(error))
        return EXIT_USAGE
    except KernelEnvError as error:
        _complain(str(error))
        return EXIT_OUR_FAULT
    except Exception:
        logger.exception("command_failed")
        return EXIT_OUR_FAULT
    return code if isinstance(code, int) else 0


@app.command
def serve(*, host: str | None = None, port: int | None = None) -> None:
    """Serve the environment until SIGTERM or Ctrl-C.

    Args:
        host: Address to listen on. Default: HOST, else 127.0.0.1.
        port: TCP port to listen on. Default: PORT, else 8000.
    """
    Settings.from_environ(os.environ)  # a bad value is reported here in one line, not by a traceback at import
    # OpenEnv's server takes five seconds to import, which the other commands need not wait for.
    from . import app as application  # noqa: PLC0415

    application.main(host, port)


@app.command
def evaluate(
    *,
    file: SubmissionFile,
    task: str | None = None,
    task_file: Path | None = None,
    language: str | None = None,
    device: str | None = None,
    audit: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Judge one submission, as a step of an episode would be judged.

    Args:
        file: Python file that defines `ModelNew`; `-` reads standard input.
        task: Id of the task.
        task_file: Python file that is the task, instead of an id.
        language: `triton`, `cuda` or `cpp`. Default: read off the code.
        device: `cpu` or `cuda:N`. Default: KERNEL_ENV_DEVICES.
        audit: Folder in which an audit bundle of the evaluation is kept, for `rejudge`.
        as_json: Print one JSON object, the observation with its reward.
    """
    settings, task_id = _with_task(_settings_for(device), task, task_file)
    if audit is not None:
        settings = replace(settings, audit=Keep.ALL, audit_dir=audit)
    action = _action(_read(file), language)
    observation = judge_once(settings, task_id, action)
    _say(json.dumps(_plain(observation)) if as_json else _summary(observation))
    return EXIT_OUR_FAULT if observation.verdict in UNSCORED else 0


@app.command(name="rejudge")
def judge_again(bundle: Path, /, *, device: str | None = None, as_json: AsJson = False) -> int:
    """Judge the submission of an audit bundle again, with the same hidden values, and print what differs.

    Args:
        bundle: File in the folder KERNEL_ENV_AUDIT_DIR, or of `evaluate --audit`.
        device: `cpu` or `cuda:N`, of the kind the bundle is of. Default: KERNEL_ENV_DEVICES.
        as_json: Print one JSON object, with the result and every difference.
    """
    from .evaluator.audit import read  # noqa: PLC0415 as above

    kept = read(bundle)
    settings = _settings_for(device)
    _progress(f"judging {kept.task['task_id']} again")
    outcome = rejudge(kept, settings)
    if as_json:
        _say(json.dumps({"agrees": outcome.agrees, **asdict(outcome)}))
    else:
        _say(f"then: {kept.result['verdict']}  now: {outcome.result.verdict}")
        for found in outcome.differences:
            _say(f"{'DIFFERS' if found.matters else 'differs'}  {found.name}: {found.then} then, {found.now} now")
    return 0 if outcome.agrees else EXIT_REFUSED


@app.command
def doctor(*, as_json: AsJson = False) -> int:
    """Try every protection of the sandbox and every assumption about the host.

    Args:
        as_json: Print a JSON array instead of a table.
    """
    settings = Settings.from_environ(os.environ)
    gpu_ids = find_devices(settings.devices)
    checks = run_checks(
        uid_base=settings.uid_base,
        device_kind=kind_of(gpu_ids[0]),
        visible_devices=[gpu_id.removeprefix("cuda:") for gpu_id in gpu_ids if kind_of(gpu_id) == "cuda"],
        devices=sorted({node for gpu_id in gpu_ids for node in candidate_devices(gpu_id)}),
        extra=(partial(_check_devices, settings),),
    )
    if as_json:
        _say(json.dumps([asdict(check) for check in checks]))
    else:
        width = max((len(check.name) for check in checks), default=0)
        for check in checks:
            _say(f"{check.state:<8}  {check.name:<{width}}  {check.detail}")
    return EXIT_REFUSED if any(check.state == "refused" for check in checks) else 0


def _check_devices(settings: Settings) -> Check:
    """Every device judges a trusted module, through shared memory, sandbox and clock."""
    from .evaluator.evaluator import Evaluator  # noqa: PLC0415 the other commands do without

    try:
        evaluator = Evaluator(settings)
        try:
            ceilings = evaluator.self_test()
        finally:
            evaluator.close()
    except EvaluatorError as error:
        return Check("judge", State.REFUSED, str(error))
    found = (f"{gpu_id} judges, {values['bandwidth_gb_s']:.0f} GB/s" for gpu_id, values in ceilings.items())
    return Check("judge", State.OK, "; ".join(found))


def judge_once(
    settings: Settings, task_id: str, action: KernelAction, build: Build = build_evaluator
) -> KernelObservation:
    """Observation of a one-turn episode.

    Raises:
        InvalidRequest: Unknown task, or a language that the device does not offer.
        EvaluatorError: No evaluator can be built.
    """
    load_tasks(settings.tasks_folder).get(task_id)  # before an evaluator is started for nothing
    runtime = Runtime(settings, build, event_fd=None)
    try:
        _progress("starting the evaluator")
        runtime.start()
        environment = KernelEnvironment(runtime.services)
        environment.reset(task_id=task_id, language=action.language, max_turns=1)
        _progress(f"judging a submission to {task_id}")
        return environment.step(action)
    finally:
        runtime.close()


def _settings_for(device: str | None) -> Settings:
    """Settings of the environment, with the device of the command line if there is one.

    Raises:
        InvalidRequest: No such device.
    """
    settings = Settings.from_environ(os.environ)
    if device is None:
        return settings
    try:
        return replace(settings, devices=find_devices(parse_devices(device)))
    except (EvaluatorError, ValueError) as error:
        raise InvalidRequest(f"--device: {error}") from error


def _with_task(settings: Settings, task: str | None, task_file: Path | None) -> tuple[Settings, str]:
    """Settings that offer the task asked for, and its id.

    Raises:
        InvalidRequest: Not one of the two, or the file holds no task.
    """
    if (task is None) == (task_file is None):
        raise InvalidRequest("one of --task and --task-file is needed, not both")
    if task is not None:
        return settings, task
    return replace(settings, tasks_folder=str(task_file)), load_one(str(task_file)).task_id


def _read(file: str) -> str:
    """Text of a submission.

    Raises:
        InvalidRequest: No such file, or it is not UTF-8.
    """
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8")
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is not UTF-8: byte {error.start} cannot be decoded") from error


def _action(code: str, language: str | None) -> KernelAction:
    try:
        return KernelAction(code=code, language=language)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InvalidRequest(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from error


def _plain(observation: KernelObservation) -> dict[str, Any]:
    return observation.model_dump(mode="json", exclude={"metadata"})


def _summary(observation: KernelObservation) -> str:
    """The observation for a person: what is set, the feedback last."""
    shown = ("verdict", "reward", "speedup", "roofline_frac", "t_new_ms", "t_ref_ms", "t_min_ms", "timing", "device")
    fields = _plain(observation)
    lines = [f"{name}: {fields[name]}" for name in shown if fields[name] is not None]
    return "\n".join([*lines, "", observation.feedback])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"kernel-env: {text}\n")


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")


if __name__ == "__main__":
    main()
