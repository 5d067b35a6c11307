"""TOML documents as people and programs write them, for hypothesis: comments, odd spacing, strings over several lines
(some quote our own entry), inline tables, dotted keys, arrays of tables, both newlines, a byte order mark or none."""

from hypothesis import strategies as st

# What a reader that goes by lines or brackets takes for a head, or for the end of our entry.
IMITATIONS = (
    "[mcp_servers.agtmux]",
    'command = "/opt/agtmux/bin/agtmux-mcp"',
    "[[x]]",
    "# [y]",
    "]",
    "}",
    "a = '''",
    'b = "c"',
    "é 漢 😀",
    "",
    "  ",
)
UNDER = "mcp_servers"

_SPACE = st.sampled_from(["", "", " ", "  ", "\t", " \t "])
_PLAIN_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\"'\\", exclude_categories=["C", "Zl", "Zp"]))
_COMMENT = st.one_of(_PLAIN_TEXT, st.sampled_from(IMITATIONS)).map(lambda text: "#" + text.replace("\n", " "))
_LINES = st.lists(st.one_of(st.sampled_from(IMITATIONS), _PLAIN_TEXT), max_size=3)


def _basic(lines: list[str]) -> str:
    return '"""\n' + "\n".join(lines).replace("\\", "\\\\").replace('"""', '""\\"') + '\\n"""'


def _literal(lines: list[str]) -> str:
    return "'''\n" + "\n".join(lines).replace("'''", "''") + "\n'''"


_SCALARS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.sampled_from(
        [
            *(
                "true",
                "false",
                "inf",
                "-inf",
                "nan",
                "+nan",
                "1_000",
                "0xdead_BEEF",
                "0o17",
                "0b01",
                "6.02e+23",
                "-0.0",
            ),
            *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27 00:32:00.999-07:00", '""', "''"),
            *('"a \\"b\\" \\u00e9 \\\\"', "'C:\\x'", '"""a""b"""', "'''a''b'''", '"""a \\\n   b"""', '"""x"""""'),
        ]
    ),
    _PLAIN_TEXT.map(lambda text: f'"{text}"'),
    _PLAIN_TEXT.map(lambda text: f"'{text}'"),
    _LINES.map(_basic),
    _LINES.map(_literal),
)


def _array(items: list[str], gap: str, is_long: bool, comment: str, comma: bool) -> str:
    if not is_long:
        return "[" + gap + f"{gap},{gap}".join(items) + gap + ("," if comma and items else "") + "]"
    return "[ " + comment + "\n" + "".join(f"{gap}{item}{gap}, {comment}\n" for item in items) + gap + "]"


def _inline(items: list[str], gap: str) -> str:
    pairs = (f"{gap}k{number}{gap}={gap}{item}" for number, item in enumerate(items))
    return "{" + ",".join(pairs) + gap + "}"


_VALUES = st.recursive(
    _SCALARS,
    lambda values: st.one_of(
        st.builds(_array, st.lists(values, max_size=3), _SPACE, st.booleans(), _COMMENT, st.booleans()),
        st.builds(_inline, st.lists(values, max_size=3), _SPACE),
    ),
    max_leaves=3,
)
_KEY_FORMS = ("k{}", '"k {}"', "'k.{}'", "a.k{}", 'a . "k{}"', "a.b.'k{}'", "{}")
_HEAD_FORMS = (
    *("[t{}]", "[ t{} ]", '["t {}"]', "[t.x{}]", "[ t . 'x {}' ]", "[t.y.z{}]", "[[l]]", "[[ l.m{} ]]", "[[u.l{}]]"),
    *("[mcp_servers.s{}]", '[mcp_servers."s {}".env]', "[ 'mcp_servers' . s{} ]", "[[mcp_servers.s{}.tools]]"),
    *("[agtmux.t{}]", "[agtmux.mcp_servers.t{}]", "[projects.'/home/me/{}']"),
)


@st.composite
def _section(draw: st.DrawFn, number: int, head: str) -> str:
    """A head and what is under it, or without a head what a document begins with."""
    lines = []
    if head:
        lines.append(draw(_SPACE) + head.format(number) + draw(st.one_of(st.just(""), _COMMENT.map(" ".__add__))))
    for count in range(draw(st.integers(0, 3))):
        form, gap = draw(st.sampled_from(_KEY_FORMS)), draw(_SPACE)
        kind = draw(st.integers(0, 5))
        if kind == 0:
            lines.append(draw(_SPACE) + draw(_COMMENT))
        elif kind == 1:
            lines.append(draw(_SPACE))
        else:
            end = draw(st.one_of(st.just(""), _SPACE, _COMMENT.map(" ".__add__)))
            lines.append(f"{draw(_SPACE)}{form.format(count)}{gap}={gap}{draw(_VALUES)}{end}")
    return "\n".join(lines)


@st.composite
def toml_documents(draw: st.DrawFn) -> str:
    sections = [draw(_section(0, ""))]
    for number in range(1, draw(st.integers(1, 5))):
        head = draw(st.sampled_from(_HEAD_FORMS))
        if head == "[[l]]" and any("l.m" in section for section in sections):
            continue
        sections.append(draw(_section(number, head)))
    if draw(st.booleans()):
        sections.append(draw(st.sampled_from([f"[{UNDER}]", f"[{UNDER}] # all"])))
    gap = draw(st.sampled_from(["\n", "\n\n", "\n# a comment of the next\n"]))
    text = gap.join(draw(st.permutations(sections[1:])) if not sections[0] else sections)
    text += draw(st.sampled_from(["", "\n", "\n\n", "\n  ", "\n# the end", "  \n", "\n\n\n"]))
    match draw(st.sampled_from(["lf", "lf", "crlf", "mixed"])):
        case "crlf":
            text = text.replace("\n", "\r\n")
        case "mixed":
            text = text.replace("\n", "\r\n", draw(st.integers(1, 5)))
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + text
