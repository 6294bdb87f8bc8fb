//! All error codes. Each has a fixture in `tests/fixtures/bad` and a row in `docs/errors.md`; tests
//! fail when either is missing. A retired code is never reused.

/// A kind of error or warning.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// The code, such as `TG001`.
    pub code: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// Why the file is refused, and what to do.
    pub explanation: &'static str,
}

impl Code {
    /// Creates a code; lints define theirs with it.
    pub const fn new(code: &'static str, title: &'static str, explanation: &'static str) -> Self {
        Self { code, title, explanation }
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $explanation:literal)*) => {
        $(#[doc = concat!($code, ": ", $title, ".")]
        pub const $name: &Code = &Code::new($code, $title, $explanation);)*

        /// All codes, in order.
        pub const ALL: &[&Code] = &[$($name),*];
    };
}

codes! {
    SYNTAX "TG001" "not valid YAML"
        "Nothing after that place was read."
    UNKNOWN_FIELD "TG002" "unknown field"
        "An ignored field would change nothing, and nobody would notice."
    DUPLICATE_FIELD "TG003" "field given twice"
        "One of the two values would be lost."
    WRONG_TYPE "TG004" "wrong type of value"
        "The field takes another type: a map, a list, a text, a number, or true or false."
    UNKNOWN_VALUE "TG005" "unknown value"
        "The field takes one of a few words; the message lists them."
    MISSING_FIELD "TG006" "required field missing"
        "The entry has no meaning without this field."
    TOO_BIG "TG007" "file too large, too deep or too much repeated"
        "At most 16 MiB, 32 levels of nesting (160 in files of envoyproxy/ratelimit, which are 64 descriptors), and a bounded number of nodes, anchors and aliases."
    NOT_UTF8 "TG008" "not UTF-8"
        "The file is text in UTF-8."
    SEVERAL_DOCUMENTS "TG009" "more than one document"
        "A file holds one YAML document."
    BAD_RATE "TG010" "malformed rate"
        "A rate is N/unit or N/k unit, such as 100/min or 5/10s, or `unlimited`."
    BAD_DURATION "TG011" "malformed duration"
        "A duration is a whole number and a unit, such as 500ms, 30s or 1h."
    BAD_SIZE "TG012" "malformed size"
        "A size is a whole number of bytes with an optional unit, such as 64MiB."
    BAD_NUMBER "TG013" "not a whole number"
        "The field counts something: no sign, no fraction."
    OUT_OF_RANGE "TG014" "value out of range"
        "The message names the range."
    BAD_NETWORK "TG015" "malformed address or network"
        "An IP address such as 10.0.0.1 or 2001:db8::1, or a network such as 10.0.0.0/8."
    BAD_LISTEN "TG016" "malformed listen address"
        "An address or a name, and a port, such as 127.0.0.1:8081, [::1]:8081 or localhost:8081."
    BAD_URL "TG017" "malformed URL or node"
        "An upstream is http:// or https:// with a host; a Redis URL is redis://, rediss:// or unix://; a node is host:port."
    BAD_PATTERN "TG018" "malformed pattern"
        "The pattern could never match anything."
    BAD_ATTRIBUTE "TG019" "malformed attribute name"
        "1 to 128 printable ASCII characters; after header. follows the name of a header."
    BAD_NAME "TG020" "malformed name"
        "1 to 64 printable ASCII characters without `/`, for headers, metrics and URLs."
    DUPLICATE_NAME "TG021" "one name twice"
        "Names identify state, metrics and rows of responses."
    KEY_AND_KEYS "TG022" "`key` together with `keys`"
        "`key` makes one limit, `keys` one for each of its entries: write one of them."
    BAD_KEY "TG023" "malformed key"
        "Each key in `keys` and `first_of` names at least one attribute, no key names one twice, and `first_of` is only allowed in `key`."
    COUNT_TOO_LARGE "TG024" "number too large to be exact"
        "Rates, bursts, queues and slots are exact up to 4294967295."
    PERIOD_OUT_OF_RANGE "TG025" "period out of range"
        "Periods from 1ms to 366d are exact."
    HORIZON_TOO_FAR "TG026" "bucket takes too long to refill"
        "(burst + queue) x period / N is at most 100 years."
    NOT_FOR_ALGORITHM "TG027" "field does not belong to the algorithm"
        "`burst` is for token-bucket, gcra and leaky-bucket, `queue` for leaky-bucket, `ttl` for concurrency, `time_zone` for fixed-window."
    ZERO_BURST "TG028" "burst of zero"
        "Such a bucket admits nothing; write a rate of 0/... instead."
    RATE_SHAPE "TG029" "rate does not fit the algorithm"
        "`concurrency` counts slots and takes a bare number; every other algorithm needs a period. Months, and days and weeks of a time zone, are for fixed-window."
    BAD_PENALTY "TG030" "contradictory penalty"
        "A block grows: `factor` is between 1 and 1000, `max` at least `block`, `after` at least 1."
    BAD_FACTOR "TG031" "malformed factor"
        "A factor is a number with at most three decimal places, such as 2 or 1.5."
    LEASED_UNAVAILABLE "TG032" "limit cannot be leased"
        "Not for sliding-log, concurrency, a queue, a leaky-bucket with burst 1 and windows of the calendar."
    QUIET_TOO_SHORT "TG033" "grace period too short"
        "`quiet` is at least lifetime + 1.5 x probe + deadline, or a node could still spend what a restarted store has forgotten."
    EXACTLY_ONE "TG034" "alternatives mixed, or none chosen"
        "Exactly one of the named fields is needed."
    EMPTY_LIST "TG035" "empty list"
        "The list needs an entry."
    NESTED_NOT "TG036" "`not` inside `not`"
        "`not` is a map of conditions, or a list of such maps."
    BAD_CANDIDATE "TG037" "candidate that cannot be counted"
        "A candidate has a rate and changes a field of its limit, which has no slots, debt or leases."
    BAD_TIME_ZONE "TG038" "unknown time zone"
        "A time zone has a name of the IANA's database, such as Europe/Berlin or UTC."
    LOCAL_RATE_TOO_HIGH "TG039" "local rate above the limit's"
        "While the store fails, one node would admit more than all nodes do otherwise."
    SAME_ADDRESS "TG040" "two listeners on one address"
        "Only one of them could be bound."
    NO_UPSTREAM "TG041" "gateway without upstream"
        "The gateway needs servers to send requests to."
    PROFILES_COLLIDE "TG042" "two header profiles write one header"
        "A client would see one header twice, with different meanings."
    REPEATED "TG043" "named twice"
        "The second has no effect: one of them is probably a mistake."
    JWT_MISSING "TG044" "jwt claim without `jwt`"
        "A claim counts only if its token is verified, which needs keys."
    BAD_SOURCE "TG045" "malformed source of an attribute"
        "An attribute comes from header.X, cookie.X, query.X or jwt.CLAIM."
    JWT_NONE "TG046" "unsigned tokens"
        "With the algorithm `none` anybody could write a token."
    RESERVED_ATTRIBUTE "TG047" "attribute is built in"
        "`ip`, `method`, `path`, `host`, `domain` and everything under header., cookie., query., jwt. and descriptor. come from the request itself."
    BAD_SECRET "TG048" "malformed secret"
        "A secret is a text, or {env: NAME} with the name of an environment variable; it is not empty."
    TLS_MISMATCH "TG049" "contradictory TLS settings"
        "`tls` needs rediss:// in a URL, `cert` and `key` come together, and `client_names` needs `client_ca`."
    GIVEN_TWICE "TG050" "credentials given twice"
        "The URL carries a user name or password, and so does the field."
    NEEDS_REDIS "TG051" "needs the redis store"
        "The tier of a user is looked up in the Redis of `store`."
    NOT_A_LINT "TG052" "not a lint"
        "`lint.allow` takes codes of warnings, TG101 and above; errors cannot be allowed."
    BAD_STATUS "TG060" "malformed status of an answer"
        "`on_response` names statuses such as 401 or classes such as 4xx, each under one of its two fields."
    BAD_TEMPLATE "TG061" "malformed refusal"
        "A refusal's body replaces {status}, {retry_after} and {limits}, and has a media type."
    RATELIMIT_FILE "TG070" "unusable ratelimit file"
        "A file that `envoy.configs` names; the message is envoyproxy/ratelimit's own. A pattern that matches no file is a warning."
    NAMED_FILE "TG071" "unusable file"
        "A file with keys of tokens, tiers or certificates is malformed. One that cannot be read is a warning for `check` and an error for `serve`; in `envoy.configs` it is an error for both."
    OUT_OF_DATE "TG072" "certificate out of date"
        "A warning: clients or servers would refuse this certificate."
    UNKNOWN_TIER "TG080" "tier that no limit has"
        "No limit names this tier of the map, so it would change nothing."
    BAD_HASH "TG081" "malformed hash"
        "A hash is `sha256:` and 64 hexadecimal digits, as `tollgate hash` prints it."
    TWO_DEFAULTS "TG085" "two default classes"
        "Only one class can take the requests that no class matches."
    UNKNOWN_CLASS "TG086" "unknown class"
        "`reserve` names classes that `classes` has."
    BAD_RESERVE "TG087" "impossible reserve"
        "Reserves are at most 100 % together; the least important class has none."
    BAD_PERCENT "TG088" "malformed percentage"
        "A share is a whole number from 0 to 100 and `%`, such as 20%."
    BAD_SHARE "TG090" "malformed share"
        "A share is a percentage above 0% and up to 100%, with at most four decimal places, such as 1% or 0.05%."
    TOO_MANY_ERRORS "TG099" "too many errors"
        "After a hundred errors the rest are only counted."
}
