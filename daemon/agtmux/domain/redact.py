"""The one place that takes secrets out of text and JSON before anything is written to disk.

Two questions are answered here: does this name hold a secret (`is_secret_name`), and where does the secret after it
end. Tokens that give themselves away by their shape need no name. What cannot be told from harmless text without a
name or a shape (a bare password on a line of its own) is not found. Imports nothing but `re` and runs on Python 3.8:
this file is also embedded into the stand-alone hook script.
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


# Runs on lower-cased text, on every event. Each branch starts at the rarest letter of a word that some rule below
# needs and looks back from there: one alternation of the plain words takes four times as long.
_SUSPICIOUS_WORDS = (
    "secret", "cred", "passp", "passc", "sshpass", "curl", "login", "sudo", "ls0tls1", "asia", '"auth',
)  # fmt: skip
_SUSPICIOUS = re.compile(
    r"_(?:(?<=gh[pousr]_)|(?<=npm_)|(?<=hf_)|(?<=[sr]k_)(?:live|test)|(?<=gsk_)|(?<=v1_)|(?<=shp.._)|pass|auth|pat_)"
    r"|-(?:(?<=sk-)|(?<=gl..-)|(?<=gl...-)|(?<=gl....-)|(?<=xox.-)|(?<=xapp-)|(?<=pypi-)|(?<=xai-)|(?<=plx-)"
    r"|(?<=ocspx-)|(?<=redis-)cli|(?<=from-)lit|(?<=private-)lines)"
    r"|k(?:ey|(?<=tok)en|(?<=cook)ie|(?<=ak)ia|(?<=hook))|w(?:(?<=passw)|(?<=pw)d)|z(?:(?<=authoriz)|(?<=aiz)a)"
    r"|j(?:(?<=eyj)|wt)|b(?:earer|asic|(?<=mariadb))|q(?<=mysq)l|@|:(?:aa|(?<=pass:))"
    r"|\.(?:(?<=ya29\.)|(?<=sg\.)|(?<=hvs\.))|=(?:(?<=sig=)|(?<=signature=)|(?<=code=)|(?<=auth=))"
)

# Where a token may start although a letter stands before it: after an escaped line break or a colour sequence.
_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[\[;]\dm)|(?<=[\[;]\d\dm))"
_BEARER_PROSE = (
    r"(?!(?:tokens?|auth\w*|schemes?|headers?|formats?|credentials?|values?|prefix|strings?|keys?|types?|only|realm|error"
    r"|is|of|and|in|for|or|the|with|from|to|as|an?|not|if|was|has|must|should|bonds?|shares?|plants?)\b(?![+/=-]))"
)
# (words of which one must occur in the lower-cased text, pattern); group 1 stays, the rest of the match goes.
_SHAPES = tuple(
    (tuple(words.split()), re.compile(pattern))
    for words, pattern in (
        ("sk-", _EDGE + r"(sk-(?:ant|proj|svcacct|admin|None|or|lf)-)[\w-]{8,}"),
        ("sk-", _EDGE + r"(sk-(?:[A-Za-z0-9]{1,10}-){0,2})[A-Za-z0-9]{20,}"),
        ("_", r"(gh[pousr]_)[A-Za-z0-9]{16,}"),
        ("_pat_", r"((?:github|dckr)_pat_)\w{16,}"),
        ("gl", r"(gl(?:pat|ptt|dt|rt|cbt|ft|imt)-)[\w-]{16,}"),
        ("xox xapp-", r"(xox[a-z]-|xapp-)[\w-]{8,}"),
        ("akia asia", r"(AKIA|ASIA)[A-Z0-9]{16}"),
        ("aiza", r"(AIza)[\w-]{30,}"),
        ("ya29.", r"(ya29\.)[\w.-]{16,}"),
        ("npm_", r"(npm_)[A-Za-z0-9]{30,}"),
        ("hf_", r"(hf_)[A-Za-z0-9]{30,}"),
        ("_live_ _test_", r"([sr]k_(?:live|test)_)[A-Za-z0-9]{10,}"),
        ("pypi-", r"(pypi-)[\w-]{40,}"),
        ("eyj", _EDGE + r"(eyJ)[\w-]{8,}(?:\.[\w-]+){1,4}\.?"),
        (":aa", r"((?<!\d)\d{8,10}:AA)[\w-]{33}"),
        ("sg.", r"(SG\.)[\w-]{16,}\.[\w-]{16,}"),
        ("hvs.", r"(hvs\.)[\w-]{20,}"),
        ("xai- plx- ocspx-", r"(xai-|pplx-|GOCSPX-)[\w-]{20,}"),
        ("gsk_ _v1_ shp", r"(gsk_|do[opr]_v1_|shp(?:at|ss|ca|pa)_)[A-Za-z0-9]{20,}"),
        ("key-", r"(AGE-SECRET-KEY-1|tskey-[a-z]{2,12}-)[\w-]{16,}"),
        ("ls0tls1", r"(LS0tLS1CRUdJTi(?:BSU0Eg|BQUklW|BFQyBQ|BPUEVO|BFTkNS|BEU0Eg))[A-Za-z0-9+/=]+"),
        ("private-lines", r"(Private-Lines:\s{0,4}\d{1,4}\s)[A-Za-z0-9+/=\s]{20,}"),
        ("hook", r"(hooks\.slack\.com/(?:services|workflows)/)[\w/-]{12,}"),
        ("hook", r"(discord(?:app)?\.com/api/webhooks/\d{1,30}/)[\w-]{12,}"),
        ("bearer", _EDGE + r"(B(?:earer|EARER)[ \t]{1,4})" + _BEARER_PROSE + r"[\w.~+/=%-]{3,}"),
        ("bearer", _EDGE + r"(bearer[ \t]{1,4})(?:(?![a-z-]+(?![\w.~+/=%-]))[\w.~+/=%-]{3,}|[a-z-]{16,})"),
        ("basic", _EDGE + r"([Bb]asic[ \t]{1,4})(?=[A-Za-z+/]{0,200}[0-9=])[A-Za-z0-9+/]{8,}={0,2}"),
        ("@", r"(:(?://|\\/\\/)[^\s/:@?#\"'<>\\]{0,100}:)(?!\[redacted\]@)[^\s/?#\"'<>]{1,300}(?=@)"),
        ("@", r"((?:sql|gres|mongodb|srv|redis|amqp)://[^\s/:@]{0,100}:)(?!\d{1,5}/|\[redacted\]@)[^\s\"']{1,200}(?=@)"),
        ("@", r"(:(?://|\\/\\/))(?=[A-Za-z_.~-]{0,99}\d)[\w.~-]{20,300}(?=@)"),
        ("key= sig= signature= code= auth=", r"([?&](?:key|sig|signature|[Xx]-[\w-]{1,40}-[Ss]ignature|code|auth)=)"
         r"[^\s&#\"'<>\\`[]+"),
    )
)  # fmt: skip

# Heads after which the next shell word is a secret; `keep` is the sign up to which that word stays (user:password).
_ARGUMENTS = tuple(
    (tuple(words.split()), re.compile(pattern), keep)
    for words, pattern, keep in (
        ("curl wget", r"(?:(?<=\s)|^)(?:-u|-U|--user|--proxy-user)(?:[ \t=]{1,4}|(?=[\w\"']))(?!\d+:\d+\b)", ":"),
        ("curl", r"(?:(?<=\s)|^)(?:-b)[ \t]{1,4}", "="),
        ("sshpass", _EDGE + r"sshpass\s{1,4}-p\s{0,4}", ""),
        ("mysql mariadb", _EDGE + r"(?:mysql|mariadb)[\w-]{0,12}(?: [^\n|;&]{0,200}?)? -p(?=\S)(?!\[redacted\])", ""),
        ("login", _EDGE + r"(?:docker|podman|buildah|skopeo|nerdctl|registry|oc|az|cf) login\b[^\n]{0,200}? -p[ =]", ""),
        ("redis-cli", _EDGE + r"redis-cli\b[^\n|;&]{0,200}? -a[ =]", ""),
        ("pass:", r"-pass(?:in|out)?[ =]pass:", ""),
        ("from-literal", r"--from-literal[ =][\"']?[^\s=\"']{1,100}=", ""),
        ("secret", _EDGE + r"secret set \S{1,100}[^\n|;&]{0,200}? (?:-b|--body)[ =]?", ""),
        ("echo printf", _EDGE + r"(?:echo|printf)[ \t](?:-[neE]{1,3}[ \t])?(?=[^\n|]{1,200}\|[ \t]{0,4}(?:sudo[ \t][^\n|;]{0,40}-\w?S"
         r"|[^\n|;]{1,200}--\w{1,20}-stdin|passwd|chpasswd))", ""),
        ("password", _EDGE + r"(?:machine|login)\s{1,9}\S{1,200}\s{1,9}password\s{1,9}(?=\S{1,300}\s{0,9}(?:$|\n|machine|account))", ""),
    )
)  # fmt: skip

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.-]+")
_END = r"(?=_|\d|$)"
_SECRET_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|passcode|secret|authorization|cookie|credential)s?" + _END + r"|token" + _END
    + r"|(?:access|refresh|auth|api|bearer)_?tokens" + _END
    + r"|(?:api|app|access|private|secret|sign(?:ing)?|encrypt(?:ion)?|auth|account|master|service|deploy|shared|storage"
    r"|client|webhook|consumer|license|subscription|admin|hmac|rsa|host|jwt|crypto)_?keys?" + _END
    + r"|(?<!old)pwd" + _END + r"|(?:^|_)(?:jwt|creds?|bearer)" + _END
    + r"|(?:^|_)(?:db|database|user|smtp|imap|mail|email|mysql|pg|postgres|redis|ftp|http|proxy|admin|root|login|sudo"
    r"|become|ssh|ldap|wifi|git|vnc|rpc)_?pass$|^_auth$"
)  # fmt: skip
_HARMLESS_NAME = re.compile(
    r"(?:^|_)(?:max|min|num|total|n|per|pad|eos|bos|stop|unk|mask)_?token(?:_|$)"
    r"|_(?:counts?|limits?|budget|usage|names?|types?|len|length|size|expir\w*|expires_(?:at|in)|ttl|paths?|files?|dir|ur[li]s?"
    r"|endpoint|policy|fields?|labels?|prompt|hint|placeholder|regex|pattern|index|manager|store|provider|helper|required"
    r"|valid|enabled|source|window|stdin|env|env_var|rotation|parser|stream|kind|refs?|at|in|status|class|settings)$"
)  # fmt: skip
_names: dict[str, bool] = {}


def is_secret_name(name: str) -> bool:
    """Whether a value under this key, variable, header or flag is to be hidden; snake, kebab and camel case."""
    known = _names.get(name)
    if known is None:
        snake = _CAMEL.sub("_", name.strip()).lower().strip("_") if name != "_auth" else name
        known = len(name) < 200 and (
            bool(_SECRET_NAME.search(snake)) and not _HARMLESS_NAME.search(snake) or name.endswith("_PASS")
        )
        if len(_names) < 4096 and len(name) < 100:
            _names[name] = known
    return known


_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_TYPES = r"(?:str|bytes|string|String|number|bool|boolean|int|float|any|Any|unknown|object|char|&str|Optional|Redacted)"
_ASSIGNMENT = re.compile(
    r"(?P<word>passw(?:or)?d|passphrase|passcode|pwd|api key|access key|secret key|key|token|secret|authorization|cookie"
    r"|credential|cred|jwt|bearer|_pass|_auth)(?P<suffix>[\w-]{0,40})(?![\w-])(?:"
    r"(?P<quote>\\{0,7}[\"'`]|)\]?\*{0,2}[ \t]{0,8}"
    r"(?P<op>:[ \t]{0,4}" + _TYPES.lower() + r"(?:\[[^\]\n]{0,40}\])?(?: \| none)?[ \t]{0,4}=(?!=)|=>|:=|[!=]?={1,3}|:|>|,(?=[ \t]{0,4}\\{0,7}[\"']))"
    r"\*{0,2}(?P<gap>[ \t]{0,8})|(?P<is>[ \t]{1,4}(?:is|was|as)[ \t:]{1,4})|(?P<blank>[ \t]{1,8}))"
)  # fmt: skip
_WEAK = frozenset("token secret secrets cookie cookies credential credentials cred creds jwt bearer".split())
_RANDOM = re.compile(r"(?=\S{0,99}\d)(?=\S{0,99}[A-Za-z])[^\s(]{6,}|[^\s(]{20,}|\d{6,}")
_HARMLESS_VALUE = re.compile(
    r"(?:" + _TYPES + r"(?:\[.{0,60}|[ \t]*\|.{0,60})?|[Nn]one|null|nil|undefined|[Tt]rue|[Ff]alse|\*{3,}|<[\w -]{1,40}>"
    r"|\$[A-Z_][A-Z0-9_]*|\$\{[A-Za-z_]\w*\}|\$\{\{.{0,80}\}\}|\$\(.*|[\W_]{1,2})[,;:)\]}\\\"']*(?:[ \t]*(?:#|//|->).{0,200})?",
    re.DOTALL,
)  # fmt: skip
_SCHEME = re.compile(
    r"(?:bearer|basic|token|digest|negotiate|api-?key|aws4-hmac-sha256|hawk|ntlm|oauth|splunk|key)[ \t]+", re.IGNORECASE
)
_OPENING = re.compile(r"(\\{0,7})([\"'`])")
_WORD_END = re.compile(r"(?<!\\)[\"'`]|\s")
_QUOTE_OR_EOL = re.compile(r"(?<!\\)[\"'`]|[\r\n]")
_EOL = re.compile(r"[\r\n]")
_JSON_END = re.compile(r"[\s,}\]\"']")
_QUERY_END = re.compile(r"[\s&#\"'<>\\`]")
_TAG_END = re.compile(r"<")
_BRACKET = re.compile(r"[\[{]|[\]}]")
_YAML_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*(?:\n[ \t]+[^\n]*)+")
_LINE_HEAD = re.compile(r"[\s>+*#|<-]*(?:\d{1,6}[→:|\t-]\s*)?[+-]?(?:(?:export|set|ENV|ARG|declare -x|local)\s+)?")
_ENV_LINE = re.compile(r"[\r\n]{1,2}[A-Za-z_]\w{0,80}=")
_SETTER = re.compile(r"(?:^|[\s;&|\"'])(?:set|setenv|set-environment|config)(?:[ \t]+(?:set|--?[\w-]{1,20}))*[ \t]+$")
_FLAG_PROSE = re.compile(r"(?:-|(?:flags?|options?|arguments?|parameters?|is|or|and|to|for|with|values?|in|on|from)\b)")


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.search(text, start)
    return found.start() if found else len(text)


def _closing(text: str, start: int, escapes: int, quote: str) -> int:
    """Where the string ends that was opened by `escapes` backslashes and a quote, or -1.

    In JSON inside JSON the number of backslashes before a quote tells its level: 2 * escapes + 1 of them (modulo the
    escaped backslashes of the same level) still belong to the value, any other number ends it.
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


def _bare_end(text: str, start: int, stem: str, name: str, op: str) -> int:
    """Where an unquoted value ends; `stem` is what stands before the name on the same line."""
    if op == ">":
        return _end(_TAG_END, text, start)
    if stem[-1:] in ("?", "&") and op == "=":
        return _end(_QUERY_END, text, start)
    if stem[-1:] in ('"', "'", "`") and op in (":", "="):  # -H "Authorization: …", -e "PASSWORD=…"
        bare = stem[:-1].rstrip("\\")
        closing = _closing(text, start, len(stem) - 1 - len(bare), stem[-1])
        if closing >= 0:
            return closing
    block = _YAML_BLOCK.match(text, start)
    if block:
        return block.end()
    word = _end(_WORD_END, text, start)
    lowered = name.lower()
    whole_line = lowered.endswith(("authorization", "cookie", "passphrase"))
    if _LINE_HEAD.fullmatch(stem):
        line = _end(_EOL, text, start)
        if op == ":" or whole_line or " " not in text[word : min(line, word + _QUOTED_REACH)].rstrip():
            return line
        return line if _ENV_LINE.match(text, line) else word
    return _end(_QUOTE_OR_EOL, text, start) if whole_line else word


def _prose(name: str, op: str, gap: str, value: str, at_line_start: bool) -> bool:
    """Whether a word such as `token` before a colon or a spaced `=` is just English or code."""
    if name.lower() not in _WEAK or not (op == ":" or gap):
        return False
    if name.lower() == "cookie" and "=" in value.split(None, 1)[0]:
        return False
    one_word = at_line_start and op == ":" and not value.strip().count(" ")
    return not one_word and not _RANDOM.match(value)


def _secret_span(text: str, found: re.Match[str]) -> tuple[int, int, str] | None:
    """Begin and end of the secret after a name, and the quote to add; None if this is no secret."""
    word_start = found.start()
    head = text[max(0, word_start - 80) : word_start]
    stem = head.rstrip(_NAME_CHARS)
    name = head[len(stem) :] + text[word_start : found.end("suffix")]
    if stem.endswith("\\") and name[0] in "nrt":
        name = name[1:]
    is_flag, name = name.startswith("-"), name.lstrip("-.")
    op, quote, gap = found["op"] or "", found["quote"] or "", found["gap"] or ""
    start = found.end()
    if not is_secret_name(name) or start >= len(text):
        return None
    stem = stem[max(stem.rfind("\n"), stem.rfind("\r")) + 1 :]
    if found["blank"] and not ((is_flag and not _FLAG_PROSE.match(text, start)) or _SETTER.search(stem)):
        return None
    if op == "," and not (quote and name.lower().endswith(("authorization", "cookie", "key", "token"))):
        return None
    if (
        op == ">"
        and not stem.endswith(("<", ":"))
        or op == ":"
        and stem.endswith("/")
        and (not gap or name == "passwd")
    ):
        return None  # a comparison; a line of grep's output; /etc/passwd: No such file
    opening = _OPENING.match(text, start)
    closer = ""
    if opening:
        begin = opening.end()
        end, closer = _quoted(text, opening)
    else:
        begin = start
        if quote not in ("", "`") and op != ">":
            end = _json_container(text, start) if text[start] in "[{" else _end(_JSON_END, text, start)
        else:
            end = _bare_end(text, start, stem, name, op)
        value = text[begin:end]
        if not value.strip() or (found["is"] and not _RANDOM.match(value)):
            return None
        if not quote and _prose(name, op, gap, value, bool(_LINE_HEAD.fullmatch(stem))):
            return None
    scheme = _SCHEME.match(text, begin, end)
    if scheme:
        begin = scheme.end()
    value = text[begin:end].strip()
    if not value or _HARMLESS_VALUE.fullmatch(value) or _is_working_directory(name, value):
        return None
    return begin, end, closer


def _is_working_directory(name: str, value: str) -> bool:
    return name.lower() == "pwd" and value.startswith(("/", "~"))


def _redact_assignments(text: str, low: str) -> str:
    pieces: list[str] = []
    done = position = 0
    while True:
        found = _ASSIGNMENT.search(low, position)
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
        value = text[sign + 1 : end]
        if (sign < 0 and keep) or not value or _HARMLESS_VALUE.fullmatch(value):
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
        if opened and body.strip() and (closed or body[0] not in "\"'`"):  # not: grep "-----BEGIN … KEY-----" file
            parts[index] = MARK
        elif closed and not opened:
            kept = body.rstrip(_PEM_BODY)
            if len(body) - len(kept) >= 24:
                parts[index] = kept + MARK
    return "".join(parts)


_KUBERNETES = re.compile(r"^([ \t]*)(?:data|stringData):[ \t]*\n((?:\1[ \t]+\S[^\n]*(?:\n|$))+)", re.MULTILINE)
_KUBERNETES_VALUE = re.compile(r"^([ \t]*[\w.-]+:[ \t]+)(?!\[redacted\]$)\S[^\n]*", re.MULTILINE)


def _redact_once(text: str) -> str:
    low = _lower(text)
    if "private key" in low:
        text = _redact_pem(text)
    if "kind: secret" in low:
        text = _KUBERNETES.sub(lambda block: _KUBERNETES_VALUE.sub(r"\1" + MARK, block[0]), text)
    for words, head, keep in _ARGUMENTS:
        if any(word in low for word in words):
            text = _redact_argument(text, head, keep)
    text = _redact_assignments(text, _lower(text))
    for words, shape in _SHAPES:
        if any(word in low for word in words):
            text = shape.sub(r"\1" + MARK, text)
    return text


def _lower(text: str) -> str:
    low = text.lower()
    # U+0130 is the one character that grows when lowered; positions in `low` must be positions in `text`.
    return low if len(low) == len(text) else text.replace("\u0130", "I").lower()


def _is_suspicious(low: str) -> bool:
    if _SUSPICIOUS.search(low):
        return True
    for word in _SUSPICIOUS_WORDS:  # noqa: SIM110  a generator costs a microsecond per event
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
    """Hide the secrets in decoded JSON: whatever lies under a secret name, and what `redact_text` finds elsewhere.

    Raises ValueError above MAX_DEPTH levels and TypeError for what no JSON decoder returns.
    """
    texts: list[str] = []
    level: list[object] = [value]
    depth = 0
    while level:
        if depth > MAX_DEPTH:
            raise ValueError(f"JSON is nested deeper than {MAX_DEPTH} levels; refuse it or cut it before redacting")
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
                    result.append(Redacted(together[len(context) :]))
                    continue
        result.append(_walk(item))
    return result
