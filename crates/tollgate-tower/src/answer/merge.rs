//! An answer that already tells clients about a quota: of the service behind, whose word is not to be lost.
//!
//! Lists get our members after its own. Where there is room for one limit only, the tighter set stands, whole: half of one and
//! half of the other would describe neither.

use super::{SOURCE, Shown, field_name};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::header::{Profile, parse};

impl Shown {
    /// Adds the fields to an answer that may have some of its own.
    pub fn merge(&self, headers: &mut HeaderMap) {
        if !headers.keys().any(|name| Self::may_meet(name.as_str())) {
            headers.reserve(self.fields.len());
            return self.write(headers);
        }
        for &profile in &self.profiles {
            let theirs = |field: &&'static str| {
                field_name(field).is_some_and(|name| headers.contains_key(name))
            };
            if !profile.fields().iter().any(theirs) {
                self.of(profile).for_each(|(name, value)| {
                    headers.insert(name, value);
                });
                continue;
            }
            match Theirs::read(profile, headers) {
                Theirs::List => self.append(profile, headers),
                Theirs::One(remaining) if self.remaining.is_none_or(|ours| remaining <= ours) => {}
                Theirs::One(_) | Theirs::Senseless => self.replace(profile, headers),
            }
        }
        self.write_source(headers);
    }

    /// Whether a field of the service behind may be one that these are merged with, whatever the profiles.
    pub fn may_meet(name: &str) -> bool {
        let begins = |prefix: &str| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        begins("ratelimit") || begins("x-ratelimit") || begins(SOURCE.as_str())
    }

    fn of(&self, profile: Profile) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let names = profile.fields();
        self.values().filter(move |(name, _)| {
            names.iter().any(|own| own.eq_ignore_ascii_case(name.as_str()))
        })
    }

    fn append(&self, profile: Profile, headers: &mut HeaderMap) {
        for (name, ours) in self.of(profile) {
            // In one line, since not every client looks for a second.
            let mut all = Vec::new();
            for line in headers.get_all(&name) {
                all.extend_from_slice(line.as_bytes());
                all.extend_from_slice(b", ");
            }
            all.extend_from_slice(ours.as_bytes());
            if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(all)) {
                headers.insert(name, value);
            }
        }
    }

    /// Ours in place of theirs; without any of ours theirs stay.
    fn replace(&self, profile: Profile, headers: &mut HeaderMap) {
        if self.of(profile).next().is_none() {
            return;
        }
        for name in profile.fields().iter().filter_map(|field| field_name(field)) {
            headers.remove(name);
        }
        for (name, value) in self.of(profile) {
            headers.insert(name, value);
        }
    }
}

/// What the service behind says in the fields of a profile.
enum Theirs {
    /// Named members, to which more can be added.
    List,
    /// One limit with so much left.
    One(u64),
    /// Nothing that a client could use either.
    Senseless,
}

impl Theirs {
    fn read(profile: Profile, headers: &HeaderMap) -> Self {
        let lines =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let Ok(parsed) = parse(profile, lines) else { return Self::Senseless };
        let named = parsed.limits.iter().all(|item| item.name.is_some())
            && parsed.policies.iter().all(|item| item.name.is_some());
        if profile == Profile::Draft11 && named {
            return Self::List;
        }
        match parsed.limits.iter().map(|item| item.remaining).min() {
            Some(remaining) => Self::One(remaining),
            None => Self::Senseless,
        }
    }
}
