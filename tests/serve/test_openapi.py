"""The OpenAPI description: schemathesis reads it, makes requests of it and finds no answer that it does not allow."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode

from routesim.serve.app import make_app
from routesim.serve.served import load_served
from routesim.serve.service import Service

OPERATIONS = [("POST", "/recommend"), ("POST", "/observe"), ("GET", "/loads"), ("GET", "/state"), ("GET", "/health")]


@pytest.fixture
def description(tmp_path: Path) -> Any:
    """Schemathesis starts the application itself, and closes it after each test."""
    service = Service(load_served("helsinki"), tmp_path, most_pairs=8)
    return schemathesis.openapi.from_asgi("/openapi.json", make_app(service, hosts=["testserver"]))


def examples(most: int) -> Any:
    checks = list(HealthCheck)
    return settings(
        max_examples=most, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=checks
    )


def try_out(description: Any, method: str, path: str, mode: GenerationMode, most: int) -> list[int]:
    """Make requests that keep the rules of the description, or break them; return the statuses of the answers."""
    seen: list[int] = []

    @given(case=description[path][method].as_strategy(generation_mode=mode))
    @examples(most)
    def holds(case: Any) -> None:
        seen.append(case.call_and_validate().status_code)

    holds()
    return seen


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_requests_by_the_rules_are_answered_by_the_rules(description: Any, method: str, path: str) -> None:
    seen = try_out(description, method, path, GenerationMode.POSITIVE, 40)
    assert seen
    assert max(seen) < 500


@pytest.mark.parametrize("path", ["/recommend", "/observe"])
def test_requests_against_the_rules_are_refused_by_the_rules(description: Any, path: str) -> None:
    seen = try_out(description, "POST", path, GenerationMode.NEGATIVE, 40)
    assert 422 in seen
    assert max(seen) < 500


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("path", ["/recommend", "/observe"])
def test_the_description_holds_for_long(description: Any, path: str, mode: GenerationMode) -> None:
    try_out(description, "POST", path, mode, 3000)


def test_the_description_holds_from_one_request_to_the_next(description: Any) -> None:
    machine = description.as_state_machine()
    machine.run(settings=settings(examples(5), stateful_step_count=8))


@pytest.mark.slow
def test_the_description_holds_over_long_conversations(description: Any) -> None:
    description.as_state_machine().run(settings=settings(examples(300), stateful_step_count=20))


def test_the_whole_service_is_described(description: Any) -> None:
    assert set(description) == {path for _, path in OPERATIONS}
