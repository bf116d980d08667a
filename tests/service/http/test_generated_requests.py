"""Requests that schemathesis makes of the service's description: none makes it fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.http.conftest import Serve

LEAST = 500


@pytest.mark.deep
def test_no_generated_request_makes_the_service_fail(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    server = serve(f"--root={tmp_path / 'notes'}", store=tmp_path / "store")
    server.ask(
        "append", {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": "tea"}
    )
    described = server.ask("/openapi.json").json
    # Drawn names of projects would make 404 of every answer.
    described["paths"] = {
        path.replace("{project}", "default"): verbs
        | {"parameters": [each for each in verbs.get("parameters", []) if each["name"] != "project"]}
        for path, verbs in described["paths"].items()
    }
    (tmp_path / "openapi.json").write_text(json.dumps(described))
    (tmp_path / "schemathesis.toml").write_text(
        "[checks.not_a_server_error]\nexpected-statuses = ['2xx', '4xx', 503]\n"
    )
    done = subprocess.run(
        [
            *(Path(sys.executable).parent / "schemathesis", "--config-file", tmp_path / "schemathesis.toml"),
            *("run", tmp_path / "openapi.json", "--url", f"http://127.0.0.1:{server.port}"),
            *("--header", f"Authorization: Bearer {server.token}", "--checks", "not_a_server_error"),
            *("--phases", "fuzzing", "--max-examples", "12", "--continue-on-failure", "--no-shrink"),
            *("--report", "json", "--report-json-path", tmp_path / "report.json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert json.loads((tmp_path / "report.json").read_text())["test_cases"]["generated"] >= LEAST
