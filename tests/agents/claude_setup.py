"""Claude Code: how it is started alone with a model server, and when it takes a prompt."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agents.bench import AgentPane, Launch, Stage
from agents.model import anthropic

NAME = "claude"
PROTOCOLS = (anthropic,)
# Of the server that asks the user something itself.
ASKING_TOOLS = ("mcp__parcels__weigh_parcel", "mcp__parcels__pay_postage")


def prepare(stage: Stage) -> Launch:
    wishes = stage.wishes
    state: dict[str, Any] = {"numStartups": 5, "lastOnboardingVersion": stage.version, "projects": {}}
    if "onboarding" not in wishes:
        state |= {"hasCompletedOnboarding": True, "theme": "dark"}
    if "untrusted" not in wishes:
        # 1.0.x does not start without the list of tools.
        trusted = {"allowedTools": [], "hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state["projects"] = {str(stage.project): trusted}
    (stage.home / "post.py").write_text(MCP_SERVER, "utf-8")
    servers = {"post": {"type": "stdio", "command": "python3", "args": [str(stage.home / "post.py")]}}
    if "mcp" in wishes:
        state["mcpServers"] = servers
    if "tools" in wishes:
        script = stage.project / "tools.py"
        script.write_text(Path(__file__).with_name("parcel_tools.py").read_text("utf-8"), "utf-8")
        state["mcpServers"] = {"parcels": {"type": "stdio", "command": sys.executable, "args": [str(script)]}}
    if "mcp-unknown" in wishes:
        (stage.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    settings: dict[str, Any] = {"permissions": {"allow": ["Bash(sleep:*)", "Bash(tail:*)", "Read", *ASKING_TOOLS]}}
    (stage.home / ".claude").mkdir()
    (stage.home / ".claude.json").write_text(json.dumps(state), "utf-8")
    (stage.home / ".claude" / "settings.json").write_text(json.dumps(settings), "utf-8")
    env = {
        "ANTHROPIC_BASE_URL": stage.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # All tools at once, not by a search that the script would have to make.
        "ENABLE_TOOL_SEARCH": "false",
        # As root, it refuses to skip permissions outside a sandbox.
        "IS_SANDBOX": "1",
    }
    if "api-key" in wishes:
        env["ANTHROPIC_API_KEY"] = "sk-ant-dummy-key-for-recordings-0123456789"
    else:
        env["ANTHROPIC_AUTH_TOKEN"] = "dummy"
    if "suggestions" in wishes:
        del env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
        env |= {"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "true", "DISABLE_ERROR_REPORTING": "1"}
    if "few-tries" in wishes:
        env["CLAUDE_CODE_MAX_RETRIES"] = "1"
    if "bypass" in wishes:
        return Launch(("--dangerously-skip-permissions",), env)
    if tuple(map(int, stage.version.split("."))) < (1, 0, 30):
        # It knew no modes then.
        return Launch((), env)
    mode = next((mode for mode in ("plan", "auto") if mode in wishes), "default")
    return Launch(("--permission-mode", mode), env)


def ready(pane: AgentPane) -> None:
    pane.wait_for(r"^[│\s]*[>❯](?: |\xa0|$)")
    pane.wait_until(pane.is_raw, "the keyboard")
    pane.settle()


MCP_SERVER = """\
import json, pathlib, sys

TOOL = {"name": "send", "description": "Sends a parcel", "inputSchema": {
    "type": "object", "properties": {"parcel": {"type": "string"}}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "post", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
        pathlib.Path(__file__).with_name("listed").touch()
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
