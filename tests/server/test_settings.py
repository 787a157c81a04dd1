"""Settings: defaults, and a bad value names its variable."""

from pathlib import Path

import pytest

from server.settings import BadSetting, Keep, Settings, parse_devices


def test_empty_environment_gives_the_documented_defaults() -> None:
    settings = Settings.from_environ({})
    assert settings.max_concurrent_envs == 64
    assert settings.max_turns == 4
    assert settings.step_budget_s is None
    assert settings.session_timeout_s is None
    assert settings.devices == ()
    assert settings.compile_timeout_s == 180.0
    assert settings.run_timeout_s == 60.0
    assert 2 <= settings.slots <= 16
    assert settings == Settings()


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.from_environ({"KERNEL_ENV_STEP_BUDGET_S": " ", "PORT": ""}) == Settings()


def test_every_variable_is_read(tmp_path: Path) -> None:
    settings = Settings.from_environ(
        {
            "MAX_CONCURRENT_ENVS": "3",
            "KERNEL_ENV_MAX_TURNS": "2",
            "KERNEL_ENV_STEP_BUDGET_S": "50.5",
            "KERNEL_ENV_SESSION_TIMEOUT_S": "7200",
            "KERNEL_ENV_TASKS": str(tmp_path),
            "KERNEL_ENV_DEVICES": "cuda:0, cuda:3",
            "KERNEL_ENV_EVAL_LOG": str(tmp_path / "log"),
            "KERNEL_ENV_REQUIRE_ISOLATION": "1",
            "KERNEL_ENV_AUDIT": "all",
            "KERNEL_ENV_AUDIT_DIR": str(tmp_path / "audit"),
            "KERNEL_ENV_UID_BASE": "40000",
            "KERNEL_ENV_SLOTS": "5",
            "KERNEL_ENV_MAX_WAITING": "9",
            "KERNEL_ENV_COMPILE_TIMEOUT_S": "10",
            "KERNEL_ENV_RUN_TIMEOUT_S": "20",
            "KERNEL_ENV_HOST_MEMORY_GB": "1.5",
            "HOST": "0.0.0.0",
            "PORT": "9000",
        }
    )
    assert settings == Settings(
        max_concurrent_envs=3,
        max_turns=2,
        step_budget_s=50.5,
        session_timeout_s=7200.0,
        tasks_folder=str(tmp_path),
        devices=("cuda:0", "cuda:3"),
        eval_log=tmp_path / "log",
        require_isolation=True,
        audit=Keep.ALL,
        audit_dir=tmp_path / "audit",
        uid_base=40000,
        slots=5,
        max_waiting=9,
        compile_timeout_s=10.0,
        run_timeout_s=20.0,
        host_memory_gb=1.5,
        host="0.0.0.0",
        port=9000,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_CONCURRENT_ENVS", "0"),
        ("MAX_CONCURRENT_ENVS", "many"),
        ("KERNEL_ENV_MAX_TURNS", "-1"),
        ("KERNEL_ENV_STEP_BUDGET_S", "nan"),
        ("KERNEL_ENV_SESSION_TIMEOUT_S", "60"),
        ("KERNEL_ENV_TASKS", "/no/such/folder"),
        ("KERNEL_ENV_DEVICES", "gpu0"),
        ("KERNEL_ENV_REQUIRE_ISOLATION", "yes"),
        ("KERNEL_ENV_UID_BASE", "0"),
        ("KERNEL_ENV_UID_BASE", "65533"),
        ("KERNEL_ENV_SLOTS", "2.5"),
        ("KERNEL_ENV_MAX_WAITING", "-1"),
        ("KERNEL_ENV_HOST_MEMORY_GB", "inf"),
        ("KERNEL_ENV_POLICY", "lax"),
        ("KERNEL_ENV_AUDIT", "some"),
        ("PORT", "70000"),
    ],
)
def test_a_bad_value_is_refused_and_its_variable_named(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=name):
        Settings.from_environ({name: value})


@pytest.mark.parametrize(
    "text", ["cpu,cuda:0", "cpu:0,cuda:0", "cpu:1,cpu:1", "cpu,cpu:1", "cuda:0,cuda:0", "cuda:", "cuda:007", "", "CPU"]
)
def test_devices_of_two_kinds_or_named_twice_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"device"):
        parse_devices(text)
