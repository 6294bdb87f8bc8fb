//! `identity`, `jwt` and `tiers`: who a request is from.

use super::fields::{each, exactly_one, required, some_items, text};
use crate::diagnostic::{Report, codes};
use crate::grammar::{self, Problem};
use crate::raw::{self, File, Text};
use crate::settings::{Jwt, JwtAlgorithm, Source, Store, TierSource, Tiers};
use crate::suggest::quoted;

pub(super) fn identity(file: &File, report: &mut Report) -> Vec<(Box<str>, Source)> {
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
        if matches!(source, Some(Source::Jwt(_)))
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

fn source(text: &str) -> Result<Source, Problem> {
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
        "header" => grammar::header_name(name).map(Source::Header),
        "cookie" => Ok(Source::Cookie(name.into())),
        "query" => Ok(Source::Query(name.into())),
        "jwt" => Ok(Source::Jwt(name.into())),
        _ => Err(bad("write header.X, cookie.X, query.X or jwt.CLAIM".to_owned())),
    }
}

/// Without `algorithms`: the three that need no shared secret.
pub(super) fn jwt(file: &File, report: &mut Report) -> Option<Jwt> {
    let field = file.jwt.as_ref()?;
    let keys = required(&field.keys, "keys", (field.at, &field.unreadable), report);
    let algorithms = match &field.algorithms {
        Some(list) => {
            some_items(&list.0, "algorithms", list.at, report);
            each(&list.0, report, algorithm)
        }
        None => vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256, JwtAlgorithm::EdDsa],
    };
    Some(Jwt {
        keys: keys.unwrap_or_default(),
        algorithms,
        issuer: text(&field.issuer, report),
        audience: text(&field.audience, report),
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

pub(super) fn tiers(file: &File, store: &Store, report: &mut Report) -> Tiers {
    let Some(field) = &file.tiers else { return Tiers::default() };
    let given = [
        ("from", field.from.is_some()),
        ("file", field.file.is_some()),
        ("redis", field.redis.is_some()),
    ];
    if given.iter().filter(|(_, given)| *given).count() > 1 {
        exactly_one(&given, field.at, report);
    }
    let store_known = !file.unreadable.contains(&"store");
    let source = None
        .or_else(|| {
            let from = field.from.as_ref()?;
            report.accept(from.at, grammar::attribute(from)).map(TierSource::Attribute)
        })
        .or_else(|| {
            let file = field.file.as_ref()?;
            required(&file.path, "path", (file.at, &file.unreadable), report)
                .map(|path| TierSource::File { path })
        })
        .or_else(|| {
            field
                .redis
                .as_ref()
                .and_then(|redis| redis_tiers(redis, store_known.then_some(store), report))
        });
    Tiers { default: text(&field.default, report), source }
}

fn redis_tiers(
    field: &raw::At<raw::TiersRedis>,
    store: Option<&Store>,
    report: &mut Report,
) -> Option<TierSource> {
    let hash = required(&field.hash, "hash", (field.at, &field.unreadable), report);
    let by = required(&field.by, "by", (field.at, &field.unreadable), report);
    let by = by.and_then(|by| {
        let at = field.by.as_ref().map_or(field.at, |by| by.at);
        report.accept(at, grammar::attribute(&by))
    });
    if matches!(store, Some(Store::Memory { .. })) {
        let message = "`tiers.redis` needs the redis store, and `store` is memory";
        let help = "add `store: {redis: {url: ...}}`, or use `tiers.file`";
        report.error(codes::NEEDS_REDIS, field.name_at, message, help);
    }
    hash.zip(by).map(|(hash, by)| TierSource::Redis { hash, by })
}
