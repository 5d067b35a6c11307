"""Tokens that give themselves away are taken out wherever they stand, and what only looks a little like one stays.

Every token is made when the test runs: a file with whole ones in it would be found by everybody's scanners.
"""

import random
import string
import time
import uuid

import pytest

from agtmux.domain.redact import MARK, redact_text, redact_value

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
# What it begins with, and what follows: letters and their number, or a literal.
KINDS: dict[str, tuple[str | tuple[str, int], ...]] = {
    "linear": ("lin_api_", (LETTERS, 40)),
    "linear-oauth": ("lin_oauth_", (HEX, 64)),
    "notion": ("ntn_", (LETTERS, 46)),
    "notion-old": ("secret_", (LETTERS, 43)),
    "databricks": ("dapi", (HEX, 32)),
    "atlassian": ("ATATT3", "xFfGF0", (LETTERS + "_-", 160), "=", (UPPER, 8)),
    "bitbucket": ("ATBB", (LETTERS, 32)),
    "grafana": ("glsa_", (LETTERS, 32), "_", (HEX, 8)),
    "grafana-cloud": ("glc_", "ey", (LETTERS, 60)),
    "discord": ("", "M", (LETTERS, 23), ".", (LETTERS, 6), ".", "aB3", (LETTERS, 30)),
    "supabase": ("sbp_", (HEX, 40)),
    "supabase-secret": ("sb_secret_", (LETTERS, 22), "_", (LETTERS, 8)),
    "doppler": ("dp.pt.", (LETTERS, 43)),
    "doppler-service": ("dp.st.", "dev.", (LETTERS, 43)),
    "planetscale": ("pscale_tkn_", (LETTERS, 43)),
    "planetscale-password": ("pscale_pw_", (LETTERS, 43)),
    "postman": ("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "pulumi": ("pul-", (HEX, 40)),
    "figma": ("figd_", (LETTERS + "_-", 40)),
    "airtable": ("pat", (LETTERS, 14), ".", (HEX, 64)),
    "azure-client": ("", "abc", "8Q~", (LETTERS, 34)),
    "azure-devops": ("", (LETTERS, 76), "AZDO", (LETTERS, 4)),
    "circleci": ("CCIPAT_", (LETTERS, 22), "_", (HEX, 40)),
    "buildkite": ("bkua_", (HEX, 40)),
    "contentful": ("CFPAT-", (LETTERS + "_-", 43)),
    "dynatrace": ("dt0c01.", (UPPER, 24), ".", (UPPER, 64)),
    "easypost": ("EZAK", (LETTERS, 54)),
    "fly": ("fo1_", (LETTERS, 43)),
    "flutterwave": ("FLWSECK-", (HEX, 32), "-X"),
    "frameio": ("fio-u-", (LETTERS, 64)),
    "heroku": ("HRKU-", "AA", (LETTERS, 58)),
    "hubspot": ("pat-na1-", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)),
    "infracost": ("ico-", (LETTERS, 32)),
    "mailgun": ("key-", (HEX, 32)),
    "mailchimp": ("", (HEX, 32), "-us12"),
    "newrelic": ("NRAK-", (UPPER, 27)),
    "netlify": ("nfp_", (LETTERS, 36)),
    "onepassword": ("ops_", "ey", (LETTERS, 250)),
    "prefect": ("pnu_", (LETTERS, 36)),
    "readme": ("rdme_", (LETTERS, 70)),
    "replicate": ("r8_", (LETTERS, 37)),
    "rubygems": ("rubygems_", (HEX, 48)),
    "sentry": ("sntryu_", (HEX, 64)),
    "sentry-org": ("sntrys_", "ey", (LETTERS, 90)),
    "shippo": ("shippo_live_", (HEX, 40)),
    "sonar": ("squ_", (HEX, 40)),
    "sourcegraph": ("sgp_", (HEX, 40)),
    "square": ("sq0atp-", (LETTERS, 22)),
    "stripe-webhook": ("whsec_", (LETTERS, 32)),
    "terraform": ("", (LETTERS, 14), ".atlasv1.", (LETTERS, 67)),
    "twilio": ("SK", (HEX, 32)),
    "typeform": ("tfp_", (LETTERS, 44), "_", (LETTERS, 14)),
    "yandex": ("AQVN", (LETTERS, 35)),
    "adobe": ("p8e-", (LETTERS, 32)),
    "alibaba": ("LTAI", (LETTERS, 20)),
    "clojars": ("CLOJARS_", (HEX, 60)),
    "duffel": ("duffel_live_", (LETTERS, 43)),
    "facebook": ("EAA", "C", (LETTERS, 120)),
    "google-refresh": ("1//0", (LETTERS, 60)),
    "gitlab-scim": ("glsoat-", (LETTERS, 20)),
    "gitlab-agent": ("glagent-", (LETTERS, 50)),
    "together": ("tgp_v1_", (LETTERS, 43)),
    "langsmith": ("lsv2_pt_", (HEX, 32), "_", (HEX, 10)),
    "pinecone": ("pcsk_", (LETTERS, 6), "_", (LETTERS, 60)),
    "cerebras": ("csk-", (LETTERS, 48)),
    "tavily": ("tvly-", "dev-", (LETTERS, 32)),
    "elevenlabs": ("sk_", (HEX, 48)),
    "huggingface-org": ("api_org_", (LETTERS, 34)),
    "firecrawl": ("fc-", (HEX, 32)),
    "resend": ("re_", (LETTERS, 8), "_", (LETTERS, 24)),
    "posthog": ("phx_", (LETTERS, 43)),
    "neon": ("napi_", (LETTERS, 64)),
    "render": ("rnd_", (LETTERS, 28)),
    "docker-org": ("dckr_oat_", (LETTERS, 32)),
    "artifactory": ("AKCp", (LETTERS, 69)),
    "mongodb": ("mdb_sa_sk_", (LETTERS, 40)),
    "vault-batch": ("hvb.", (LETTERS, 100)),
    "brevo": ("xkeysib-", (HEX, 64), "-", (LETTERS, 16)),
    "mailersend": ("mlsn.", (HEX, 64)),
    "plaid": ("access-production-", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)),
    "woocommerce": ("ck_", (HEX, 40)),
    "cloudflare-origin": ("v1.0-", (HEX, 24), "-", (HEX, 146)),
}
AROUND = (
    "{}",
    "use {} now",
    '"{}"',
    "TOKENLESS:{}",
    "curl https://example.org/?x={}&y=1",
    "({})",
    "a\\n{}\\nb",
    "[31m{}[0m",
)


def made(kind: str, chance: random.Random) -> tuple[str, list[str]]:
    """A token of that kind, and its random parts, of which nothing may be left."""
    parts = [part if isinstance(part, str) else "".join(chance.choices(*part[:1], k=part[1])) for part in KINDS[kind]]
    return "".join(parts), [part for part, how in zip(parts, KINDS[kind], strict=True) if not isinstance(how, str)]


def test_there_are_more_than_fifty_kinds():
    assert len(KINDS) >= 51


@pytest.mark.parametrize("kind", KINDS)
def test_a_bare_token_is_taken_out(kind: str):
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    for around in AROUND:
        token, parts = made(kind, chance)
        text = around.format(token)
        left = redact_text(text)
        assert MARK in left, (seed, text)
        # The last, longest one is the secret; what names its kind may stay.
        assert max(parts, key=len) not in left, (seed, text)
        assert redact_text(str(left)) == left
        assert max(parts, key=len) not in str(redact_value({"command": ["run", text]}))


def harmless() -> list[str]:
    chance = random.Random(7)
    sha = "".join(chance.choices(HEX, k=40))
    short = sha[:12]
    return [
        *(f"git show {sha}", f"git log {short}..{sha} -- src/app.py", f"docker pull img@sha256:{sha}{short}{short}"),
        *(str(uuid.UUID(int=chance.getrandbits(128))), f"api-{uuid.UUID(int=chance.getrandbits(128))}"),
        *("npm run build && npm test -- --watch=false", "pip install -r requirements.txt", "make -j8 all check"),
        *("ls -la ~/.local/share/some-application/with_a_long_name/and-a-longer-one/file.test.snapshot.tsx.snap",),
        *("kubectl get pods -n kube-system -o wide", "ssh -p 2222 user@host.example.org uptime"),
        *("from module_one.sub_package.very_long_module_name_of_mine import SomethingElseEntirelyDifferent",),
        *(
            "class MyVeryLongClassNameInJava.Method.someOtherThingWithoutAnyDigitsInIt",
            "Nvidia.driver.version_number_is_this",
        ),
        *(
            "tests/unit/test_sk_learn.py::test_re_match_groups_of_ck_editor",
            "asset-us1 region eu-us2 en-us",
            "lsv2 pul-request",
        ),
        *("https://example.org/path/to/page?id=1234567890&ref=main", "sha1-" + sha, "SKU0123456789", "key-value pairs"),
        *(
            "mypy --strict daemon",
            "ico-files and fc-match",
            "pat-na1 is a prefix",
            "dapi stands for",
            "EAAaaa",
            "AZDO pipelines",
        ),
        *("-----BEGIN CERTIFICATE-----", "x" * 200, "0123456789abcdef" * 4, "A" * 84, "terraform.atlasv1.txt"),
    ]


@pytest.mark.parametrize("text", harmless())
def test_ordinary_commands_hashes_and_paths_stay(text: str):
    assert redact_text(text) == text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["linear", "discord", "azure-devops", "mailchimp", "resend", "atlassian", "twilio"])
def test_a_megabyte_of_almost_tokens_takes_no_more_than_seconds(kind: str):
    token, _ = made(kind, random.Random(1))
    began = time.process_time()
    for cut in (1, 3, len(token) // 2):
        redact_text(token[:-cut] * (300_000 // len(token)))
    assert time.process_time() - began < 20
