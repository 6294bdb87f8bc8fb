//! Converts requests of a log to facts, with the reader of the gateway.

use super::Loaded;
use http::HeaderName;
use http::header::{COOKIE, HOST, REFERER, USER_AGENT};
use std::net::IpAddr;
use tollgate::engine::Rules;
use tollgate_logs::{Field, InputStats, ReadOptions, Record};
use tollgate_picture::axis::format_count;
use tollgate_policy::address;
use tollgate_policy::facts::{AttributeId, Facts, FactsBuffer, Unverified};
use tollgate_policy::settings::{AmbiguousPaths, AttributeSource};
use tollgate_tower::{Ambiguity, Head, Reader};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Converts lines of a log to facts.
pub(crate) struct RequestReader<'r> {
    rules: &'r Rules,
    reader: Reader,
    ambiguous_paths: AmbiguousPaths,
    /// For each attribute of the [options](ReadOptions), its header if it is one.
    headers: Vec<Option<HeaderName>>,
    /// For each attribute of the options, the attributes of the policy that it sets.
    sets: Vec<Vec<String>>,
    /// The attribute `user` if the policy uses it, and whether requests may have it too.
    user: Option<(AttributeId, bool)>,
    buffer: FactsBuffer,
}

/// The head of a request, reconstructed from its line in the log.
struct LoggedHead<'c> {
    record: Record<'c>,
    headers: &'c [Option<HeaderName>],
}

impl Head for LoggedHead<'_> {
    fn method(&self) -> &str {
        self.record.value(Field::Method)
    }

    fn path(&self) -> &str {
        match self.record.value(Field::Path) {
            "" => "/",
            path => path,
        }
    }

    fn query(&self) -> Option<&str> {
        Some(self.record.value(Field::Query)).filter(|query| !query.is_empty())
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        let field = match *name {
            HOST => Some(Field::Host),
            USER_AGENT => Some(Field::UserAgent),
            REFERER => Some(Field::Referer),
            COOKIE => Some(Field::Cookie),
            ref name if *name == X_FORWARDED_FOR => Some(Field::ForwardedFor),
            _ => None,
        };
        let value = field.map(|field| self.record.value(field)).filter(|value| !value.is_empty());
        let place = self.headers.iter().position(|known| known.as_ref() == Some(name));
        let mapped = place.and_then(|place| {
            self.record.attributes().find(|(known, _)| *known == place).map(|(_, value)| value)
        });
        mapped.or(value).map(str::as_bytes).into_iter()
    }
}

impl<'r> RequestReader<'r> {
    pub(crate) fn new(loaded: &'r Loaded, options: &ReadOptions) -> Self {
        let rules: &Rules = &loaded.rules;
        let identity = &rules.http_policy().identity;
        let header =
            |name: &String| name.strip_prefix("header.").and_then(|name| name.parse().ok());
        let sets = |name: &String| {
            let from = identity.iter().filter(|(_, source)| source_name(source) == *name);
            let from = from.map(|(attribute, _)| attribute.to_string());
            std::iter::once(name.clone()).chain(from).collect()
        };
        let is_carried = identity.iter().any(|(attribute, _)| &**attribute == "user");
        Self {
            headers: options.attributes.iter().map(header).collect(),
            sets: options.attributes.iter().map(sets).collect(),
            user: rules.policy().attribute("user").map(|id| (id, is_carried)),
            reader: Reader::default(),
            buffer: FactsBuffer::default(),
            ambiguous_paths: loaded.settings.ambiguous_paths(),
            rules,
        }
    }

    /// Reads the facts of a request, and calls `then` with them. An ambiguous request has no facts:
    /// listeners answer it with 400, and no limit counts it.
    pub(crate) fn read<T>(
        &mut self,
        record: Record<'_>,
        then: impl FnOnce(Option<&Facts<'_>>) -> T,
    ) -> T {
        let head = LoggedHead { record, headers: &self.headers };
        let peer: Option<IpAddr> = address::parse(record.value(Field::Ip)).ok();
        let mut facts = self.rules.facts(std::mem::take(&mut self.buffer));
        // Tokens of a log are not verified; `--attribute` names claims that a log has.
        let claims = |_: &str| Err(Unverified::NoKeys);
        let paths = self.ambiguous_paths;
        match self.reader.read(self.rules, &head, peer, paths, claims, &mut facts) {
            Ok(()) => {}
            Err(Ambiguity::Path(_) | _) => return then(None),
        }
        let user = record.value(Field::User);
        if let Some((id, is_carried)) = self.user
            && !user.is_empty()
            && !(is_carried && facts.get("user").is_some())
        {
            // Only `ip` and `path` can be invalid.
            let _ = facts.set_id(id, user);
        }
        for (place, value) in record.attributes() {
            if self.headers[place].is_none() {
                for name in &self.sets[place] {
                    let _ = facts.set(name, value);
                }
            }
        }
        self.rules.identify(&mut facts);
        let result = then(Some(&facts));
        self.buffer = facts.into_buffer();
        result
    }
}

/// Returns a note about ambiguous requests, if there are any.
pub(crate) fn ambiguous_note(count: u64) -> Option<String> {
    (count > 0).then(|| {
        let requests = format_count(count, "request");
        format!(
            "{requests} with a path or an identity that servers read in more than one way: answered \
             with 400, and counted by no limit (`ambiguous_paths: match-all` counts them)"
        )
    })
}

/// Returns the attributes of a policy that are not fields of a log, and the fields that the policy
/// uses.
pub(crate) fn wanted(rules: &Rules) -> (Vec<String>, Vec<Field>) {
    let http = rules.http_policy();
    let (mut attributes, mut fields) = (Vec::new(), Vec::new());
    let mut want = |name: &str| {
        if let Some(field) = field_of(name) {
            fields.push(field);
        }
        let is_field = matches!(name, "ip" | "method" | "path" | "host");
        if !is_field && !attributes.iter().any(|known| known == name) {
            attributes.push(name.to_owned());
        }
    };
    for (_, name) in rules.policy().attributes() {
        want(name);
        if let Some((_, source)) = http.identity.iter().find(|(known, _)| **known == *name) {
            want(&source_name(source));
        }
    }
    if let Some(header) = http.client.header() {
        want(&format!("header.{header}"));
    }
    // The path is checked even if no limit reads it.
    fields.extend([Field::Path, Field::Method]);
    (attributes, fields)
}

/// The log field that an attribute is read from.
fn field_of(name: &str) -> Option<Field> {
    Some(match name {
        "ip" => Field::Ip,
        "method" => Field::Method,
        "path" => Field::Path,
        "host" | "header.host" => Field::Host,
        "user" => Field::User,
        "header.user-agent" => Field::UserAgent,
        "header.referer" => Field::Referer,
        "header.x-forwarded-for" => Field::ForwardedFor,
        "header.cookie" => Field::Cookie,
        name if name.starts_with("query.") => Field::Query,
        name if name.starts_with("cookie.") => Field::Cookie,
        _ => return None,
    })
}

/// Returns the source as an attribute name.
fn source_name(source: &AttributeSource) -> String {
    match source {
        AttributeSource::Header(name) => format!("header.{}", name.to_ascii_lowercase()),
        AttributeSource::Cookie(name) => format!("cookie.{name}"),
        AttributeSource::Query(name) => format!("query.{name}"),
        AttributeSource::Jwt(name) => format!("jwt.{name}"),
    }
}

/// Whether any request of the log had this attribute of the policy.
pub(crate) fn is_in_log(
    rules: &Rules,
    name: &str,
    options: &ReadOptions,
    stats: &InputStats,
) -> bool {
    let seen = |name: &str| {
        let place = options.attributes.iter().position(|known| known == name);
        let as_attribute = place.is_some_and(|place| stats.attributes[place] > 0);
        as_attribute || field_of(name).is_some_and(|field| stats.present(field) > 0)
    };
    let identity = rules.http_policy().identity.iter().find(|(known, _)| **known == *name);
    seen(name) || identity.is_some_and(|(_, source)| seen(&source_name(source)))
}
