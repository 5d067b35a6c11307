"""The one place that takes secrets out of text and JSON before anything is written to disk.

Two questions are answered here: does this name hold a secret, and where does the secret after it end. Tokens
that give themselves away by their shape need no name. A secret with neither, such as a password on a line of
its own, is not found. One file although long, importing nothing but `re`, for Python 3.8: the stand-alone
hook script carries a copy of it.
"""

from __future__ import annotations

import re

MARK = "[redacted]"
MAX_DEPTH = 200
_MAX_PASSES = 6
_QUOTED_REACH = 2000


class Redacted(str):
    """Text that went through this module; wrapping anything else by hand is a bug."""

    __slots__ = ()


# Runs on lower-cased text, on every event. Each branch starts at the rarest letter of a word that some rule
# below needs and looks back from there: an alternation of the plain words takes four times as long.
_SUSPICIOUS_WORDS = (
    "secret", "cred", "passp", "passc", "sshpass", "curl", "login", "sudo", "ls0tls1", "asia", '"auth',
)  # fmt: skip
_SUSPICIOUS = re.compile(
    r"_(?:(?<=gh[pousr]_)|(?<=npm_)|(?<=hf_)|(?<=[sr]k_)(?:live|test)|(?<=gsk_)|(?<=v1_)"
    r"|(?<=shp.._)|pass|auth|pat_|(?<=sk_)[0-9a-f]{48}|(?<=re_)[a-z0-9]{8}_[a-z0-9]{24}|(?<=c[ks]_)[0-9a-f]{40})"
    r"|-(?:(?<=sk-)|(?<=gl..-)|(?<=gl...-)|(?<=xox.-)|(?<=xapp-)|(?<=pypi-)|(?<=xai-)|(?<=plx-)"
    r"|(?<=ocspx-)|(?<=redis-)cli|(?<=from-)lit|(?<=private-)lines)"
    r"|k(?:ey|(?<=tok)en|(?<=cook)ie|(?<=ak)ia|(?<=hook)s[./]|(?<=sk)[0-9a-f]{32})|w(?:(?<=passw)|(?<=pw)d)"
    r"|z(?:(?<=authoriz)|(?<=aiz)a)|j(?:(?<=eyj)|wt)|b(?:earer|asic|(?<=mariadb))|q(?<=mysq)l|@|:(?:aa|(?<=pass:))"
    r"|\.(?:(?<=ya29\.)|(?<=sg\.)|(?<=hvs\.)|[\w-]{6}\.[\w-]{27}|[0-9a-f]{64}|(?<=v1\.)0-[0-9a-f]{24})|8q~|azdo|atlasv1\.|eaa"
    r"|-us\d|1//0|=(?:(?<=sig=)|(?<=signature=)|(?<=code=)|(?<=auth=))"
)


def _at_edge(literal: str) -> str:
    """The literal where a token may start: not inside a word, unless after an escaped line break or a colour.

    The look-back comes last, as a pattern that begins with a literal is searched for ten times as fast.
    """
    before = (r"<![A-Za-z0-9_-]", r"<=\\[nrt]", r"<=[\[;]\dm", r"<=[\[;]\d\dm")
    return literal + "(?:" + "|".join(f"(?{sign}{literal})" for sign in before) + ")"


_BEARER_PROSE = (
    r"(?!(?:tokens?|auth\w*|schemes?|headers?|formats?|credentials?|values?|prefix|strings?|keys?|types?|only"
    r"|realm|error|is|of|and|in|for|or|the|with|from|to|as|an?|not|if|was|has|must|should|bonds?|shares?|plants?)\b(?![+/=-]))"
)
# (words of which one must occur in the lower-cased text, pattern); group 1 stays, the rest of the match goes.
# This and all other long patterns are compiled when first needed: the hook starts anew for every event, and
# for most of them the one above is enough.
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), "(" + _at_edge("sk-") + r"(?:ant|proj|svcacct|admin|None|or|lf)-)[\w-]{8,}"),
    (("sk-",), "(" + _at_edge("sk-") + r"(?:[A-Za-z0-9]{1,10}-){0,2})[A-Za-z0-9]{20,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"(gh[pousr]_)[A-Za-z0-9]{16,}"),
    (("_pat_",), r"((?:github|dckr)_pat_)\w{16,}"),
    (("gl",), r"(gl(?:pat|ptt|dt|rt|cbt|ft|imt)-)[\w-]{16,}"),
    (("xox", "xapp-"), r"(xox[a-z]-|xapp-)[\w-]{8,}"),
    (("akia", "asia"), r"(AKIA|ASIA)[A-Z0-9]{16}"),
    (("aiza",), r"(AIza)[\w-]{30,}"),
    (("ya29.",), r"(ya29\.)[\w.-]{16,}"),
    (("npm_",), r"(npm_)[A-Za-z0-9]{30,}"),
    (("hf_",), r"(hf_)[A-Za-z0-9]{30,}"),
    (("k_live_", "k_test_"), r"([sr]k_(?:live|test)_)[A-Za-z0-9]{10,}"),
    (("pypi-",), r"(pypi-)[\w-]{40,}"),
    (("eyj",), "(" + _at_edge("eyJ") + r")[\w-]{8,}(?:\.[\w-]+){1,4}\.?"),
    ((":aa",), r"(:AA(?<=\d{8}:AA))[\w-]{33}"),
    (("sg.",), r"(SG\.)[\w-]{16,}\.[\w-]{16,}"),
    (("hvs.",), r"(hvs\.)[\w-]{20,}"),
    (("xai-", "plx-", "ocspx-"), r"(xai-|pplx-|GOCSPX-)[\w-]{20,}"),
    (("gsk_", "_v1_", "shp"), r"(gsk_|do[opr]_v1_|shp(?:at|ss|ca|pa)_)[A-Za-z0-9]{20,}"),
    (("key-",), r"(AGE-SECRET-KEY-1|tskey-[a-z]{2,12}-)[\w-]{16,}"),
    (("ls0tls1",), r"(LS0tLS1CRUdJTi(?:BSU0Eg|BQUklW|BFQyBQ|BPUEVO|BFTkNS|BEU0Eg))[A-Za-z0-9+/=]+"),
    (("private-lines",), r"(Private-Lines:\s{0,4}\d{1,4}\s)[A-Za-z0-9+/=\s]{20,}"),
    (('"auth',), r'("auth\\{0,7}"\s{0,4}:\s{0,4}\\{0,7}")[A-Za-z0-9+/=]{12,}'),
    (("hooks.",), r"(hooks\.slack\.com/(?:services|workflows)/)[\w/-]{12,}"),
    (("hooks/",), r"(discord(?:app)?\.com/api/webhooks/\d{1,30}/)[\w-]{12,}"),
    (("bearer",), r"(B(?:earer|EARER)[ \t]{1,4})" + _BEARER_PROSE + r"[\w.~+/=%-]{3,}"),
    (("bearer",), r"(bearer[ \t]{1,4})(?:(?![a-z-]+(?![\w.~+/=%-]))[\w.~+/=%-]{3,}|[a-z-]{16,})"),
    (("basic",), r"([Bb]asic[ \t]{1,4})(?=[A-Za-z+/]{0,200}[0-9=])[A-Za-z0-9+/]{8,}={0,2}"),
    (("@",), r"(:(?://|\\/\\/)[^\s/:@?#\"'<>\\]{0,100}:)(?!\[redacted\]@)[^\s/?#\"'<>]{1,300}(?=@)"),
    (("@",), r"((?:sql|gres|mongodb|srv|redis|amqp)://[^\s/:@]{0,100}:)(?!\d{1,5}/|\[redacted\]@)"
     r"[^\s\"']{1,200}(?=@)"),
    (("@",), r"(:(?://|\\/\\/))(?=[A-Za-z_.~-]{0,99}\d)[\w.~-]{20,300}(?=@)"),
    (("key=", "sig=", "signature=", "code=", "auth="),
     r"([?&](?:key|sig|signature|[Xx]-[\w-]{1,40}-[Ss]ignature|code|auth)=)[^\s&#\"'<>\\`[]+"),
)  # fmt: skip

# Tokens that begin with a word of their maker's: that word, and what follows it. `#` is a hexadecimal digit, `w` a
# letter, digit or underscore, `a` a letter or digit. The word must not be the end of another one.
_MAKERS = """
lin_api_ a32 lin_oauth_ a32 ntn_ a40 secret_ a43 dapi #32 ATATT3 w=-20 ATCTT3 w=-20 ATBB a24 glsa_ w32 glc_ w+/=32
sbp_ #40 sb_secret_ w-20 dp.pt. a40 dp.st. w.-40 dp.ct. a40 dp.sa. a40 dp.scim. a40 dp.audit. a40 pscale_tkn_ w.-32
pscale_pw_ w.-32 pscale_oauth_ w.-32 PMAK- a-50 pul- #40 figd_ w-36 CCIPAT_ w30 CCIPRJ_ w30 bkua_ #40 CFPAT- w-40
dt0c01. A.80 EZAK a50 EZTK a50 fm2_ w+/=100 fo1_ w-43 FLWSECK- a-30 FLWSECK_TEST- a-30 fio-u- w-60 HRKU- w-36
pat-na1- #-36 pat-eu1- #-36 ico- a32 key- #32 NRAK- A27 NRII- w-32 nfp_ a36 ops_ w+/=100 pnu_ a36 pnb_ a36 rdme_ a70
r8_ a37 rubygems_ #48 sntrys_ w+/=60 sntryu_ #64 shippo_live_ #40 shippo_test_ #40 sqp_ #40 squ_ #40 sqa_ #40 sgp_ #40
sq0atp- w-22 sq0csp- w-43 whsec_ w+/=24 tfp_ w-40 AQVN w-35 p8e- a32 LTAI a20 CLOJARS_ #60 duffel_live_ w-40
duffel_test_ w-40 glsoat- w-20 glagent- w-40 glffct- w-20 tgp_v1_ w-40 lsv2_pt_ w40 lsv2_sk_ w40 pcsk_ w40 csk- a40
tvly- w-30 api_org_ a34 fc- #32 phx_ a40 napi_ a40 rnd_ a28 dckr_oat_ w-20 AKCp a60 mdb_sa_sk_ w-30 hvb. w-60 hvr. w-60
xkeysib- #-64 mlsn. #60 access-production- #-36 access-sandbox- #-36 access-development- #-36 rk_prod_ a20
"""
_BODIES = {"#": "[0-9a-f]", "w": r"\w", "a": "[A-Za-z0-9]", "A": "[A-Z0-9]"}
# (words, pattern) as above, for tokens that have no such word at their beginning.
_ODD_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (".",),
        "()" + _at_edge("") + r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\."
        r"(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Z])[\w-]{27,40}",
    ),
    ((".",), r"(" + _at_edge("pat") + r")[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ((".atlasv1.",), r"(\.atlasv1\.)[\w-]{60,}"),
    (("8q~",), r"(8Q~)[\w~.-]{31,40}"),
    (("azdo",), "()" + _at_edge("") + r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    (("-us",), r"()(?<![0-9a-f])[0-9a-f]{32}(?=-us\d{1,2}(?!\w))"),
    (("sk",), "(" + _at_edge("SK") + r")[0-9a-f]{32}(?![0-9a-f])"),
    (("sk_",), "(" + _at_edge("sk_") + r")[0-9a-f]{48}"),
    (("re_",), "(" + _at_edge("re_") + r")[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    (("ck_", "cs_"), "(" + _at_edge("ck_") + "|" + _at_edge("cs_") + r")[0-9a-f]{40}"),
    (("1//0",), r"(1//0)[\w-]{40,}"),
    (("eaa",), "(" + _at_edge("EAA") + r")[A-Za-z0-9]{60,}"),
    (("v1.0-",), "(" + _at_edge(r"v1\.0-") + r")[0-9a-f]{24}-[0-9a-f]{40,}"),
)
_OF_MAKERS: list[tuple[str, str]] = []


def _of_makers() -> list[tuple[str, str]]:
    """(lower-cased word, pattern) of each of them, made when first needed."""
    if not _OF_MAKERS:
        fields = _MAKERS.split()
        for word, body in zip(fields[::2], fields[1::2]):
            count = len(body) - len(body.lstrip("#aAw.=+/-"))
            kind, more, least = body[0], body[1:count], body[count:]
            letters = _BODIES[kind].strip("[]")
            head = _at_edge(word.replace(".", r"\."))
            _OF_MAKERS.append((word.lower(), "(%s)[%s%s]{%s,}" % (head, letters, more.replace("-", r"\-"), least)))
    return _OF_MAKERS


# Heads after which the next shell word is secret; `keep` is the sign up to which it stays (user:password).
_ARGUMENTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("curl",), r"\s(?:-u|-U|--user|--proxy-user)(?:[ \t=]{1,4}|(?=[\w\"']))(?!\d+:\d+\b)", ":"),
    (("curl",), r"\s-b[ \t]{1,4}", "="),
    (("sshpass",), r"sshpass\s{1,4}-p\s{0,4}", ""),
    (("mysql", "mariadb"), r"(?:mysql|mariadb)[\w-]{0,12}(?: [^\n|;&]{0,200}?)? -p(?=\S)", ""),
    (("login",), r"(?:docker|podman|buildah|skopeo|nerdctl|registry|oc|az) login\b[^\n]{0,200}? -p[ =]", ""),
    (("redis-cli",), r"redis-cli\b[^\n|;&]{0,200}? -a[ =]", ""),
    (("pass:",), r"-pass(?:in|out)?[ =]pass:", ""),
    (("from-literal",), r"--from-literal[ =][\"']?[^\s=\"']{1,100}=", ""),
    (("secret",), r"secret set \S{1,100}[^\n|;&]{0,200}? (?:-b|--body)[ =]?", ""),
    (("sudo", "stdin", "passwd"), r"(?:echo|printf)[ \t](?:-[neE]{1,3}[ \t])?(?=[^\n|]{1,200}\|[ \t]{0,4}"
     r"(?:sudo[ \t][^\n|;]{0,40}-\w?S|[^\n|;]{1,200}--\w{1,20}-stdin|passwd|chpasswd))", ""),
    (("password",), r"(?:machine|login)\s{1,9}\S{1,200}\s{1,9}password\s{1,9}"
     r"(?=\S{1,300}\s{0,9}(?:$|\n|machine|account))", ""),
)  # fmt: skip

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.-]+")
_SECRET_NAME = (
    r"(?:(?:passw(?:or)?d|passphrase|passcode|secret|authorization|cookie|credential)s?|token|(?<!old)pwd"
    r"|(?:access|refresh|auth|api|bearer)_?tokens|(?:^|_)(?:jwt|creds?|bearer)"
    r"|(?:api|app|access|private|secret|sign(?:ing)?|encrypt(?:ion)?|auth|account|master|service|deploy|shared"
    r"|storage|client|webhook|consumer|license|subscription|admin|hmac|rsa|host|jwt|crypto)_?keys?)(?=_|\d|$)"
    r"|(?:^|_)(?:db|database|user|smtp|imap|mail|email|mysql|pg|postgres|redis|ftp|http|proxy|admin|root|login"
    r"|sudo|become|ssh|ldap|wifi|git|vnc|rpc)_?pass$|^_auth$"
)
_HARMLESS_NAME = (
    r"(?:^|_)(?:max|min|num|total|n|per|pad|eos|bos|stop|unk|mask)_?token(?:_|$)"
    r"|_(?:counts?|limits?|budget|usage|names?|types?|len|length|size|expir\w*|ttl|paths?|files?|dir|ur[li]s?|at"
    r"|in|endpoint|policy|fields?|labels?|prompt|hint|placeholder|regex|pattern|index|manager|store|provider"
    r"|helper|required|valid|enabled|source|window|stdin|env|env_var|rotation|parser|stream|kind|refs?|status"
    r"|state|class|settings|commands?|cmds?|programs?|scripts?|exec)$"
)
_names: dict[str, bool] = {}


def is_secret_name(name: str) -> bool:
    """Whether a value under this key, variable, header or flag is to be hidden, however it is spelled."""
    known = _names.get(name)
    if known is None:
        snake = _CAMEL.sub("_", name.strip()).lower()
        snake = snake if snake == "_auth" else snake.strip("_")
        secret = re.search(_SECRET_NAME, snake) and not re.search(_HARMLESS_NAME, snake)
        known = len(name) < 200 and (bool(secret) or name.endswith("_PASS"))
        if len(_names) < 4096 and len(name) < 100:
            _names[name] = known
    return known


_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_TYPES = r"(?:str|bytes|[Ss]tring|number|bool|boolean|int|float|[Aa]ny|unknown|object|char|&str|[Oo]ptional)"
# On lower-cased text too. What stands before the word is looked at afterwards: a pattern that had to begin
# with any name would be tried at every letter.
_ASSIGNMENT = (
    r"(?P<word>passw(?:or)?d|passphrase|passcode|pwd|api key|access key|secret key|key|token|secret"
    r"|authorization|cookie|credential|cred|jwt|bearer|_pass|_auth)(?P<suffix>[\w-]{0,40})(?![\w-])(?:"
    r"(?P<quote>\\{0,7}[\"'`]|)\]?\*{0,2}[ \t]{0,8}(?P<op>"
    r":[ \t]{0,4}" + _TYPES + r"(?:\[[^\]\n]{0,40}\])?(?: \| none)?[ \t]{0,4}=(?!=)"
    r"|=>|:=|[!=]?={1,3}|:|>|,(?=[ \t]{0,4}\\{0,7}[\"']))\*{0,2}(?P<gap>[ \t]{0,8})"
    r"|(?P<is>[ \t]{1,4}(?:is|was|as)[ \t:]{1,4})|(?P<blank>[ \t]{1,8}))"
)
_WEAK = frozenset(
    ("token", "secret", "secrets", "cookie", "cookies", "credential", "credentials", "creds", "jwt", "bearer")
)
_RANDOM = re.compile(r"(?=\S{0,99}\d)(?=\S{0,99}[A-Za-z])[^\s(]{6,}|[^\s(]{20,}|\d{6,}")
_AFTER_VALUE = r"[,;:)\]}\\\"']*(?:[ \t]+(?:#|//|->).{0,200})?"
# An annotation is never quoted; a password may well be.
_HARMLESS_TYPE = r"(?s)" + _TYPES + r"(?:\[[A-Za-z_][A-Za-z_., |\[\]]{0,60}\]|[ \t]+\|.{0,60})?" + _AFTER_VALUE
_HARMLESS_VALUE = (
    r"(?s)(?:[Nn]one|null|nil|undefined|[Tt]rue|[Ff]alse|\*{3,}"
    r"|<[\w -]{1,40}>|\$[A-Z_][A-Z0-9_]*|\$\{[A-Za-z_]\w*\}|\$\{\{.{0,80}\}\}|\$\(.*|[\W_]{1,2})" + _AFTER_VALUE
)
_SCHEME = re.compile(
    r"(?:bearer|basic|token|digest|negotiate|api-?key|aws4-hmac-sha256|hawk|ntlm|oauth|splunk|key)[ \t]+",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(\\{0,7})([\"'`])")
_COOKIE = re.compile(r"[^\s=;]{1,100}=")
_KEY_CLOSING = re.compile(r"\\{0,7}[\"'`]\s{0,8}:")
_WORD_END = re.compile(r"(?<!\\)[\"'`]|\s")
_QUOTE_OR_EOL = re.compile(r"(?<!\\)[\"'`]|[\r\n]")
_EOL = re.compile(r"[\r\n]")
_JSON_END = re.compile(r"[\s,}\]\"']")
_QUERY_END = re.compile(r"[\s&#\"'<>\\`]")
_TAG_END = re.compile(r"<")
_BRACKET = re.compile(r"[\[{]|[\]}]")
_YAML_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*(?:\n[ \t]+[^\n]*)+")
_LINE_HEAD = re.compile(
    r"[\s>+*#|<-]*(?:\d{1,6}[→:|\t-]\s*)?[+-]?"  # quoted, a diff, a list, numbered lines
    r"(?:(?:export|set|ENV|ARG|declare -x|local)\s+)?"
)
_ENV_LINE = re.compile(r"[\r\n]{1,2}[A-Za-z_]\w{0,80}=")
_SETTER = re.compile(
    r"(?:^|[\s;&|\"'])(?:set|setenv|set-environment|config)"  # fish, csh, tmux, aws and npm
    r"(?:[ \t]+(?:set|--?[\w-]{1,20}))*[ \t]+$"
)
_FLAG_PROSE = re.compile(
    r"-|(?:flags?|options?|arguments?|parameters?|is|or|and|to|for|with|values?|in|on|from)[.,;)]?(?:\s|$)"
)


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.search(text, start)
    return found.start() if found else len(text)


def _closing(text: str, start: int, escapes: int, quote: str) -> int:
    """Where the string ends that was opened by `escapes` backslashes and a quote, or -1.

    In JSON inside JSON the number of backslashes before a quote tells its level: 2 * escapes + 1 of them,
    modulo the escaped backslashes of the same level, still belong to the value; any other number ends it.
    """
    position, limit = start, min(len(text), start + _QUOTED_REACH)
    while True:
        position = text.find(quote, position, limit)
        if position < 0:
            return -1
        first = position
        while first > start and text[first - 1] == "\\":
            first -= 1
        level = (position - first) % (2 * (escapes + 1))
        if level != 2 * escapes + 1:
            return position - escapes if level == escapes else position
        position += 1


def _quoted(text: str, opening: re.Match[str]) -> tuple[int, str]:
    """The end of a quoted value, adjacent quoted pieces included, and what has to be added to close it."""
    escapes, quote = len(opening[1]), opening[2]
    start = opening.end()
    while True:
        end = _closing(text, start, escapes, quote)
        if end < 0:
            return max(start, _end(_EOL, text, start)), opening[0]
        after = end + escapes + 1
        if text.startswith(opening[0], after):  # SQL's 'it''s', Python's """
            start = after + len(opening[0])
        elif not escapes and text.startswith("\\'" + quote, after):  # the shell's 'it'\''s'
            start = after + 2 + len(quote)
        else:
            return end, ""


def _json_container(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, start, min(len(text), start + _QUOTED_REACH)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return bracket.end()
    return min(len(text), start + _QUOTED_REACH)


def _bare_end(text: str, start: int, stem: str, name: str, op: str, at_line_start: bool) -> int:
    """Where an unquoted value ends; `stem` is what stands before the name on the same line."""
    if op == ">":
        return _end(_TAG_END, text, start)
    if op == "=" and stem.endswith(("?", "&")):
        return _end(_QUERY_END, text, start)
    if op in (":", "=") and stem.endswith(('"', "'", "`")):  # -H "Authorization: …", -e "PASSWORD=…"
        closing = _closing(text, start, len(stem) - 1 - len(stem[:-1].rstrip("\\")), stem[-1])
        if closing >= 0:
            return closing
    block = _YAML_BLOCK.match(text, start)
    if block:
        return block.end()
    whole_line = name.endswith(("authorization", "cookie", "passphrase"))
    if not at_line_start:
        return _end(_QUOTE_OR_EOL if whole_line else _WORD_END, text, start)
    line, word = _end(_EOL, text, start), _end(_WORD_END, text, start)
    # `A_TOKEN=x command` is a shell's line; `A_TOKEN=one two` above another variable was printed by env.
    if op == ":" or whole_line or " " not in text[word:line].rstrip() or _ENV_LINE.match(text, line):
        return line
    return word


def _is_prose(text: str, start: int, name: str, op: str, at_line_start: bool) -> bool:
    """Whether a lone word such as `token` before a colon or a spaced `=` is just English or code."""
    if name not in _WEAK or _RANDOM.match(text, start) or (name == "cookie" and _COOKIE.match(text, start)):
        return False
    return not (op == ":" and at_line_start) or " " in text[start : _end(_EOL, text, start)].strip()


def _secret_span(text: str, found: re.Match[str]) -> tuple[int, int, str] | None:
    """Begin and end of the secret after a name, and the quote to add; None if this is no secret."""
    window = max(0, found.start() - 80)
    head = text[window : found.start()]
    stem = head.rstrip(_NAME_CHARS)
    name = head[len(stem) :] + text[found.start() : found.end("suffix")]
    if stem.endswith("\\") and name[0] in "nrt":
        name = name[1:]
    is_flag, name = name.startswith("-"), name.lstrip("-.")
    op, quote, gap, start = found["op"] or "", found["quote"] or "", found["gap"] or "", found.end()
    if start >= len(text) or not is_secret_name(name):
        return None
    line_break = max(stem.rfind("\n"), stem.rfind("\r"))
    at_line_start = (line_break >= 0 or window == 0) and bool(_LINE_HEAD.fullmatch(stem, line_break + 1))
    stem = stem[line_break + 1 :]
    lowered = name.lower()
    if (
        (found["blank"] and not (is_flag and not _FLAG_PROSE.match(text, start)) and not _SETTER.search(stem))
        or (op == "," and not (quote and lowered.endswith(("authorization", "cookie", "key", "token"))))
        or (op == ">" and not stem.endswith(("<", ":")))
        # A line of grep's output, or cat: /etc/passwd: No such file.
        or (op == ":" and stem.endswith("/") and (not gap or lowered == "passwd"))
    ):
        return None
    opening = _OPENING.match(text, start)
    if opening:
        begin = opening.end()
        end, closer = _quoted(text, opening)
        if op == "," and _KEY_CLOSING.match(text, end):  # {"name": "Cookie", "next key": …}
            return None
    else:
        # Before the end is looked for: to look far and then not use it takes quadratic time.
        if (
            text.startswith("$(", start)
            or _is_working_directory(lowered, text[start])
            or (found["is"] and not _RANDOM.match(text, start))
            or (not quote and (op == ":" or gap) and _is_prose(text, start, lowered, op, at_line_start))
        ):
            return None
        begin, closer = start, ""
        if quote not in ("", "`") and op != ">":
            end = _json_container(text, start) if text[start] in "[{" else _end(_JSON_END, text, start)
        else:
            end = _bare_end(text, start, stem, lowered, op, at_line_start)
    scheme = _SCHEME.match(text, begin, end)
    if scheme:
        begin = scheme.end()
    value = text[begin:end].strip()
    if not value or re.fullmatch(_HARMLESS_VALUE, value) or _is_working_directory(lowered, value):
        return None
    if not opening and re.fullmatch(_HARMLESS_TYPE, value):
        return None
    return begin, end, closer


def _is_working_directory(name: str, value: str) -> bool:
    return name.lower() == "pwd" and value.startswith(("/", "~"))


def _redact_assignments(text: str, low: str) -> str:
    pieces: list[str] = []
    done = position = 0
    pattern = re.compile(_ASSIGNMENT)
    while True:
        found = pattern.search(low, position)
        if not found:
            break
        span = _secret_span(text, found)
        if span is None:
            position = found.end("word")
            continue
        pieces += (text[done : span[0]], MARK, span[2])
        done = position = span[1]
    return "".join(pieces) + text[done:] if pieces else text


def _redact_argument(text: str, head: re.Pattern[str], keep: str) -> str:
    pieces: list[str] = []
    done = 0
    for found in head.finditer(text):
        if found.end() < done:
            continue
        opening = _OPENING.match(text, found.end())
        begin = opening.end() if opening else found.end()
        end, closer = _quoted(text, opening) if opening else (_end(_WORD_END, text, begin), "")
        sign = text.find(keep, begin, end) if keep else begin - 1
        if (sign < 0 and keep) or sign + 1 == end or re.fullmatch(_HARMLESS_VALUE, text[sign + 1 : end]):
            continue
        pieces += (text[done : sign + 1], MARK, closer)
        done = end
    return "".join(pieces) + text[done:] if pieces else text


_PEM_EDGE = re.compile(r"(-{4,5} ?(?:BEGIN|END) [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5})")
_PEM_BODY = _NAME_CHARS.replace("-", "") + "+/=\\ \t\r\n→|>"


def _redact_pem(text: str) -> str:
    parts = _PEM_EDGE.split(text)
    for index in range(0, len(parts), 2):
        body = parts[index]
        opened = index > 0 and "BEGIN" in parts[index - 1]
        closed = index + 1 < len(parts) and "END" in parts[index + 1]
        if opened and body.strip() and (closed or body[0] not in "\"'`"):  # grep "-----BEGIN … KEY-----" *
            parts[index] = MARK
        elif closed and not opened:
            kept = body.rstrip(_PEM_BODY)
            if len(body) - len(kept) >= 24:
                parts[index] = kept + MARK
    return "".join(parts)


_KUBERNETES_KIND = re.compile(r"kind\\{0,7}[\"']?\s{0,4}:\s{0,4}\\{0,7}[\"']?secret\b")
_KUBERNETES_JSON = re.compile(r"(\"(?:data|stringData)\\{0,7}\"\s{0,4}:\s{0,4})\{[^{}]+\}")
_KUBERNETES_YAML = re.compile(r"(?m)^([ \t]*)(?:data|stringData):[ \t]*\n(?:\1[ \t]+\S[^\n]*(?:\n|$))+")
_KUBERNETES_LINE = re.compile(r"(?m)^([ \t]*[\w.-]+:[ \t]+)\S[^\n]*")


def _redact_kubernetes(text: str) -> str:
    text = _KUBERNETES_YAML.sub(lambda block: _KUBERNETES_LINE.sub(r"\1" + MARK, block[0]), text)
    return _KUBERNETES_JSON.sub(r"\1" + MARK, text)


def _redact_once(text: str) -> str:
    low = _lower(text)
    if "private key" in low:
        text = _redact_pem(text)
    if "kind" in low and "secret" in low and _KUBERNETES_KIND.search(low):
        text = _redact_kubernetes(text)
    for words, head, keep in _ARGUMENTS:
        if _occurs(words, low):
            text = _redact_argument(text, re.compile(head), keep)
    text = _redact_assignments(text, _lower(text))
    for words, shape in _SHAPES + _ODD_SHAPES:
        if _occurs(words, low):
            text = re.sub(shape, r"\1" + MARK, text)
    for word, shape in _of_makers():
        if word in low:
            text = re.sub(shape, r"\1" + MARK, text)
    return text


def _lower(text: str) -> str:
    low = text.lower()
    # U+0130 is the one character that grows when lowered; positions in `low` must be positions in `text`.
    return low if len(low) == len(text) else text.replace("\u0130", "I").lower()


def _occurs(words: tuple[str, ...], low: str) -> bool:
    for word in words:  # noqa: SIM110  any() with a generator takes twice as long, and this runs on every event
        if word in low:
            return True
    return False


def _is_suspicious(low: str) -> bool:
    if _SUSPICIOUS.search(low) is not None or _occurs(_SUSPICIOUS_WORDS, low):
        return True
    for word, _ in _of_makers():  # noqa: SIM110  as above
        if word in low:
            return True
    return False


def redact_text(text: str) -> Redacted:
    """Hide what looks like a secret and keep the rest readable; harmless text comes back as it is."""
    if isinstance(text, Redacted):
        return text
    if not _is_suspicious(text.lower()):
        return Redacted(text)
    for _ in range(_MAX_PASSES):  # one mark may bring the next rule's words together
        before, text = text, _redact_once(text)
        if before == text:
            break
    return Redacted(text)


def redact_value(value: object) -> object:
    """Hide the secrets in decoded JSON: all under a secret name, and what `redact_text` finds elsewhere.

    Raises ValueError above MAX_DEPTH levels and TypeError for what no JSON decoder returns.
    """
    texts: list[str] = []
    level: list[object] = [value]
    depth = 0
    while level:
        if depth > MAX_DEPTH:
            raise ValueError(f"JSON is nested deeper than {MAX_DEPTH} levels; refuse it or cut it")
        deeper: list[object] = []
        for item in level:
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict):
                texts.extend(item)
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif not (item is None or isinstance(item, (int, float))):
                raise TypeError(f"not decoded JSON: {type(item).__name__}")
        level = deeper
        depth += 1
    texts.append("")
    return _walk(value) if _is_suspicious('"' + '"'.join(texts).lower()) else value


def _walk(value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list):
        return _walk_list(value)
    if not isinstance(value, dict):
        return value
    result: dict[str, object] = {}
    label = value.get("name", value.get("Name", value.get("key", value.get("header"))))
    labelled = isinstance(label, str) and is_secret_name(label)
    is_kubernetes_secret = value.get("kind") == "Secret"
    for key, item in value.items():
        if (
            (is_secret_name(key) and not (isinstance(item, str) and _is_working_directory(key, item)))
            or (labelled and key in ("value", "Value"))
            or (key == "auth" and isinstance(item, str))  # ~/.docker/config.json
        ):
            result[redact_text(key)] = Redacted(MARK)
        elif is_kubernetes_secret and key in ("data", "stringData") and isinstance(item, dict):
            result[key] = {redact_text(name): Redacted(MARK) for name in item}
        else:
            result[redact_text(key)] = _walk(item)
    return result


def _walk_list(items: list[object]) -> list[object]:
    """A list may be a header pair or a command line, where the secret is known by the item before it."""
    result: list[object] = []
    program = items[0] if items and isinstance(items[0], str) else ""
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        if isinstance(item, str) and isinstance(before, str):
            if is_secret_name(before) and (before.startswith("-") or len(items) == 2):
                result.append(Redacted(MARK))
                continue
            if before.startswith("-") or item.startswith("-"):
                context = f"{program} {before} " if index > 1 else f"{before} "
                together = redact_text(context + item)
                if together.startswith(context):
                    result.append(redact_text(together[len(context) :]))
                    continue
        result.append(_walk(item))
    return result
