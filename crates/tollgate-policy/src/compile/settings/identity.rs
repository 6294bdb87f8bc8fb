//! `identity`, `jwt` and `tiers`: who a request is from.

use crate::compile::fields::{
    duration_us, exactly_one, map_items, missing, not_empty, require_items, required, text,
};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar::{self, Problem};
use crate::identity::{TierMap, TierRules};
use crate::raw::{self, At, File, Text, TiersFile, TiersRedis};
use crate::settings::{AttributeSource, Jwt, JwtAlgorithm, Store, TierSource, Tiers};

pub(crate) fn identity(file: &File, report: &mut Report) -> Vec<(Box<str>, AttributeSource)> {
    let Some(identity) = &file.identity else { return Vec::new() };
    let mut sources = Vec::new();
    for (name, from) in &identity.0 {
        let attribute = report.accept(name.at, grammar::attribute(name));
        if grammar::is_built_in(name) {
            let message = format!("{} comes from the request itself", quoted(name));
            let help = "choose another name, such as `user`";
            report.error(codes::RESERVED_ATTRIBUTE, name.at, message, help);
        }
        let source = report.accept(from.at, source(from));
        if matches!(source, Some(AttributeSource::Jwt(_)))
            && file.jwt.is_none()
            && !file.unreadable.contains(&"jwt")
        {
            let message = format!("{} needs `jwt`", quoted(from));
            let help = "add `jwt: {keys: jwks.json, algorithms: [ES256]}`";
            report.error(codes::JWT_MISSING, from.at, message, help);
        }
        sources.extend(attribute.zip(source));
    }
    sources
}

fn source(text: &str) -> Result<AttributeSource, Problem> {
    let bad = |help: String| {
        let message = format!("{} is not a source", quoted(text));
        Problem::new(codes::BAD_SOURCE, message, help)
    };
    let (kind, name) = text.split_once('.').unwrap_or((text, ""));
    let printable =
        !name.is_empty() && name.len() <= 128 && name.bytes().all(|b| b.is_ascii_graphic());
    match kind {
        "header" | "cookie" | "query" | "jwt" if !printable => Err(bad(format!(
            "write `{kind}.` and a name of printable ASCII, such as `{kind}.user`"
        ))),
        "header" => grammar::header_name(name).map(AttributeSource::Header),
        "cookie" => Ok(AttributeSource::Cookie(name.into())),
        "query" => Ok(AttributeSource::Query(name.into())),
        "jwt" => Ok(AttributeSource::Jwt(name.into())),
        _ => Err(bad("write header.X, cookie.X, query.X or jwt.CLAIM".to_owned())),
    }
}

/// The default of `jwt.leeway`: the clock difference that is tolerated.
const LEEWAY_US: u64 = 5_000_000;
/// The largest `leeway`. A larger one would accept tokens that expired long ago.
const LEEWAY_US_MAX: u64 = 600_000_000;

/// Compiles `jwt`. Without `algorithms`, the three algorithms that need no shared secret are
/// accepted.
pub(crate) fn jwt(file: &File, report: &mut Report) -> Option<Jwt> {
    let field = file.jwt.as_ref()?;
    let keys = required(&field.keys, "keys", (field.at, &field.unreadable), report);
    let algorithms = match &field.algorithms {
        Some(list) => {
            require_items(&list.0, "algorithms", list.at, report);
            map_items(&list.0, report, algorithm)
        }
        None => vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256, JwtAlgorithm::EdDsa],
    };
    Some(Jwt {
        keys: keys.unwrap_or_default(),
        algorithms,
        issuer: text(&field.issuer, report),
        audience: text(&field.audience, report),
        leeway_us: duration_us(&field.leeway, LEEWAY_US, (0, LEEWAY_US_MAX), report),
    })
}

fn algorithm(text: &Text) -> Result<JwtAlgorithm, Problem> {
    let help = "write `HS256`, `RS256`, `ES256` or `EdDSA`";
    match &**text {
        "HS256" => Ok(JwtAlgorithm::Hs256),
        "RS256" => Ok(JwtAlgorithm::Rs256),
        "ES256" => Ok(JwtAlgorithm::Es256),
        "EdDSA" => Ok(JwtAlgorithm::EdDsa),
        none if none.eq_ignore_ascii_case("none") => {
            let message = "the algorithm `none` accepts tokens that nobody signed";
            Err(Problem::new(codes::JWT_NONE, message, help))
        }
        other => {
            let known = ["HS256", "RS256", "ES256", "EdDSA"];
            let near = known.into_iter().find(|known| known.eq_ignore_ascii_case(other));
            let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let message = format!("unknown algorithm {}{meant}", quoted(other));
            Err(Problem::new(codes::UNKNOWN_VALUE, message, help))
        }
    }
}

pub(crate) fn tiers(file: &File, store: &Store, ipv6_prefix: u8, report: &mut Report) -> Tiers {
    let Some(field) = &file.tiers else { return Tiers::default() };
    let default = text(&field.default, report);
    let given = [
        ("from", field.from.is_some()),
        ("map", field.map.is_some()),
        ("file", field.file.is_some()),
        ("redis", field.redis.is_some()),
    ];
    if given.iter().filter(|(_, given)| *given).count() > 1 {
        exactly_one(&given, field.at, report);
        return Tiers { default, source: None };
    }
    let by = field.by.as_ref();
    let by = by.and_then(|by| report.accept(by.at, grammar::attribute(by)));
    unused_by(field, report);
    let source = if let Some(from) = &field.from {
        report.accept(from.at, grammar::attribute(from)).map(TierSource::Attribute)
    } else if let Some(map) = &field.map {
        let rules = TierRules::new(file, None, ipv6_prefix, default.clone());
        if field.by.is_none() {
            missing("by", (field.at, &field.unreadable), report);
        }
        // The map's entries are checked even if `by` is missing.
        let map = TierMap::new(by.clone().unwrap_or_default(), map, &rules, report);
        by.map(|_| TierSource::Map(map))
    } else if let Some(file) = &field.file {
        let path = match &file.value {
            TiersFile::Path(path) => report.accept(file.at, not_empty(path)),
            TiersFile::Form(form) => {
                required(&form.path, "path", (file.at, &form.unreadable), report)
            }
        };
        path.map(|path| TierSource::File { path, by })
    } else if let Some(redis) = &field.redis {
        let store_known = !file.unreadable.contains(&"store");
        redis_tiers(field, redis, by, store_known.then_some(store), report)
    } else {
        None
    };
    Tiers { default, source }
}

/// Reports a `by` that is not used: beside `from`, or without `map`, `file` and `redis`.
fn unused_by(field: &At<raw::Tiers>, report: &mut Report) {
    let Some(by) = &field.by else { return };
    let looks_up = field.map.is_some() || field.file.is_some() || field.redis.is_some();
    let is_unread = ["map", "file", "redis"].iter().any(|name| field.unreadable.contains(name));
    if field.from.is_some() {
        let message = "`by` has no use with `from`, which names the tier itself";
        report.error(codes::EXACTLY_ONE, by.name_at, message, "remove one of the two");
    } else if !looks_up && !is_unread {
        let message = "`by` says who is looked up, and nothing says where";
        let help = "add `map: {...}`, `file: tiers.yaml` or `redis: HASH` beside it";
        report.error(codes::EXACTLY_ONE, by.name_at, message, help);
    }
}

fn redis_tiers(
    tiers: &At<raw::Tiers>,
    field: &At<TiersRedis>,
    by: Option<Box<str>>,
    store: Option<&Store>,
    report: &mut Report,
) -> Option<TierSource> {
    let (hash, by) = match &field.value {
        TiersRedis::Hash(hash) => {
            if tiers.by.is_none() {
                missing("by", (tiers.at, &tiers.unreadable), report);
            }
            (report.accept(field.at, not_empty(hash)), by)
        }
        TiersRedis::Form(form) => {
            let hash = required(&form.hash, "hash", (field.at, &form.unreadable), report);
            let by = match (&form.by, by) {
                (Some(inner), None) => report.accept(inner.at, grammar::attribute(inner)),
                (Some(inner), Some(by)) => {
                    let help = "keep one of the two";
                    report.error(codes::REPEATED, inner.name_at, "`by` is given twice", help);
                    Some(by)
                }
                (None, by) => {
                    if tiers.by.is_none() {
                        missing("by", (field.at, &form.unreadable), report);
                    }
                    by
                }
            };
            (hash, by)
        }
    };
    if matches!(store, Some(Store::Memory { .. })) {
        let message = "`tiers.redis` needs the redis store, and `store` is memory";
        let help = "add `store: {redis: {url: ...}}`, or use `tiers.file`";
        report.error(codes::NEEDS_REDIS, field.name_at, message, help);
    }
    hash.zip(by).map(|(hash, by)| TierSource::Redis { hash, by })
}
