"""How Codex is set up for the bench, and when it takes a prompt. Its scenes are in codex.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from agents.bench import LIMIT, AgentPane, Launch, Stage
from agents.model import responses

NAME = "codex"
PROTOCOLS = (responses,)

# The newest model that a version knows: an older one brings up a dialog about newer ones. From 0.156 on the known
# models want their tools in a form of their own, so there it is one that it does not know.
_MODELS = (
    ((0, 156), "gpt-5"),
    ((0, 128), "gpt-5.5"),
    ((0, 116), "gpt-5.4"),
    ((0, 98), "gpt-5.2-codex"),
    ((0, 77), "gpt-5.1-codex-max"),
    ((0, 58), "gpt-5.1-codex"),
    ((0, 0), "gpt-5-codex"),
)
_OUTDATED_MODELS = (((0, 166), "gpt-5.5"), ((0, 140), "gpt-5.4"), ((0, 0), "gpt-5"))
# Nothing leaves the machine: what is not for loopback goes to a port where nobody listens.
_NOWHERE = "http://127.0.0.1:9"


def version_of(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def prepare(stage: Stage) -> Launch:
    """Wishes: untrusted, login, outdated (a model with a successor), update, hooks, mcp, read-only, retries, still."""
    home = stage.home / ".codex"
    home.mkdir()
    env = {
        "PARCELS_KEY": "dummy",
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        # Codex complains about a home in the folder for temporary files, and leaves a folder there at each start.
        "TMPDIR": str(stage.folder / "temporary"),
    }
    (stage.folder / "temporary").mkdir()
    if "login" in stage.wishes:
        (home / "config.toml").write_text("check_for_update_on_startup = false\n", "utf-8")
        return Launch(env=env)
    (home / "config.toml").write_text(_settings(stage), "utf-8")
    if "untrusted" in stage.wishes:
        # Some versions ask only where there is a repository.
        subprocess.run(["git", "init", "--quiet", stage.project], check=True, timeout=LIMIT)
    if "update" in stage.wishes:
        latest = {"latest_version": "9.9.9", "last_checked_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        (home / "version.json").write_text(json.dumps(latest), "utf-8")
    if "hooks" in stage.wishes:
        hook = {"hooks": [{"type": "command", "command": "true"}]}
        (home / "hooks.json").write_text(json.dumps({"hooks": {"Stop": [hook], "UserPromptSubmit": [hook]}}), "utf-8")
    return Launch(env=env)


def _settings(stage: Stage) -> str:
    version = version_of(stage.version)
    models = _OUTDATED_MODELS if "outdated" in stage.wishes else _MODELS
    lines = [f'model = "{next(name for since, name in models if version >= since)}"']
    if "untrusted" not in stage.wishes:
        # Where these are set, some versions do not ask whether to trust the folder.
        lines.append('approval_policy = "on-request"')
        lines.append(f'sandbox_mode = "{"read-only" if "read-only" in stage.wishes else "workspace-write"}"')
    lines += [
        'model_provider = "parcels"',
        f"check_for_update_on_startup = {str('update' in stage.wishes).lower()}",
        "suppress_unstable_features_warning = true",
        "[model_providers.parcels]",
        'name = "parcels"',
        f'base_url = "{stage.url}/v1"',
        'wire_api = "responses"',
        'env_key = "PARCELS_KEY"',
        "request_max_retries = 0",
        f"stream_max_retries = {5 if 'retries' in stage.wishes else 1}",
        "[analytics]",
        "enabled = false",
        # Its sandbox would leave empty folders such as .git in them, and later runs would take them for projects.
        "[sandbox_workspace_write]",
        "exclude_slash_tmp = true",
        "exclude_tmpdir_env_var = true",
        "[features]",
        "daemon_auto_start = false",
        "default_mode_request_user_input = true",
    ]
    tui = ["screen_reader_detection_done = true"] if version >= (0, 155) else []
    if "still" in stage.wishes:
        tui.append("animations = false")
    if tui:
        lines += ["[tui]", *tui]
    if "untrusted" not in stage.wishes:
        lines += [f'[projects."{stage.project}"]', 'trust_level = "trusted"']
    if "mcp" in stage.wishes:
        script = Path(__file__).with_name("parcel_tools.py")
        lines += ["[mcp_servers.parcels]", f'command = "{sys.executable}"', f'args = ["{script}"]']
    return "\n".join(lines) + "\n"


def ready(pane: AgentPane) -> None:
    pane.wait_until(lambda: has_prompt(pane) or offers_model(pane), "a prompt", 2 * LIMIT)
    if offers_model(pane):
        pane.keys("Down", "Enter")
        pane.wait_until(lambda: has_prompt(pane), "a prompt", LIMIT)
    # The session begins a moment after its prompt is drawn; what is switched before then is switched back.
    pane.settle(1.5)


def offers_model(pane: AgentPane) -> bool:
    """Whether it asks first if a newer model should be used; the other option is to stay with that of the settings."""
    return re.search(r"^\s+2\. Use existing model", pane.screen(), re.MULTILINE) is not None


def has_prompt(pane: AgentPane) -> bool:
    """Whether the cursor blinks in the line for the prompt. In a dialog it is hidden."""
    shown = pane.tmux("capture-pane", "-p", ";", "display-message", "-p", "#{cursor_flag} #{cursor_y}")
    *lines, last = shown.splitlines()
    visible, row = map(int, last.split())
    return bool(visible) and row < len(lines) and lines[row].startswith(("›", "▌"))
