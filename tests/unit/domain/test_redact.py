"""Secrets never reach the disk, harmless text does: what `agtmux.domain.redact` promises."""

from __future__ import annotations

import ast
import base64
import copy
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agtmux.domain import redact
from agtmux.domain.redact import MARK, MAX_DEPTH, Redacted, is_secret_name, redact_text, redact_value

ALNUM = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6dE9f"  # 40 characters, like most provider tokens
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4\n"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

# class of secret, text, what is left of it
PLANTED = [
    # known by its shape
    ("anthropic", f"key sk-ant-api03-{ALNUM}-x", f"key sk-ant-{MARK}"),
    ("openai", f"key sk-{ALNUM} end", f"key sk-{MARK} end"),
    ("openai-project", f"sk-proj-{ALNUM}_a-b", f"sk-proj-{MARK}"),
    ("openrouter", f"sk-or-v1-{ALNUM}", f"sk-or-{MARK}"),
    ("github-ghp", f"remote: ghp_{ALNUM[:36]}.", f"remote: ghp_{MARK}."),
    ("github-gho", f"gho_{ALNUM[:36]}", f"gho_{MARK}"),
    ("github-ghu", f"ghu_{ALNUM[:36]}", f"ghu_{MARK}"),
    ("github-ghs", f"ghs_{ALNUM[:36]}", f"ghs_{MARK}"),
    ("github-ghr", f"ghr_{ALNUM[:36]}", f"ghr_{MARK}"),
    ("github-pat", f"github_pat_11ABCDE_{ALNUM}", f"github_pat_{MARK}"),
    ("gitlab", "glpat-x7Yz_Ab3dEfGh1jKlMnO", f"glpat-{MARK}"),
    ("slack", "xoxb-123456789012-abcdefghij", f"xoxb-{MARK}"),
    ("slack-app", "xapp-1-A0B1C2-123456-abcdef", f"xapp-{MARK}"),
    ("slack-hook", "https://hooks.slack.com/services/T01ABC/B02DEF/xYz123",
     f"https://hooks.slack.com/services/{MARK}"),
    ("aws-id", "id AKIAIOSFODNN7EXAMPLE used", f"id AKIA{MARK} used"),
    ("aws-session-id", "ASIAIOSFODNN7EXAMPLE", f"ASIA{MARK}"),
    ("google", f"AIza{ALNUM[:35]}", f"AIza{MARK}"),
    ("google-oauth", f"ya29.a0{ALNUM}", f"ya29.{MARK}"),
    ("npm", f"npm_{ALNUM[:36]}", f"npm_{MARK}"),
    ("huggingface", f"hf_{ALNUM[:34]}", f"hf_{MARK}"),
    ("stripe", f"sk_live_{ALNUM[:24]}", f"sk_live_{MARK}"),
    ("stripe-restricted", f"rk_live_{ALNUM[:24]}", f"rk_live_{MARK}"),
    ("pypi", f"pypi-AgEIcHlwaS5vcmc{ALNUM}{ALNUM}", f"pypi-{MARK}"),
    ("jwt", f"got {JWT} back", f"got eyJ{MARK} back"),
    ("telegram", f"bot 123456789:AA{ALNUM[:33]}", f"bot 123456789:AA{MARK}"),
    ("sendgrid", f"SG.{ALNUM[:22]}.{ALNUM}", f"SG.{MARK}"),
    ("vault", f"hvs.{ALNUM}", f"hvs.{MARK}"),
    ("age", f"AGE-SECRET-KEY-1{ALNUM.upper()}", f"AGE-SECRET-KEY-1{MARK}"),
    ("gitlab-runner", "glrt-x7Yz_Ab3dEfGh1jKlMnO", f"glrt-{MARK}"),
    ("xai", f"xai-{ALNUM}", f"xai-{MARK}"),
    ("perplexity", f"pplx-{ALNUM}", f"pplx-{MARK}"),
    ("google-client", f"GOCSPX-{ALNUM}", f"GOCSPX-{MARK}"),
    ("groq", f"gsk_{ALNUM}", f"gsk_{MARK}"),
    ("digitalocean", f"dop_v1_{ALNUM}", f"dop_v1_{MARK}"),
    ("shopify", f"shpat_{ALNUM}", f"shpat_{MARK}"),
    ("tailscale", f"tskey-auth-{ALNUM}", f"tskey-auth-{MARK}"),
    ("discord-hook", "https://discord.com/api/webhooks/12/xYz_123-xYz_123",
     f"https://discord.com/api/webhooks/12/{MARK}"),
    ("after-escaped-newline", f"a\\nsk-ant-{ALNUM}", f"a\\nsk-ant-{MARK}"),
    ("after-colour", f"\x1b[32m{JWT}\x1b[0m", f"\x1b[32meyJ{MARK}\x1b[0m"),
    ("base64-pem", "x: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk=", f"x: LS0tLS1CRUdJTiBSU0Eg{MARK}"),
    # headers
    ("authorization-bearer", "Authorization: Bearer abc.def", f"Authorization: Bearer {MARK}"),
    ("authorization-basic", "Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MARK}"),
    ("authorization-token", "authorization: token hunter", f"authorization: token {MARK}"),
    ("authorization-none", "Authorization: hunter", f"Authorization: {MARK}"),
    ("authorization-verbose", "> Authorization: Digest username=\"a\", response=\"f00\"\n> Accept: */*",
     f"> Authorization: Digest {MARK}\n> Accept: */*"),
    ("authorization-curl", "curl -H 'Authorization: Bearer hunter' https://x.dev",
     f"curl -H 'Authorization: Bearer {MARK}' https://x.dev"),
    ("authorization-code", 'h["Authorization"] = "Bearer hunter"', f'h["Authorization"] = "Bearer {MARK}"'),
    ("authorization-call", 'req.set("Authorization", "Bearer hunter")',
     f'req.set("Authorization", "Bearer {MARK}")'),
    ("proxy-authorization", "Proxy-Authorization: Basic hunter", f"Proxy-Authorization: Basic {MARK}"),
    ("x-api-key", 'curl -H "x-api-key: hunter" x.dev', f'curl -H "x-api-key: {MARK}" x.dev'),
    ("cookie", "Cookie: sid=hunter; theme=dark\nHost: x", f"Cookie: {MARK}\nHost: x"),
    ("set-cookie", "< set-cookie: sid=hunter; Path=/", f"< set-cookie: {MARK}"),
    ("cookie-curl", "curl -b 'sid=hunter; a=b' x.dev", f"curl -b 'sid={MARK}' x.dev"),
    ("bearer-alone", "use Bearer xyz here", f"use Bearer {MARK} here"),
    ("bearer-lower", "bearer a1b2c3", f"bearer {MARK}"),
    ("basic-alone", "'Basic dXNlcjpwYXNzdzByZA=='", f"'Basic {MARK}'"),
    # key files
    ("pem", f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}-----END RSA PRIVATE KEY-----\nnext",
     f"-----BEGIN RSA PRIVATE KEY-----{MARK}-----END RSA PRIVATE KEY-----\nnext"),
    ("pem-truncated", f"cat k\n-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM_BODY}",
     f"cat k\n-----BEGIN OPENSSH PRIVATE KEY-----{MARK}"),
    ("pem-headless", f"$ tail k:\n{PEM_BODY}-----END PRIVATE KEY-----",
     f"$ tail k:{MARK}-----END PRIVATE KEY-----"),
    ("pem-escaped", "-----BEGIN PRIVATE KEY-----\\nMIIEvQIB\\n-----END PRIVATE KEY-----\\n",
     f"-----BEGIN PRIVATE KEY-----{MARK}-----END PRIVATE KEY-----\\n"),
    ("pem-numbered", "1→-----BEGIN EC PRIVATE KEY-----\n2→MIIEvQIB\n3→-----END EC PRIVATE KEY-----",
     f"1→-----BEGIN EC PRIVATE KEY-----{MARK}-----END EC PRIVATE KEY-----"),
    ("putty", "Private-Lines: 2\nAAAAgQCqcV7H\nAAAAgQCqcV7H\n", f"Private-Lines: 2\n{MARK}"),
    ("pgp", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----",
     f"-----BEGIN PGP PRIVATE KEY BLOCK-----{MARK}-----END PGP PRIVATE KEY BLOCK-----"),
    # addresses
    ("url", "git clone https://me:hunter@git.dev/x.git", f"git clone https://me:{MARK}@git.dev/x.git"),
    ("url-at-sign", "https://me:hun@ter@git.dev/x", f"https://me:{MARK}@git.dev/x"),
    ("url-no-user", "redis://:hunter@cache:6379/0", f"redis://:{MARK}@cache:6379/0"),
    ("url-slash", "postgres://me:hun/ter@db/app", f"postgres://me:{MARK}@db/app"),
    ("url-token-user", f"https://{ALNUM}@git.dev/x", f"https://{MARK}@git.dev/x"),
    ("query", "GET /cb?access_token=hunter&page=2", f"GET /cb?access_token={MARK}&page=2"),
    ("query-key", "https://maps.dev/a?q=1&key=hunter&z=2", f"https://maps.dev/a?q=1&key={MARK}&z=2"),
    ("query-sig", "https://b.dev/c?se=1&sig=hunter%3D", f"https://b.dev/c?se=1&sig={MARK}"),
    ("query-signature", "/c?signature=hunter", f"/c?signature={MARK}"),
    ("query-code", "/c?code=hunter&state=1", f"/c?code={MARK}&state=1"),
    ("query-auth", "/c?auth=hunter", f"/c?auth={MARK}"),
    # environment
    ("env", "FOO_TOKEN=hunter", f"FOO_TOKEN={MARK}"),
    ("env-aws", "AWS_SECRET_ACCESS_KEY=wJalr/XUt+nFEMI", f"AWS_SECRET_ACCESS_KEY={MARK}"),
    ("env-export", 'export DB_PASSWORD="a b c" && run', f'export DB_PASSWORD="{MARK}" && run'),
    ("env-single", "DB_PASSWORD='a \"b\" c' run", f"DB_PASSWORD='{MARK}' run"),
    ("env-escaped-quote", 'A_SECRET="a\\"b" run', f'A_SECRET="{MARK}" run'),
    ("env-shell-quote", "A_SECRET='it'\\''s' run", f"A_SECRET='{MARK}' run"),
    ("env-prefix", "PGPASSWORD=hunter psql -h db", f"PGPASSWORD={MARK} psql -h db"),
    ("env-listing", "HOME=/root\nDB_PASS=a b'c\nPATH=/bin", f"HOME=/root\nDB_PASS={MARK}\nPATH=/bin"),
    ("env-fish", "set -gx X_API_KEY hunter", f"set -gx X_API_KEY {MARK}"),
    ("env-docker", 'docker run -e "DB_PASSWORD=a b" img', f'docker run -e "DB_PASSWORD={MARK}" img'),
    ("env-npmrc", "//registry.npmjs.org/:_authToken=hunter", f"//registry.npmjs.org/:_authToken={MARK}"),
    ("env-npmrc-basic", "//reg.dev/:_auth=hunter", f"//reg.dev/:_auth={MARK}"),
    ("env-pwd", "DB_PWD=hunter", f"DB_PWD={MARK}"),
    ("env-jwt", "JWT=hunter", f"JWT={MARK}"),
    ("env-passcode", "PASSCODE: hunter", f"PASSCODE: {MARK}"),
    ("env-npmrc-spaced", "_auth = hunter", f"_auth = {MARK}"),
    ("env-escaped-newline", "a\\njwt=hunter b", f"a\\njwt={MARK} b"),
    ("env-growing-letters", "İİİİ A_TOKEN=hunter İ", f"İİİİ A_TOKEN={MARK} İ"),
    ("env-truncated", 'export DB_PASSWORD="a b c', f'export DB_PASSWORD="{MARK}"'),
    ("env-numbered", "     3→DB_PASSWORD=hunter", f"     3→DB_PASSWORD={MARK}"),
    ("env-diff", "+DB_PASSWORD=hunter", f"+DB_PASSWORD={MARK}"),
    # JSON, YAML, TOML, XML, code
    ("json", '{"password": "hun\\"ter", "user": "me"}', f'{{"password": "{MARK}", "user": "me"}}'),
    ("json-number", '{"password":12345,"user":"me"}', f'{{"password":{MARK},"user":"me"}}'),
    ("json-list", '{"passwords": ["a", "b"], "n": 1}', f'{{"passwords": {MARK}, "n": 1}}'),
    ("json-escaped", '{\\"password\\": \\"hun\\\\\\"ter\\", \\"u\\": 1}',
     f'{{\\"password\\": \\"{MARK}\\", \\"u\\": 1}}'),
    ("json-name-as-value", '{"a":"Cookie","password":"hunter"}', f'{{"a":"Cookie","password":"{MARK}"}}'),
    ("json-aws", '"SecretAccessKey": "wJalr/XUt"', f'"SecretAccessKey": "{MARK}"'),
    ("yaml", "db:\n  password: correct horse\n  user: me", f"db:\n  password: {MARK}\n  user: me"),
    ("yaml-block", "password: |\n  line one\n  line two\nuser: me", f"password: {MARK}\nuser: me"),
    ("yaml-passphrase", "use passphrase: correct horse", f"use passphrase: {MARK}"),
    ("yaml-credential", "credentials: hunter", f"credentials: {MARK}"),
    ("yaml-short", "token: hunter", f"token: {MARK}"),
    ("toml", 'api_key = "hunter"', f'api_key = "{MARK}"'),
    ("ini", "password = hunter", f"password = {MARK}"),
    ("properties", "spring.datasource.password=hunter", f"spring.datasource.password={MARK}"),
    ("xml", "<password>hun ter</password>", f"<password>{MARK}</password>"),
    ("python", 'password: str = "hunter"', f'password: str = "{MARK}"'),
    ("python-triple", 'SECRET_KEY = """hunter"""', f'SECRET_KEY = "{MARK}"'),
    ("ruby", "'password' => 'hunter'", f"'password' => '{MARK}'"),
    ("sql", "ALTER USER me SET PASSWORD = 'it''s'", f"ALTER USER me SET PASSWORD = '{MARK}'"),
    ("azure", "AccountName=a;AccountKey=hunter==;x", f"AccountName=a;AccountKey={MARK}"),
    ("kubernetes", "kind: Secret\ndata:\n  foo: aHVudGVy\nmeta: x",
     f"kind: Secret\ndata:\n  foo: {MARK}\nmeta: x"),
    ("kubernetes-json", '{"kind": "Secret", "data": {"foo": "aHVudGVy"}}',
     f'{{"kind": "Secret", "data": {MARK}}}'),
    ("docker-config", '{"auths": {"r.dev": {"auth": "bWU6aHVudGVy"}}}',
     f'{{"auths": {{"r.dev": {{"auth": "{MARK}"}}}}}}'),
    ("gh-secret", "gh secret set NAME --body hunter", f"gh secret set NAME --body {MARK}"),
    ("kubeconfig", "    client-key-data: aHVudGVy", f"    client-key-data: {MARK}"),
    ("prompt", "my password is hunter2, log in", f"my password is {MARK} log in"),
    ("markdown", "**Password:** hunter", f"**Password:** {MARK}"),
    # command lines
    ("flag", "tool --password hunter --quiet", f"tool --password {MARK} --quiet"),
    ("flag-equals", "tool --token=hunter --quiet", f"tool --token={MARK} --quiet"),
    ("flag-quoted", "tool --api-key 'hun ter' x", f"tool --api-key '{MARK}' x"),
    ("curl-user", "curl -u me:hunter https://x.dev", f"curl -u me:{MARK} https://x.dev"),
    ("curl-user-quoted", 'curl --user "me:hun ter" x.dev', f'curl --user "me:{MARK}" x.dev'),
    ("mysql", "mysql -u root -phunter app", f"mysql -u root -p{MARK} app"),
    ("mariadb", "mariadb -phunter app", f"mariadb -p{MARK} app"),
    ("sshpass-bare", "sshpass -p hunter ssh host", f"sshpass -p {MARK} ssh host"),
    ("sshpass", "sshpass -p 'hun ter' ssh me@host", f"sshpass -p '{MARK}' ssh me@host"),
    ("docker-login", "docker login -u me -p hunter reg.dev", f"docker login -u me -p {MARK} reg.dev"),
    ("sudo", "echo hunter | sudo -S apt install x", f"echo {MARK} | sudo -S apt install x"),
    ("password-stdin", "echo 'hunter' | docker login --password-stdin",
     f"echo '{MARK}' | docker login --password-stdin"),
    ("openssl", "openssl rsa -passin pass:hunter -in k", f"openssl rsa -passin pass:{MARK} -in k"),
    ("redis-cli", "redis-cli -h c -a hunter ping", f"redis-cli -h c -a {MARK} ping"),
    ("kubectl-literal", "kubectl create secret generic s --from-literal=foo=hunter",
     f"kubectl create secret generic s --from-literal=foo={MARK}"),
    ("kubectl-configmap", "kubectl create cm s --from-literal=foo=hunter",
     f"kubectl create cm s --from-literal=foo={MARK}"),
    ("netrc", "machine git.dev login me password hunter", f"machine git.dev login me password {MARK}"),
    ("netrc-lines", "machine git.dev\nlogin me\npassword hunter\n",
     f"machine git.dev\nlogin me\npassword {MARK}\n"),
]  # fmt: skip

MUST_SURVIVE = [
    "The token count is 5 and the tokens are cheap; a token is a word.",
    "Unexpected token: expected an identifier near line 3",
    "SyntaxError: Unexpected token '}' in JSON at position 41",
    "All 212 tests pass. Passing the key to the sorted() call fixes it.",
    "passed=12 failed=0 skipped=1",
    "--tokens 5 --max-tokens 4096",
    "max_tokens=4096 token_count: 512 input_tokens=10 output_tokens: 20",
    '{"max_tokens": 4096, "token_count": 12, "usage": {"input_tokens": 3, "total_tokens": 9}}',
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Merge 9fceb02..b74767f into main",
    "session 3f0c2a1e-9d1b-4b7e-8c55-0f2b8f1c9a77 resumed",
    "/Users/me/.claude/projects/-work-main/3f0c2a1e-9d1b-4b7e-8c55-0f2b8f1c9a77.jsonl",
    "PWD=/home/dev/shop\nOLDPWD=/home/dev\nHOME=/home/dev\nSHELL=/bin/zsh",
    "src/auth/token.py:12:    return tokens",
    "src/auth/password.ts(3,7): error TS2304",
    "src/secrets:12:foo",
    "cat: /etc/passwd: No such file or directory",
    "def login(user: str, password: str, token: str | None = None) -> None:",
    "function f(token: string, secret: string): void {",
    "    token = next(tokens)\n    key = keys[0]",
    "-    token = lexer.peek()\n+    token = lexer.next()",
    'diff --git a/tokenizer.py b/tokenizer.py\nindex 83db48f..bf2a1c0 100644\n--- a/tokenizer.py',
    "claude-sonnet-4-5-20250929 gpt-5.2-codex gemini-2.5-pro-preview-05-06",
    "task-3f0c2a1e9d1b4b7e8c550f2b8f1c9a77 and disk-0123456789abcdef01234567",
    "https://example.com:8080/path?page=2&sort=key#top",
    "https://github.com/owner/repo/pull/12 by me@example.com",
    "git@github.com:owner/repo.git",
    "npm install @scope/pkg@1.2.3 https://registry.npmjs.org/@scope/pkg",
    "curl -u $USER https://x.dev -o out",
    'curl -H "Authorization: Bearer $TOKEN" https://x.dev',
    "export GITHUB_TOKEN=$(gh auth token)",
    "password: ${{ secrets.DB_PASSWORD }}",
    "docker run -u 1000:1000 img && curl x.dev",
    "docker run -p 8080:80 img && docker login",
    "tool --password-stdin --token-file /run/t.txt",
    "Bearer tokens are sent with the Bearer scheme; a bearer of bad news.",
    "Basic understanding of the codebase",
    "the secretary baked cookies: they were good",
    "Use passwordless login, then set the credential helper.",
    "git config credential.helper store",
    "primary_key: id\nforeign_key: user_id\npublic_key: ssh-ed25519 AAAAC3Nz",
    "keyboard: us\nmonkey: 3\nauthor: me\nauthors: [a, b]",
    "fix(auth): refresh the session\nauth: use the new client",
    "cookiecutter: 2.1 tokenizers: 0.15",
    "grep -r \"-----BEGIN RSA PRIVATE KEY-----\" . && echo done",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "password must be at least 8 characters",
    "login with password authentication fails",
    "use the --password option or the --token flag",
    "if password > minimum and token > 5:",
    "mysql -u root -p app < dump.sql",
    "echo hello | grep h",
    "sk-learn and task-list and risk-free",
    "  12→import re\n  13→import sys",
    "ünïcödé İstanbul 東京 🔑",
    "",
]  # fmt: skip


def run_once(text: str) -> str:
    """Redacts a plain string, never the marked type, which would come back untouched."""
    return str.__str__(redact_text("".join([text, " "])[:-1]))


@pytest.mark.parametrize(("text", "left"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_secret_goes_and_what_surrounds_it_stays(text: str, left: str) -> None:
    assert redact_text(text) == left


@pytest.mark.parametrize("text", [row[1] for row in PLANTED] + MUST_SURVIVE)
def test_redacting_again_changes_nothing(text: str) -> None:
    assert run_once(run_once(text)) == run_once(text)


@pytest.mark.parametrize("text", MUST_SURVIVE)
def test_harmless_text_survives(text: str) -> None:
    assert redact_text(text) == text
    assert redact_value({"tool_input": {"command": text}}) == {"tool_input": {"command": text}}


def test_result_carries_the_type_the_store_demands() -> None:
    assert type(redact_text("plain")) is Redacted
    assert type(redact_text("A_TOKEN=x")) is Redacted
    assert not hasattr(Redacted("x"), "__dict__")
    once = redact_text("A_TOKEN=x")
    assert redact_text(once) is once


SECRET_NAMES = """
token access_token accessToken api_key apiKey x-api-key API_KEY APIKey apikey secret client_secret
password passwd pwd passphrase authorization Authorization Proxy-Authorization cookie set-cookie
Set-Cookie credential credentials private_key privateKey access_key AWS_SECRET_ACCESS_KEY
secretAccessKey session_token bearer jwt DB_PASS db_pass PGPASSWORD refresh_token id_token csrfToken
secrets passwords api_keys SECRET_KEY_BASE client-key-data STRIPE_SECRET _authToken _auth
GITHUB_TOKEN2 password_hash
"""
HARMLESS_NAMES = """
max_tokens maxTokens token_count tokenCount input_tokens output_tokens tokens session_id sessionId
tool_name permission_mode key keys keyboard primary_key primaryKey author authors authority auth
public_key tokenizer token_type secretary cookiecutter passwordless passed passes compass OLDPWD
token_limit total_tokens monkey password_file credential_helper secret_name cache_read_input_tokens
transcript_path hotkey sort_key
"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_secret_name_is_known_in_every_spelling(name: str) -> None:
    assert is_secret_name(name)
    assert redact_value({"a": [{name: {"b": ["hunter", 5]}}]}) == {"a": [{name: MARK}]}


@pytest.mark.parametrize("name", HARMLESS_NAMES.split())
def test_harmless_name_keeps_its_value(name: str) -> None:
    assert not is_secret_name(name)
    left = redact_value({name: ["hunter", 5], "b": {"token": 1}})
    assert left == {name: ["hunter", 5], "b": {"token": MARK}}


@pytest.mark.parametrize("secret", ["hunter", "", 5, 5.5, True, None, ["hunter"], {"a": {"b": "hunter"}}])
def test_value_under_a_secret_name_goes_whatever_its_type(secret: object) -> None:
    assert redact_value({"x": [{"password": secret}]}) == {"x": [{"password": MARK}]}


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"name": "Authorization", "value": "hunter"}, {"name": "Authorization", "value": MARK}),
        ({"value": "hunter", "name": "DB_PASSWORD"}, {"value": MARK, "name": "DB_PASSWORD"}),
        ({"key": "x-api-key", "value": ["hunter"]}, {"key": "x-api-key", "value": MARK}),
        ({"name": "Accept", "value": "text", "pwd": "x"}, {"name": "Accept", "value": "text", "pwd": MARK}),
        (["Cookie", "hunter"], ["Cookie", MARK]),
        (["tool", "--password", "hunter", "x"], ["tool", "--password", MARK, "x"]),
        (["tool", "--token=hunter", "x"], ["tool", f"--token={MARK}", "x"]),
        (["curl", "-s", "-u", "me:hunter", "x"], ["curl", "-s", "-u", f"me:{MARK}", "x"]),
        (["sshpass", "-p", "hunter", "ssh"], ["sshpass", "-p", MARK, "ssh"]),
        (["bash", "-lc", "A_TOKEN=hunter run"], ["bash", "-lc", f"A_TOKEN={MARK} run"]),
        (["tool", "-m", "password: correct horse"], ["tool", "-m", f"password: {MARK}"]),
        (["password", "user", "email"], ["password", "user", "email"]),
        ({"auths": {"reg.dev": {"auth": "aHVudGVy"}}}, {"auths": {"reg.dev": {"auth": MARK}}}),
        ({"auth": {"type": "oauth"}, "a": "sk-"}, {"auth": {"type": "oauth"}, "a": "sk-"}),
        ({"kind": "Secret", "data": {"foo": "aHVudGVy"}}, {"kind": "Secret", "data": {"foo": MARK}}),
        ({"pwd": "/home/dev/shop"}, {"pwd": "/home/dev/shop"}),
        ({f"ghp_{ALNUM}": 1}, {f"ghp_{MARK}": 1}),
        ({"password": "a", "n": [1, 2.5, True, None]}, {"password": MARK, "n": [1, 2.5, True, None]}),
        ("A_TOKEN=hunter", f"A_TOKEN={MARK}"),
        (7, 7),
        (None, None),
    ],
)
def test_json_keeps_its_form_and_loses_its_secrets(value: object, left: object) -> None:
    before = copy.deepcopy(value)
    assert redact_value(value) == left
    assert value == before, "the caller's object was changed"
    assert redact_value(redact_value(value)) == left


def nested(depth: int, leaf: object) -> object:
    value = leaf
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


def test_deepest_allowed_nesting_is_still_redacted() -> None:
    assert "hunter" not in json.dumps(redact_value(nested(MAX_DEPTH, "A_TOKEN=hunter")))


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 10_000])
@pytest.mark.parametrize("leaf", ["plain", "A_TOKEN=hunter"])
def test_nesting_beyond_the_limit_is_refused_by_name(depth: int, leaf: str) -> None:
    with pytest.raises(ValueError, match=f"deeper than {MAX_DEPTH} levels"):
        redact_value(nested(depth, leaf))


@pytest.mark.parametrize("value", [b"A_TOKEN=x", {"a": {1, 2}}, [object()], ("A_TOKEN=x",)])
def test_what_is_not_json_is_refused_instead_of_passed_on(value: object) -> None:
    with pytest.raises(TypeError, match="not decoded JSON"):
        redact_value(value)


MEGABYTE = 1_000_000
ADVERSARIAL = [
    "a", "eyJ", "eyJa.", "eyJaaaaaaaa.", "-----BEGIN", "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----", "password=", "password: ", "password ", '"', "\\", "'\\''", '"\\"', '\\"',
    'password="', "password='\\", '"password":[', '"password":{"', 'password="\n', 'password=\\"',
    "--token ", "token is ", "key", "key_", "://", "://a:", "redis://a:", "https://a:b@", "@", "sk-",
    "sk-a-", "gh", "ghp_", "curl -u ", "curl -b a=", "mysql -", "mysql -p", "docker login ",
    "docker login -p ", "echo ", "echo a|", "machine ", "machine a password ", "login ", "bearer ",
    "Bearer ", "basic ", "basic a", "?key=", "&sig=", "kind: secret\ndata:\n  a: b\n", "data:\n", " ", "\n",
    "\npassword: |\n ", "AKIA", "1:AA", "xox", "SG.a", "Authorization: ", "cookie: a=b;", "secret set a ",
    "--from-literal=", "<password>", "password: str", "[redacted]", "\u0130", "_", "-", ".", "token:a(",
    "password=$(", "pwd=/", "token: |\n ", ">" * 90 + "password=x y ", '"data": {', '"cookie",',
    "token: a ",
]  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_a_hostile_megabyte_takes_no_more_than_seconds(unit: str) -> None:
    # The trailing words wake rules that the repeated unit alone would leave asleep.
    wake = " curl mysql login echo sudo secret private key kind: secret sk- eyj @ key= sig= :aa password"
    redact_text((unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE] + wake)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
STRONG = st.text(string.ascii_letters + string.digits, min_size=40, max_size=60)
UNQUOTED = string.ascii_letters + string.digits + "!#%&()*+,./:;<=>?@[]^_{|}~-"
PRINTABLE = st.text(UNQUOTED, min_size=12, max_size=30)
ANYTHING = st.text(string.printable + "äß→🔑", min_size=12, max_size=30)


def is_telling(secret: str) -> bool:
    """Not a value that is kept on purpose: a variable, a command, a placeholder, a scheme, a type, blanks."""
    is_type = re.fullmatch(r"[A-Za-z_.]+\[[A-Za-z_., |\[\]]+\]", secret) is not None
    return re.match(r"[A-Za-z0-9]", secret) is not None and len(set(secret)) > 5 and not is_type


def trace(secret: str) -> str:
    """A part of the secret long enough to prove a leak, whatever happens at its ends."""
    return secret[2:-2]


# class of secret: how it is written, and what it may be made of
CLASSES = {
    "anthropic": ("sk-ant-api03-{}", STRONG),
    "openai": ("sk-{}", STRONG),
    "openai-project": ("sk-proj-{}", STRONG),
    "github": ("ghp_{}", STRONG),
    "github-pat": ("github_pat_{}", STRONG),
    "gitlab": ("glpat-{}", STRONG),
    "slack": ("xoxb-{}", STRONG),
    "google": ("AIza{}", STRONG),
    "google-oauth": ("ya29.{}", STRONG),
    "npm": ("npm_{}", STRONG),
    "huggingface": ("hf_{}", STRONG),
    "stripe": ("sk_live_{}", STRONG),
    "pypi": ("pypi-{}", STRONG),
    "pem": ("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STRONG),
    "pem-truncated": ("-----BEGIN RSA PRIVATE KEY-----\n{}", STRONG),
    "authorization": ("Authorization: Bearer {}", STRONG),
    "authorization-none": ("Authorization: {}", PRINTABLE),
    "cookie": ("Cookie: sid={}", STRONG),
    "bearer": ("Bearer {}", STRONG),
    "url": ("https://me:{}@host.dev", STRONG),
    "query": ("https://a.dev/x?access_token={}&b=1", STRONG),
    "env": ("FOO_TOKEN={}", PRINTABLE),
    "env-export": ("export DB_PASSWORD='{}'", PRINTABLE),
    "flag": ("tool --password {}", PRINTABLE),
    "flag-equals": ("tool --api-key={}", PRINTABLE),
    "yaml": ("password: {}", PRINTABLE),
    "toml": ('api_key = "{}"', PRINTABLE),
    "curl": ("curl -u me:{}", STRONG),
    "sshpass": ("sshpass -p {}", STRONG),
}


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, str]:
    """A text with a secret in it, and the secret."""
    form, alphabet = CLASSES[draw(st.sampled_from(sorted(CLASSES)))]
    secret = draw(alphabet.filter(lambda secret: is_telling(secret) and trace(secret) not in form))
    before, after = (draw(WORDS.filter(lambda text: trace(secret) not in text)) for _ in range(2))
    gaps = draw(st.sampled_from([" ", "\n", "\t"])), draw(st.sampled_from([" ", "\n"]))
    return before + gaps[0] + form.format(secret) + gaps[1] + after, secret


def assert_gone(secret: str, written: str) -> None:
    kept = trace(secret)
    for form in (kept, json.dumps(kept)[1:-1], json.dumps(json.dumps(kept)[1:-1])[1:-1]):
        assert form not in written


@given(planted())
@example((" Authorization: Optional[000 ", "Optional[000"))
@settings(max_examples=300, deadline=None)
def test_planted_secret_is_never_found_in_text(case: tuple[str, str]) -> None:
    text, secret = case
    assert_gone(secret, redact_text(text))


@given(planted(), st.integers(1, 3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_planted_secret_is_never_found_in_json_inside_json(
    case: tuple[str, str], levels: int, ascii_only: bool
) -> None:
    text, secret = case
    value: object = {"tool_input": {"command": text}}
    for _ in range(levels):
        value = {"content": [json.dumps(value, ensure_ascii=ascii_only)]}
    assert_gone(secret, json.dumps(redact_value(value), ensure_ascii=False))


@given(
    planted(),
    st.recursive(
        WORDS | st.integers() | st.none(),
        lambda value: st.lists(value, max_size=3) | st.dictionaries(WORDS, value, max_size=3),
    ),
)
@settings(max_examples=300, deadline=None)
def test_planted_secret_is_never_found_in_nested_json(case: tuple[str, str], around: object) -> None:
    text, secret = case
    assume(trace(secret) not in json.dumps(around, ensure_ascii=False))
    value = redact_value({"a": [around, {"b": text, text: [around, text]}]})
    assert_gone(secret, json.dumps(value, ensure_ascii=False))


@given(
    st.sampled_from(["password", "apiKey", "client_secret", "GITHUB_TOKEN", "x-api-key", "privateKey"]),
    ANYTHING.filter(is_telling),
    WORDS,
    st.integers(0, 3),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
@settings(max_examples=400, deadline=None)
@example("password", 'a"b"c"d\\"e\\', "", 3, (",", ":"))
def test_any_string_under_a_secret_name_is_gone_at_every_level_of_escaping(
    name: str, secret: str, other: str, levels: int, separators: tuple[str, str]
) -> None:
    assume(trace(secret) not in other)
    value: object = {"before": other, name: secret, "after": 1}
    for _ in range(levels):
        value = {"text": json.dumps(value, separators=separators)}
    written = json.dumps(redact_value(value))
    kept = trace(secret)
    for _ in range(levels + 1):
        kept = json.dumps(kept)[1:-1]
    assert kept not in written
    assert '"after' in written.replace("\\", ""), "what follows the secret was lost"


PIECES = [MARK, '"', "'", "\\", "\n", " "]
SNIPPETS = st.sampled_from([row[1] for row in PLANTED] + MUST_SURVIVE + ADVERSARIAL + PIECES)


@given(st.lists(SNIPPETS | WORDS, max_size=8).map("".join))
@settings(max_examples=400, deadline=None)
@example("token is /c?signature=hunter")  # with a mark in it, what follows "is" looks random
def test_redacting_any_mixture_again_changes_nothing(text: str) -> None:
    once = run_once(text)
    assert run_once(once) == once


@given(WORDS, st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_base64_of_a_private_key_is_no_way_around(body: str, padding: int) -> None:
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "x" * padding + body
    encoded = base64.b64encode(pem.encode()).decode()
    assert encoded[30:] not in redact_text(f"a: {encoded}")


def test_module_imports_nothing_but_re() -> None:
    tree = ast.parse(Path(redact.__file__).read_text(encoding="utf-8"), feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {ast.unparse(node) for node in imports} == {"import re", "from __future__ import annotations"}
