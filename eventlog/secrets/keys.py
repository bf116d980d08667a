"""Finds keys in text.

`str.find` looks for the fixed parts of the shapes, and patterns are tried only where one is found, so
ordinary text needs none. Long texts are read in windows, so that no call holds the GIL for long.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import NamedTuple

import msgspec

from memlog.eventlog.escapes import map_spans_to_escaped, may_contain_escapes, unescape

# The table has a kind if its keys contain a fixed text that is rare elsewhere, or follow the name of a
# secret. Entropy is not a criterion: it would mask hashes and ids.
#
# The search is linear: each pattern reads a bounded number of characters, or ends with a possessive
# quantifier, whose match is masked and not read again. tests/eventlog/test_key_scan.py measures it.

APART = "(?<![A-Za-z0-9])"
ANYWHERE = ""
_END = "(?![_-]{0,8}[A-Za-z0-9])"
"""The end of a key, which Markdown emphasis (`_`) may follow."""


class KeyShape(msgspec.Struct, frozen=True, gc=False):
    """A shape of keys: `before`, one of the fixed texts, then `rest`. Patterns match ASCII only.

    kind: its name in the mask. A kind may have several shapes; of two with the same start, the first wins.
    fixed: the fixed texts, separated by spaces.
    rest: its group, if any, is the key; otherwise the whole match.
    source: the issuer's documentation, or the rule set that has the shape.
    width: the maximum number of characters matched by `before`.
    """

    kind: str
    fixed: str
    rest: str
    source: str
    before: str = APART
    width: int = 0


_GITLEAKS = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"
_GITHUB = (
    "https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns"
)
_AZURE = "https://learn.microsoft.com/en-us/purview/sit-defn-all-creds"

_NAMED_BY_PEOPLE = "https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html"

_PEM = r"[ +](?:[A-Z0-9]{1,16}[ +]){0,4}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----"
_PEM_GAP = r"(?:[\s\"'`,\\>|#*.:+/]|-(?!----)){0,99}+"
_PEM_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Charset):[^\n]{0,120}+"
_PEM_BLOCK = r"(?=[\s\S]{0,400}?[A-Za-z0-9+/]{40})[^-]*+(?:-(?!----(?:BEGIN|END))[^-]*+)*+-----END" + _PEM
"""Matches up to the end marker if a line of a key follows soon and no other start marker lies in between."""
_PEM_LINES = (
    rf"(?:{_PEM_GAP}{_PEM_HEADER}){{0,4}}(?:{_PEM_GAP}[A-Za-z0-9+/]{{20,}}+={{0,2}})++"
    rf"(?:[^-]{{0,200}}+-----END{_PEM}|{_PEM_GAP}[A-Za-z0-9+/=]{{1,63}}+\Z)?"
)
"""The lines of a key, so that in a text that only mentions the first line, the rest is not masked."""

_SIGNS = "[^A-Za-z0-9]{1,40}"
_NO_VALUE = r"(?:[Vv]alue|None|[Dd]efault|[Ss]tring|[A-Z0-9]{4}(?=\])|[bru])"
_NAMED = f"{_SIGNS}(?:{_NO_VALUE}{_SIGNS}){{0,2}}"
"""Text between a name and its value: an assignment in any notation, a table, a tag, a pair."""
_NAMED_WORD = f"{_SIGNS}+(?:{_NO_VALUE}{_SIGNS}+){{0,2}}"
"""The same before a value that begins with a letter or digit; possessive, so each sign is read once."""
_DATABASES = (
    "postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|sqlserver|oracle|clickhouse"
)
_USER = r"""[^\s:/?#@"'`<>\\]{0,128}:"""
_VARIABLE = (
    r"""(?!(?:\$?\{{1,2}[^}@]{0,128}\}{1,2}|\$\([^)@]{0,128}\)|\$(?:[A-Za-z_]{1,64}|[A-Z0-9_]{1,64})"""
    r"""|%\(\w{1,64}\)s|%s|%\w{1,64}%|\*{1,64}|<[^>@]{1,64}>|\[[^\]@]{1,64}\])@)"""
)
"""Excludes placeholders: ${NAME}, $NAME, {name}, %s, ***, <password>, [password]."""
_WORD = r"""[^\s/?#"'`<>\\\[\]]{1,256}"""
_RAW_WORD = (
    r"""(?=[^\s@]{1,256}+@)(?![0-9]{1,5}(?:[^\w!$&*+.^~-]|\Z))"""
    r"""(?:[^\s"'`<>\\@]|["'`](?![,:;)\]}+\s\\])|<(?!/)){1,256}+"""
)
"""Database clients read a password up to `@`; a number before a path is a port."""
_HOST = r"@(?=[\w\[%.-])"
_IN_URL = f"{_USER}{_VARIABLE}({_WORD}){_HOST}"
_IN_DATABASE_URL = f"{_USER}{_VARIABLE}({_WORD}(?={_HOST})|{_RAW_WORD}){_HOST}"

_OPAQUE = (
    r"""(?![\w.]{1,64}[(\[{]|[a-z_]{1,32}\.[a-z_]PLACEHOLDER)"""
    r"""(?=[^\s0-9"'&]{0,63}[0-9])(?=[^\sA-Za-z"'&]{0,63}[A-Za-z])"""
    r"""([\w!#%+/=@^~-](?:[\w!#$%()*+./:=?@^~|-]|&(?!\w{1,32}=|[a-z0-9#]{1,6};)){LEAST,127})"""
    r"""(?<![).:?|*])(?![\w(\[{<$])"""
)
"""An opaque value: letters and digits, but no call, index, variable or placeholder."""
_NO_PLACEHOLDER = _OPAQUE.replace("PLACEHOLDER", "|(?i:your|my|example|change|test)")
_SETTING = r"""["']?[ \t]{0,2}[=:][ \t]{0,2}["']?""" + _NO_PLACEHOLDER.replace("LEAST", "9")
_SHORT = _NO_PLACEHOLDER.replace("LEAST", "6")
_WRITTEN = (
    r"""(?=[ .?!)*_`\]]{0,4}[=:|>"'\n\t])[^A-Za-z0-9\[]{1,8}(?:[Vv]alue[^A-Za-z0-9\[]{1,8})?""" + _SHORT
)
"""A value as people write it after a name: `password: …`, a table cell, a pair."""
OPAQUE_WORD = r"(?<!\w)" + _OPAQUE.replace("PLACEHOLDER", "").replace("LEAST", "6")
"""A word that may be a key, in a text after a name; it may look like a placeholder."""

# fmt: off
SHAPES = (
    KeyShape("private-key", "-----BEGIN", f"{_PEM}(?:{_PEM_BLOCK}|{_PEM_LINES})",
             "https://www.rfc-editor.org/rfc/rfc7468", before=ANYWHERE),
    KeyShape("private-key", "LS0tLS1CRUdJTi",
             "(?:BQUklW|BSU0EgUFJJ|BFQyBQUklW|BPUEVOU1NI|BFTkNS)[A-Za-z0-9+/]{40,}+={0,2}",
             "https://kubernetes.io/docs/concepts/configuration/secret/"),
    KeyShape("age-key", "AGE-SECRET-KEY-1 age-secret-key-1", "[A-Za-z0-9]{58}",
             "https://github.com/C2SP/C2SP/blob/main/age.md#the-x25519-recipient-type"),
    KeyShape("aws-key", "AKIA ASIA ABIA ACCA", "[A-Z0-9]{16}(?![A-Z0-9])",
             "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html"),
    KeyShape("aws-secret-key", "ecret ECRET",
             "(?i:[ _-]?access)?[ _-]?(?i:key)" + _NAMED
             + "(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
             "https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html", before=ANYWHERE),
    KeyShape("azure-storage-key", "AccountKey=", "([A-Za-z0-9+/]{86}==)",
             "https://learn.microsoft.com/en-us/azure/storage/common/storage-configure-connection-string"),
    KeyShape("azure-storage-key", "+ASt", "[A-Za-z0-9+/]{5}[AQgw]==", _AZURE,
             before="(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{76}", width=76),
    KeyShape("azure-access-key", "SharedAccessKey=", "([A-Za-z0-9+/]{43}=)", _AZURE),
    KeyShape("azure-access-key", "JQQJ9", r"[\w]{27,}+", _AZURE, before=APART + "[A-Za-z0-9]{52}",
             width=52),
    KeyShape("azure-signature", "sig=", r"([\w%+/-]{43,}+=*+)",
             "https://learn.microsoft.com/en-us/rest/api/storageservices/create-service-sas",
             before="[?&;]", width=1),
    KeyShape("azure-client-secret", "Q~", r"[\w~.-]{31,34}(?![_~.-]{0,8}[A-Za-z0-9])", _GITLEAKS,
             before=APART + r"[\w~.-]{3}[0-9]", width=4),
    KeyShape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{36,}+",
             "https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/"),
    KeyShape("gitlab-token", "glpat- gldt- glptt- glrt- glcbt- glsoat- glft- glagent- gloas- glimt-",
             r"[\w-]{20,}+", "https://docs.gitlab.com/security/tokens/"),
    KeyShape("anthropic-key", "sk-ant-", r"[\w-]{20,}+", _GITLEAKS),
    KeyShape("openrouter-key", "sk-or-v1-", "[0-9a-f]{64}",
             "https://openrouter.ai/docs/api-reference/authentication"),
    KeyShape("langfuse-key", "sk-lf-", "[0-9a-f]{8}-[0-9a-f-]{27}",
             "https://langfuse.com/docs/observability/sdk/overview"),
    # A word with hyphens may begin with sk-, too; it has no digit and no capital within 40 characters.
    KeyShape("openai-key", "sk-", r"(?=[a-zA-Z_-]{0,40}[0-9])(?=[a-z0-9_-]{0,40}[A-Z])[\w-]{20,}+",
             _GITLEAKS),
    KeyShape("deepseek-key", "sk-", r"[0-9a-f]{32}" + _END, "https://api-docs.deepseek.com/"),
    KeyShape("elevenlabs-key", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])", _GITHUB),
    KeyShape("groq-key", "gsk_", "[A-Za-z0-9]{52}", "https://console.groq.com/docs/quickstart"),
    KeyShape("xai-key", "xai-", r"[\w-]{70,}+", "https://docs.x.ai/docs/tutorial"),
    KeyShape("perplexity-key", "pplx-", "[A-Za-z0-9]{48}",
             "https://docs.perplexity.ai/getting-started/quickstart"),
    KeyShape("replicate-key", "r8_", "[A-Za-z0-9]{37}",
             "https://replicate.com/docs/topics/security/api-tokens"),
    KeyShape("nvidia-key", "nvapi-", r"[\w-]{60,}+",
             "https://docs.nvidia.com/ngc/gpu-cloud/ngc-user-guide/"),
    KeyShape("huggingface-token", "hf_ api_org_", "[A-Za-z0-9]{34}(?![A-Za-z0-9])",
             "https://huggingface.co/docs/hub/security-tokens"),
    KeyShape("langsmith-key", "lsv2_pt_ lsv2_sk_", "[0-9a-f]{32}_[0-9a-f]{10}",
             "https://docs.smith.langchain.com/administration"),
    KeyShape("tavily-key", "tvly-", r"(?:dev-|prod-)?[\w-]{28,}+",
             "https://docs.tavily.com/documentation/quickstart"),
    KeyShape("slack-token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xoxe.xox xapp-",
             "[A-Za-z0-9%-]{10,}+", "https://api.slack.com/authentication/token-types"),
    KeyShape("slack-webhook", "hooks.slack.com/", "(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}+",
             "https://api.slack.com/messaging/webhooks", before=ANYWHERE),
    KeyShape("discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
             r"[0-9]{17,20}/[\w-]{60,}+", "https://discord.com/developers/docs/resources/webhook",
             before=ANYWHERE),
    # It begins with an account's id, digits in Base64.
    KeyShape("discord-token", "MT Mj Mz ND NT Nj Nz OD OT", r"[\w-]{21,26}\.[\w-]{6}\.[\w-]{27,}+",
             "https://docs.discord.com/developers/reference#authentication"),
    KeyShape("telegram-token", ":AA", r"[\w-]{33}" + _END,
             "https://core.telegram.org/bots/api#authorizing-your-bot",
             before=f"(?:{APART}|(?<=/bot))[0-9]{{8,10}}", width=10),
    KeyShape("google-key", "AIza", r"[\w-]{35}" + _END,
             "https://cloud.google.com/docs/authentication/api-keys"),
    KeyShape("google-token", "GOCSPX- ya29.", r"[\w-]{20,}+",
             "https://developers.google.com/identity/protocols/oauth2"),
    KeyShape("google-token", "1//0", r"[\w-]{40,}+",
             "https://developers.google.com/identity/protocols/oauth2#size"),
    KeyShape("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", "[A-Za-z0-9]{10,}+",
             "https://docs.stripe.com/keys"),
    KeyShape("stripe-key", "whsec_", "[A-Za-z0-9+/=]{24,}+", "https://docs.stripe.com/webhooks"),
    KeyShape("square-key", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}+",
             "https://developer.squareup.com/docs/build-basics/access-tokens"),
    KeyShape("square-key", "EAAA", r"[\w-]{60}" + _END,
             "https://developer.squareup.com/docs/build-basics/access-tokens"),
    KeyShape("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_", "[0-9a-fA-F]{32}",
             "https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens"),
    KeyShape("npm-token", "npm_", "[A-Za-z0-9]{36}(?![A-Za-z0-9])",
             "https://docs.npmjs.com/about-access-tokens"),
    KeyShape("pypi-token", "pypi-AgE", r"[\w-]{50,}+", "https://pypi.org/help/#apitoken"),
    KeyShape("rubygems-key", "rubygems_", "[0-9a-f]{48}", "https://guides.rubygems.org/api-key-scopes/"),
    KeyShape("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{27,}+",
             "https://docs.docker.com/security/access-tokens/"),
    KeyShape("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}",
             "https://docs.digitalocean.com/reference/api/create-personal-access-token/"),
    KeyShape("cloudflare-token", "cfut_ cfat_ cfk_", "[A-Za-z0-9]{40,}+",
             "https://developers.cloudflare.com/fundamentals/api/get-started/token-formats"),
    KeyShape("cloudflare-token", "v1.0-", "[0-9a-f]{24}-[0-9a-f]{146}",
             "https://developers.cloudflare.com/ssl/origin-configuration/origin-ca/"),
    KeyShape("heroku-key", "HRKU-", r"[\w-]{36,}+", _GITLEAKS),
    KeyShape("fly-token", "fo1_ fm1a_ fm1r_ fm2_", r"[\w+/=-]{40,}+(?:,[\w+/=-]{40,}+){0,8}",
             "https://github.com/superfly/macaroon"),
    KeyShape("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", r"[\w-]{50,}+", _GITHUB),
    KeyShape("netlify-token", "nfp_ nfc_ nfo_ nfu_ nfb_", "[A-Za-z0-9]{36,}+", _GITHUB),
    KeyShape("supabase-key", "sbp_", r"\w{40,}+",
             "https://supabase.com/docs/guides/platform/personal-access-tokens"),
    KeyShape("supabase-key", "sb_secret_", r"[\w-]{31,}+", "https://supabase.com/docs/guides/api/api-keys"),
    KeyShape("planetscale-key", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w=.-]{32,}+",
             "https://planetscale.com/docs/api/reference/service-tokens"),
    KeyShape("databricks-token", "dapi", "[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])",
             "https://docs.databricks.com/aws/en/dev-tools/auth/pat"),
    KeyShape("grafana-token", "glsa_", "[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}",
             "https://grafana.com/docs/grafana/latest/administration/service-accounts/"),
    KeyShape("grafana-token", "glc_ eyJrIjoi", "[A-Za-z0-9+/]{32,}+=*+",
             "https://grafana.com/docs/grafana-cloud/account-management/"),
    KeyShape("vault-token", "hvs. hvb. hvr.", r"[\w-]{24,}+",
             "https://developer.hashicorp.com/vault/docs/concepts/tokens#token-prefixes"),
    KeyShape("terraform-token", ".atlasv1.", r"[\w=-]{60,}+",
             "https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens",
             before=APART + "[A-Za-z0-9]{14}", width=14),
    KeyShape("pulumi-token", "pul-", "[0-9a-f]{40}",
             "https://www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens/"),
    KeyShape("doppler-token", "dp.",
             r"(?:pt|ct|st|sa|said|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+",
             "https://docs.doppler.com/reference/auth-token-formats"),
    KeyShape("atlassian-token", "ATATT3 ATCTT3", r"[\w=-]{60,}+",
             "https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/"),
    KeyShape("atlassian-token", "ATBB", "[A-Za-z0-9]{32}(?![A-Za-z0-9])", _GITHUB),
    KeyShape("linear-key", "lin_api_ lin_oauth_", "[A-Za-z0-9]{40,}+",
             "https://linear.app/developers/graphql"),
    KeyShape("notion-token", "ntn_", "[0-9]{11}[A-Za-z0-9]{35}",
             "https://developers.notion.com/page/changelog"),
    KeyShape("notion-token", "secret_", "[A-Za-z0-9]{43}(?![A-Za-z0-9])",
             "https://developers.notion.com/docs/authorization"),
    KeyShape("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}",
             "https://airtable.com/developers/web/guides/personal-access-tokens"),
    KeyShape("figma-token", "figd_", r"[\w-]{38,}+",
             "https://developers.figma.com/docs/rest-api/authentication/"),
    KeyShape("postman-key", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}",
             "https://learning.postman.com/docs/developer/postman-api/authentication/"),
    KeyShape("postman-key", "PMAT-", "[A-Z0-9]{26}", _GITLEAKS),
    KeyShape("hubspot-token", "pat-na1- pat-na2- pat-na3- pat-eu1- pat-ap1-", "[0-9a-f]{8}-[0-9a-f-]{27}",
             _GITHUB),
    KeyShape("twilio-key", "SK", "[0-9a-f]{32}(?![A-Za-z0-9])", "https://www.twilio.com/docs/iam/api-keys"),
    KeyShape("sendgrid-key", "SG.", r"[\w-]{22}\.[\w-]{43}" + _END,
             "https://docs.sendgrid.com/ui/account-and-settings/api-keys"),
    # Not cache-key- and a hash.
    KeyShape("mailgun-key", "key-", "[0-9a-f]{32}(?![A-Za-z0-9])", _GITLEAKS, before="(?<![A-Za-z0-9-])"),
    KeyShape("mailchimp-key", "-us", "[0-9]{1,2}(?![A-Za-z0-9])",
             "https://mailchimp.com/developer/marketing/guides/quick-start/", before=APART + "[0-9a-f]{32}",
             width=32),
    KeyShape("resend-key", "re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])", _GITLEAKS),
    KeyShape("sentry-token", "sntrys_eyJ", r"[\w+/=-]{50,}+",
             "https://docs.sentry.io/account/auth-tokens/"),
    KeyShape("sentry-token", "sntryu_", "[0-9a-f]{64}", "https://docs.sentry.io/account/auth-tokens/"),
    KeyShape("newrelic-key", "NRAK- NRII- NRRA- NRSP-", r"[\w-]{27,}+",
             "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/"),
    KeyShape("newrelic-key", "NRAL", "(?![A-Za-z0-9])",
             "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/",
             before=APART + "(?:eu01xx)?[0-9a-f]{30,36}", width=42),
    KeyShape("posthog-key", "phx_ phs_", r"[\w-]{41,}+", "https://posthog.com/docs/api"),
    KeyShape("dynatrace-token", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}",
             "https://docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication"),
    KeyShape("buildkite-token", "bkua_", "[0-9a-z]{40,}+",
             "https://buildkite.com/docs/apis/managing-api-tokens"),
    KeyShape("sonar-token", "squ_ sqp_ sqa_", "[0-9a-f]{40}",
             "https://docs.sonarsource.com/sonarqube-server/user-guide/managing-tokens/"),
    KeyShape("1password-token", "ops_eyJ", r"[\w+/=-]{250,}+",
             "https://developer.1password.com/docs/service-accounts/security/"),
    # The header is bounded: a run of characters may hold many beginnings, and each reads it again.
    KeyShape("jwt", "eyJ", r"[\w-]{8,1000}+\.eyJ[\w-]{8,}+(?:\.[\w-]*+)?",
             "https://www.rfc-editor.org/rfc/rfc7519"),
    KeyShape("database-url", "://", _IN_DATABASE_URL,
             "https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS",
             before=rf"(?:{_DATABASES})(?:\+\w{{1,16}})?", width=32),
    KeyShape("url-password", "://", _IN_URL, "https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
             before="[A-Za-z0-9]", width=1),
    KeyShape("basic-auth", "uthorization UTHORIZATION",
             _NAMED_WORD + r"(?i:basic)[ \t]{1,4}(?=[a-z0-9+/=]{0,40}[A-Z])([A-Za-z0-9+/]{8,}+=*+)",
             "https://www.rfc-editor.org/rfc/rfc7617", before="[Aa]", width=1),
    KeyShape("bearer-token", "earer EARER", r"[ ]{1,4}(?=[A-Za-z._~+/-]{0,63}[0-9])([\w.~+/-]{32,}+=*+)",
             "https://www.rfc-editor.org/rfc/rfc6750", before="[Bb]", width=1),
    KeyShape("bearer-token", "uthorization UTHORIZATION",
             _NAMED_WORD + r"(?i:bearer|token)[ \t]{1,4}(?=[A-Za-z._~+/-]{0,63}[0-9])([\w.~+/-]{16,}+=*+)",
             "https://www.rfc-editor.org/rfc/rfc6750", before="[Aa]", width=1),
    # A token without its scheme, of 20 characters with its first one, which may be a sign.
    KeyShape("bearer-token", "uthorization UTHORIZATION",
             _NAMED_WORD + r"(?=[A-Za-z_-]{0,63}[0-9])(?=[0-9_-]{0,63}[A-Za-z])"
             r"((?:[\w-]{20,}+|(?<=[^A-Za-z0-9][_-])[\w-]{19}(?![\w-]))=*+)(?![./(:])",
             "https://www.rfc-editor.org/rfc/rfc6750", before="[Aa]", width=1),
    # A setting with a name in capitals that ends so, and an opaque value.
    KeyShape("named-secret", "PASSW SECRET API_KEY SECRET_KEY AUTH_TOKEN ACCESS_TOKEN",
             "(?:ORD|D)?" + _SETTING, "https://12factor.net/config", before="(?<![a-z])"),
    KeyShape("named-secret", "assword asswd asswort assphrase asscode", _WRITTEN, _NAMED_BY_PEOPLE,
             before="[Pp]", width=1),
    KeyShape("named-secret", "api Api API lient_ lientS ccess_t ccessT uth_t uthT",
             "(?:[_ -]?[Kk]ey|ecret|secret|oken)" + _WRITTEN, _NAMED_BY_PEOPLE, before=ANYWHERE),
)
# fmt: on

KINDS = tuple(dict.fromkeys(shape.kind for shape in SHAPES))
NAMES = {
    "secretaccesskey": "secret_access_key",
    "secretkey": "secret_key",
    "authorization": "authorization",
    "password": "PASSWORD",
    "passwd": "PASSWD",
    "passphrase": "PASSWORD",
    "passwort": "PASSWORD",
    "passcode": "PASSWORD",
    "apikey": "API_KEY",
    "clientsecret": "SECRET",
}
"""The names of secrets in lower-case letters, each with the spelling that the shapes expect."""

_LEVELS = 5
"""Levels of escapes to remove: `%252525` can have as many levels as characters."""
_SHORTEST = len("a://:b@c")
"""Characters in the shortest text that contains a key."""
_LONGEST = 1 << 16
"""Characters of the longest key (RSA with 16,384 bits: 13,000)."""
_WINDOW = 1 << 18
"""Characters in a window. On 16 MiB of escaped keys, other threads wait at most 22 ms, instead of 310 ms."""
_REACH = 1 << 15
"""More characters than a pattern reads before it decides, even if each is an escape; less than a window."""
_CONTEXT = 1 << 10
"""More characters than a pattern reads before a key, even if each is an escape."""


class Key(NamedTuple):
    """A key in a text; `shape` is an index into SHAPES."""

    start: int
    shape: int
    end: int

    @property
    def kind(self) -> str:
        """The kind of key, as shown in its mask."""
        return SHAPES[self.shape].kind


def find_keys_in_text(text: str, window: int = _WINDOW) -> Iterable[Key]:
    """Return the keys in `text`, in order and without overlaps, including escaped ones."""
    return _find_keys(text, _LEVELS) if len(text) <= window else _find_keys_by_window(text, window)


def _find_keys_by_window(text: str, window: int) -> Iterator[Key]:
    start, size = 0, window
    while start < len(text):
        low, high = max(0, start - _CONTEXT), start + size
        found = (
            Key(low + begin, shape, low + end) for begin, shape, end in _find_keys(text[low:high], _LEVELS)
        )
        keys = [key for key in found if key.start >= start]
        if high >= len(text):
            yield from keys
            return
        # The next window reads what begins near the end of this one.
        keys = list(takewhile(lambda key: key.start < high - _REACH, keys))  # noqa: B023 - used up at once
        if keys and keys[-1].end > high - _CONTEXT:
            start, size = keys.pop().start, size * 2
        else:
            start, size = max(high - _REACH, keys[-1].end if keys else 0), window
        yield from keys


def _find_keys(text: str, levels: int) -> list[Key]:
    if len(text) < _SHORTEST:
        return []
    keys = [
        key
        for mark, group in _FIXED.items()
        if mark in text
        for fixed, shapes in group.items()
        if fixed in text
        for shape in shapes
        for key in _find_keys_of_shape(shape, fixed, text)
    ]
    if levels and may_contain_escapes(text):
        plain = unescape(text)
        if len(plain) < len(text):
            keys += _map_to_escaped(text, _find_keys(plain, levels - 1))
    return _merge_overlaps(keys)


_MARKS = ("_", "-", ":", "/", "=", "")


def _group_shapes() -> dict[str, dict[str, list[int]]]:
    """Group the shapes by fixed text, and the fixed texts by a character that is rare in ordinary text."""
    groups: dict[str, dict[str, list[int]]] = {mark: {} for mark in _MARKS}
    for index, shape in enumerate(SHAPES):
        for fixed in shape.fixed.split():
            mark = next(mark for mark in groups if mark in fixed)
            groups[mark].setdefault(fixed, []).append(index)
    return groups


_FIXED = _group_shapes()


def _find_keys_of_shape(shape: int, fixed: str, text: str) -> Iterator[Key]:
    before, rest = _compile_patterns(shape)
    width = SHAPES[shape].width
    at = text.find(fixed)
    while at >= 0:
        head = before.search(text, max(0, at - width), at)
        match = rest.match(text, at + len(fixed), at + _LONGEST) if head else None
        if head is None or match is None:
            at = text.find(fixed, at + 1)
            continue
        start = match.start(1) if rest.groups else head.start()
        end = match.end(rest.groups)
        yield Key(start, shape, end)
        at = text.find(fixed, end)


@cache
def _compile_patterns(shape: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile a shape's patterns on first use, since few texts contain its fixed text."""
    row = SHAPES[shape]
    return re.compile(f"(?:{row.before})\\Z", re.ASCII), re.compile(row.rest, re.ASCII)


def _map_to_escaped(text: str, keys: list[Key]) -> Iterator[Key]:
    """Map `keys`, found in the unescaped form of `text`, to their spans in `text`."""
    places = map_spans_to_escaped(text, ((key.start, key.end) for key in keys))
    return (Key(start, key.shape, end) for key, (start, end) in zip(keys, places, strict=True))


def _merge_overlaps(keys: list[Key]) -> list[Key]:
    merged: list[Key] = []
    for key in sorted(keys):
        if merged and key.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(key.end, merged[-1].end))
        else:
            merged.append(key)
    return merged
