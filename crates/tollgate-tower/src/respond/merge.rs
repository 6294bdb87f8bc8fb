//! Merges rate limit headers into a response that already has some from the upstream.
//!
//! In headers that are lists, our members follow those of the upstream. Headers with room for one
//! limit show the tighter one. The whole set is replaced, since a mix would describe neither limit.
//! A set is every header with the prefix of its profile, including unknown ones. In the older
//! drafts the policy header is a list beside such a set, so it gets our members too.

use super::{RateLimitHeaders, SOURCE, header_name};
use crate::HeaderClass;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::header::{ParsedHeaders, Profile, parse};

impl RateLimitHeaders {
    /// Adds the headers to a response that may already have rate limit headers.
    pub fn merge(&self, headers: &mut HeaderMap) {
        if self.header_lines.is_empty() {
            return;
        }
        if !headers.keys().any(|name| Self::is_rate_limit_header(name.as_str())) {
            headers.reserve(self.header_lines.len());
            return self.write(headers);
        }
        for &profile in &self.profiles {
            // Without headers of ours in this profile, the upstream's headers stay.
            if self.headers_of_profile(profile).next().is_some() {
                self.merge_profile(profile, headers);
            }
        }
        headers.extend(self.values().filter(|(name, _)| *name == SOURCE));
    }

    /// Whether a header of the upstream may have to be merged with ours, under any profile.
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

    /// Chooses, for the headers of one profile, between the upstream's values and ours.
    fn merge_plan(&self, profile: Profile, headers: &HeaderMap) -> MergePlan {
        const OURS: MergePlan = MergePlan {
            values: MergeChoice::Ours,
            policies: MergeChoice::Ours,
            replaces_theirs: true,
        };
        let lines =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        // An empty line makes a list malformed. `append` skips such lines, so they are skipped here
        // too.
        let lines = lines.filter(|(_, value)| !value.trim_ascii().is_empty());
        // A client could not parse these headers either.
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
            // Only in the drafts is the policy header of a single limit a list.
            Some(_) if has_policies && joins && is_draft(profile) => MergeChoice::Both,
            Some(_) => params,
            None if has_policies && joins => MergeChoice::Both,
            // The upstream's policies are of another draft. No client could parse a list of both.
            None if has_policies => MergeChoice::Theirs,
            None => MergeChoice::Ours,
        };
        MergePlan { values: params, policies, replaces_theirs: left.is_some() }
    }
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");

/// Whose values the headers of one profile show.
struct MergePlan {
    values: MergeChoice,
    /// For the header that lists policies.
    policies: MergeChoice,
    /// Whether the upstream has a set of headers that ours would replace.
    replaces_theirs: bool,
}

#[derive(Clone, Copy)]
enum MergeChoice {
    Theirs,
    Ours,
    /// Our values after those of the upstream.
    Both,
}

fn is_named(theirs: &ParsedHeaders) -> bool {
    theirs.limits.iter().all(|item| item.name.is_some())
        && theirs.policies.iter().all(|item| item.name.is_some())
}

fn is_draft(profile: Profile) -> bool {
    matches!(profile, Profile::Draft11 | Profile::Draft7 | Profile::Draft6)
}

/// Removes the upstream's set, so that none of its headers is left beside ours. If the upstream
/// sends no `-Remaining`, its other headers, such as `X-RateLimit-Remaining-Tokens`, stay.
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

/// The header in which a profile lists policies.
fn policy_header(profile: Profile) -> Option<HeaderName> {
    [POLICY, X_POLICY]
        .into_iter()
        .find(|list| profile.fields().iter().any(|field| list.as_str().eq_ignore_ascii_case(field)))
}

/// Whether our members can follow those of the upstream. Members start with a number before
/// draft-08, and with a name since then.
fn can_append(profile: Profile, headers: &HeaderMap, list: &HeaderName) -> bool {
    let is_number = |line: &HeaderValue| line.as_bytes().first().is_some_and(u8::is_ascii_digit);
    let is_named = profile == Profile::Draft11;
    headers.get_all(list).iter().all(|line| is_number(line) != is_named)
}

/// Appends to one line, since some clients read only the first.
fn append(name: HeaderName, ours: &HeaderValue, headers: &mut HeaderMap) {
    let mut all = Vec::new();
    // An empty line has no members.
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
