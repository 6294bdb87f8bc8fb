//! An answer that already tells clients about a quota: of the service behind, whose word is not to
//! be lost.
//!
//! Lists get our members after its own. Where there is room for one limit only, the tighter set
//! stands, whole: half of one and half of the other would describe neither. A set is all that
//! begins as its fields do, known here or not. The policies of the older drafts are a list beside
//! such a set, and get ours too.

use super::{RateLimitHeaders, SOURCE, header_name};
use crate::HeaderClass;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::header::{ParsedHeaders, Profile, parse};

impl RateLimitHeaders {
    /// Adds the fields to an answer that may have some of its own.
    pub fn merge(&self, headers: &mut HeaderMap) {
        if self.header_lines.is_empty() {
            return;
        }
        if !headers.keys().any(|name| Self::is_rate_limit_header(name.as_str())) {
            headers.reserve(self.header_lines.len());
            return self.write(headers);
        }
        for &profile in &self.profiles {
            // Without any of ours theirs stay.
            if self.headers_of_profile(profile).next().is_some() {
                self.merge_profile(profile, headers);
            }
        }
        headers.extend(self.values().filter(|(name, _)| *name == SOURCE));
    }

    /// Whether a field of the service behind may be one that these are merged with, whatever the
    /// profiles.
    pub fn is_rate_limit_header(name: &str) -> bool {
        HeaderClass::of(name.as_bytes()) == HeaderClass::Quota
    }

    fn merge_profile(&self, profile: Profile, headers: &mut HeaderMap) {
        let stand = self.merge_plan(profile, headers);
        if matches!(stand.values, MergeChoice::Ours) {
            remove_set(profile, stand.replaces_theirs, headers);
        }
        for name in profile.fields().iter().filter_map(|field| header_name(field)) {
            let is_policy = name == POLICY || name == X_POLICY;
            let ours = self
                .headers_of_profile(profile)
                .find(|(own, _)| *own == name)
                .map(|(_, value)| value);
            match (if is_policy { stand.policies } else { stand.values }, ours) {
                (MergeChoice::Theirs, _) | (MergeChoice::Both, None) => {}
                (MergeChoice::Ours, None) => drop(headers.remove(name)),
                (MergeChoice::Ours, Some(ours)) => drop(headers.insert(name, ours)),
                (MergeChoice::Both, Some(ours)) => append(name, &ours, headers),
            }
        }
    }

    fn headers_of_profile(
        &self,
        profile: Profile,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let names = profile.fields();
        self.values().filter(move |(name, _)| {
            names.iter().any(|own| own.eq_ignore_ascii_case(name.as_str()))
        })
    }

    /// What of both is shown in the fields of a profile.
    fn merge_plan(&self, profile: Profile, headers: &HeaderMap) -> MergePlan {
        const OURS: MergePlan = MergePlan {
            values: MergeChoice::Ours,
            policies: MergeChoice::Ours,
            replaces_theirs: true,
        };
        let lines =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        // A list with an empty line is malformed; `append` leaves the line out, so it is left out
        // here too.
        let lines = lines.filter(|(_, value)| !value.trim_ascii().is_empty());
        // Headers that cannot be parsed are of no use to a client either.
        let Ok(theirs) = parse(profile, lines) else { return OURS };
        let list = policy_header(profile);
        let joins = list.as_ref().is_some_and(|list| can_append(profile, headers, list));
        if profile == Profile::Draft11 && joins && is_named(&theirs) {
            return MergePlan {
                values: MergeChoice::Both,
                policies: MergeChoice::Both,
                replaces_theirs: false,
            };
        }
        let left = theirs.limits.iter().map(|item| item.remaining).min();
        let params = match (left, self.remaining) {
            (Some(theirs), Some(ours)) if theirs <= ours => MergeChoice::Theirs,
            (Some(_), None) => MergeChoice::Theirs,
            _ => MergeChoice::Ours,
        };
        let has_policies =
            !theirs.policies.is_empty() && list.is_some_and(|list| headers.contains_key(list));
        let policies = match left {
            // Policies that one limit's numbers come with are a list in the drafts only.
            Some(_) if has_policies && joins && is_draft(profile) => MergeChoice::Both,
            Some(_) => params,
            None if has_policies && joins => MergeChoice::Both,
            // Another draft: one list with members of both would be unreadable.
            None if has_policies => MergeChoice::Theirs,
            None => MergeChoice::Ours,
        };
        MergePlan { values: params, policies, replaces_theirs: left.is_some() }
    }
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");

/// Who is heard in the fields of a profile.
struct MergePlan {
    values: MergeChoice,
    /// In the field that lists policies.
    policies: MergeChoice,
    /// Whether there is a set of theirs, which ours would replace.
    replaces_theirs: bool,
}

#[derive(Clone, Copy)]
enum MergeChoice {
    Theirs,
    Ours,
    /// Ours after theirs.
    Both,
}

fn is_named(theirs: &ParsedHeaders) -> bool {
    theirs.limits.iter().all(|item| item.name.is_some())
        && theirs.policies.iter().all(|item| item.name.is_some())
}

fn is_draft(profile: Profile) -> bool {
    matches!(profile, Profile::Draft11 | Profile::Draft7 | Profile::Draft6)
}

/// Removes what belongs to a set of theirs, so that none of it stands beside ours. If the
/// upstream sends no `-Remaining`, its other headers, such as `X-RateLimit-Remaining-Tokens`, stay.
fn remove_set(profile: Profile, replaces: bool, headers: &mut HeaderMap) {
    const PARTS: [&str; 9] = [
        "limit",
        "remaining",
        "reset",
        "used",
        "resource",
        "reset-after",
        "bucket",
        "scope",
        "global",
    ];
    let family = match profile {
        Profile::Draft11 | Profile::Draft7 | Profile::None => return,
        Profile::Draft6 | Profile::RateLimit => "ratelimit-",
        _ => "x-ratelimit-",
    };
    // `RateLimit-Policy` is merged separately, if any of the profiles sends it.
    let list = match profile {
        Profile::RateLimit => Some(POLICY),
        _ => policy_header(profile),
    };
    let goes = |name: &&HeaderName| {
        let part = name.as_str().strip_prefix(family);
        part.is_some_and(|part| replaces || PARTS.contains(&part)) && list.as_ref() != Some(name)
    };
    let theirs: Vec<HeaderName> = headers.keys().filter(goes).cloned().collect();
    for name in theirs {
        headers.remove(name);
    }
}

/// Where a profile lists policies.
fn policy_header(profile: Profile) -> Option<HeaderName> {
    [POLICY, X_POLICY]
        .into_iter()
        .find(|list| profile.fields().iter().any(|field| list.as_str().eq_ignore_ascii_case(field)))
}

/// Whether members of ours fit behind theirs: before draft-08 they are numbers, since then they
/// have names in front.
fn can_append(profile: Profile, headers: &HeaderMap, list: &HeaderName) -> bool {
    let is_number = |line: &HeaderValue| line.as_bytes().first().is_some_and(u8::is_ascii_digit);
    let is_named = profile == Profile::Draft11;
    headers.get_all(list).iter().all(|line| is_number(line) != is_named)
}

/// In one line, since not every client looks for a second.
fn append(name: HeaderName, ours: &HeaderValue, headers: &mut HeaderMap) {
    let mut all = Vec::new();
    // An empty line has no member.
    let lines = headers.get_all(&name).iter().map(|line| line.as_bytes().trim_ascii());
    for line in lines.filter(|line| !line.is_empty()) {
        all.extend_from_slice(line);
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(ours.as_bytes());
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(all)) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests;
