//! Request heads to facts: attributes, and what makes a request ambiguous.
//!
//! The reader looks only for attributes that the policy mentions. It copies a value only if the
//! head does not have it in one piece: repeated headers, escapes in a query, claims.
//!
//! | attribute | from |
//! | --- | --- |
//! | `ip` | the peer, or the address that trusted proxies report |
//! | `method`, `path` | the request line, which the upstream gets unchanged |
//! | `host` | the authority, else `Host`; without port and final dot |
//! | `header.x` | the value of `x`; invalid UTF-8 is replaced, never dropped |
//! | `cookie.x`, `query.x` | the value of that name, its escapes decoded |
//! | `jwt.x` | a claim of the verified bearer token |
//! | others | as `identity` says |
//!
//! A request that servers could read in more than one way is an [`Ambiguity`].
//!
//! The reader ignores `Connection`, so a client cannot hide a header by listing it there.

mod ambiguity;
mod cookie;
mod lookalike;
mod overrides;
mod query;
#[cfg(test)]
mod tests;

use crate::token::{self, Claims};
use arc_swap::ArcSwap;
use http::header::{AUTHORIZATION, COOKIE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use tollgate::engine::Rules;
use tollgate_policy::address::unmap;
use tollgate_policy::facts::{AttributeId, Facts, Unverified, canonical_host};
use tollgate_policy::settings::{AmbiguousPaths, AttributeSource};

pub use ambiguity::Ambiguity;
use ambiguity::Multiplicity;
pub use overrides::Override;

/// The head that facts are read from. White space around a header value is ignored, in HTTP/2 too.
pub trait Head {
    /// The method, as sent.
    fn method(&self) -> &str;

    /// The target's path.
    fn path(&self) -> &str;

    /// The query, without the question mark.
    fn query(&self) -> Option<&str>;

    /// The host of the target, if it has one.
    fn host(&self) -> Option<&str>;

    /// The values of all lines of a header, in order.
    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]>;
}

impl Head for Parts {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    fn host(&self) -> Option<&str> {
        self.uri.host()
    }

    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.headers.get_all(name).iter().map(|value| value.as_bytes())
    }
}

/// Reads the facts of a request, as the rules in force say.
#[derive(Debug)]
pub struct Reader {
    plan: ArcSwap<ReadPlan>,
}

/// The attributes to read, for one generation of rules.
#[derive(Debug, Default)]
struct ReadPlan {
    generation: Option<u64>,
    steps: Box<[ReadStep]>,
    /// The headers that attributes are read from.
    headers: Box<[HeaderName]>,
    address: Option<HeaderName>,
    has_claims: bool,
    has_path: bool,
    /// Whether the class of a request depends on who sent it.
    reads_peer: bool,
}

#[derive(Debug)]
struct ReadStep {
    id: AttributeId,
    multiplicity: Multiplicity,
    from: AttributeOrigin,
}

#[derive(Debug)]
enum AttributeOrigin {
    Address,
    Method,
    Path,
    Host,
    Header(HeaderName),
    Cookie(Box<str>),
    Query(Box<str>),
    /// A claim of the request's token.
    Claim(Box<str>),
}

impl Default for Reader {
    fn default() -> Self {
        Self { plan: ArcSwap::from_pointee(ReadPlan::default()) }
    }
}

impl Reader {
    /// Fills the empty facts of a request, from its head and its peer's address. `claims` verifies
    /// its token.
    ///
    /// # Errors
    ///
    /// If servers could read the request in more than one way.
    pub fn read<'a>(
        &self,
        rules: &'a Rules,
        head: &'a impl Head,
        peer: Option<IpAddr>,
        ambiguous_paths: AmbiguousPaths,
        claims: impl FnOnce(&str) -> Result<Claims, Unverified>,
        facts: &mut Facts<'a>,
    ) -> Result<(), Ambiguity> {
        let plan = self.plan(rules);
        facts.set_ambiguous_paths(ambiguous_paths);
        if plan.reads_peer
            && peer.is_some_and(|peer| rules.http_policy().client.is_trusted(unmap(peer)))
        {
            facts.set_peer_trusted();
        }
        if !plan.has_path {
            ambiguity::set_path(facts, None, head.path())?;
        }
        let claims = if plan.has_claims {
            token::bearer(head).and_then(|token| token.map(claims).transpose())
        } else {
            Ok(None)
        };
        for step in &plan.steps {
            match &step.from {
                AttributeOrigin::Address => {
                    if let Some(peer) = peer {
                        plan.set_client(rules, head, peer, facts);
                    }
                }
                // `method` takes any value.
                AttributeOrigin::Method => drop(facts.set_id(step.id, head.method())),
                AttributeOrigin::Claim(name) => set_claim(facts, step.id, &claims, name),
                _ => step.read(head, facts)?,
            }
        }
        Ok(())
    }

    /// The client's address, as far as trusted proxies report it.
    pub fn client(&self, rules: &Rules, head: &impl Head, peer: IpAddr) -> IpAddr {
        self.plan(rules).client(rules, head, peer)
    }

    /// Whether an attribute is read from this header. `Connection` must not remove such a header.
    pub fn reads(&self, rules: &Rules, name: &HeaderName) -> bool {
        self.plan(rules).headers.contains(name)
    }

    /// Removes headers that a service could confuse with a header that is read here, such as
    /// `X_User_Id` with `X-User-Id`.
    pub fn remove_aliases(&self, rules: &Rules, headers: &mut HeaderMap) {
        while let Some(name) = self.alias(rules, headers).cloned() {
            headers.remove(name);
        }
    }

    /// Whether a service could confuse this header with one that is read here.
    pub fn is_alias(&self, rules: &Rules, name: &HeaderName) -> bool {
        lookalike::is_suspicious(name) && self.plan(rules).is_alias(name)
    }

    /// The first such header, for callers that cannot remove it.
    pub fn alias<'h>(&self, rules: &Rules, headers: &'h HeaderMap) -> Option<&'h HeaderName> {
        if !headers.keys().any(lookalike::is_suspicious) {
            return None;
        }
        let plan = self.plan(rules);
        headers.keys().find(|name| plan.is_alias(name))
    }

    /// The plan for these rules. Two threads may build it at once, which does no harm.
    #[inline]
    fn plan(&self, rules: &Rules) -> arc_swap::Guard<Arc<ReadPlan>> {
        let plan = self.plan.load();
        if plan.generation == Some(rules.generation()) {
            return plan;
        }
        self.plan.store(Arc::new(ReadPlan::new(rules)));
        self.plan.load()
    }
}

impl ReadPlan {
    fn new(rules: &Rules) -> Self {
        let http = rules.http_policy();
        let (mut steps, mut headers) = (Vec::new(), Vec::new());
        for (id, name) in rules.policy().attributes() {
            let identity = http.identity.iter().find(|(known, _)| **known == *name);
            let from = match identity {
                Some((_, source)) => AttributeOrigin::from_source(source),
                None => AttributeOrigin::from_name(name),
            };
            let Some(from) = from else { continue };
            match &from {
                AttributeOrigin::Header(name) => headers.push(name.clone()),
                AttributeOrigin::Cookie(_) => headers.push(COOKIE),
                AttributeOrigin::Claim(_) => headers.push(AUTHORIZATION),
                _ => {}
            }
            let multiplicity =
                if rules.policy().identifies(id) { Multiplicity::One } else { Multiplicity::Many };
            steps.push(ReadStep { id, multiplicity, from });
        }
        let address = http.client.header().and_then(|name| name.parse::<HeaderName>().ok());
        let has = |is: fn(&AttributeOrigin) -> bool| steps.iter().any(|step| is(&step.from));
        if has(|from| matches!(from, AttributeOrigin::Address)) {
            headers.extend(address.clone());
        }
        Self {
            has_claims: has(|from| matches!(from, AttributeOrigin::Claim(_))),
            has_path: has(|from| matches!(from, AttributeOrigin::Path)),
            reads_peer: rules.policy().has_lower_by(),
            generation: Some(rules.generation()),
            steps: steps.into(),
            headers: headers.into(),
            address,
        }
    }

    /// Whether some servers confuse this header with one that is read.
    fn is_alias(&self, name: &HeaderName) -> bool {
        lookalike::is_suspicious(name)
            && !self.headers.contains(name)
            && self.headers.iter().any(|header| lookalike::is_alias(header, name))
    }

    #[inline(never)]
    fn set_client(&self, rules: &Rules, head: &impl Head, peer: IpAddr, facts: &mut Facts<'_>) {
        facts.set_address(self.client(rules, head, peer));
    }

    fn client(&self, rules: &Rules, head: &impl Head, peer: IpAddr) -> IpAddr {
        let client = &rules.http_policy().client;
        match &self.address {
            Some(name) => client.resolve(peer, head.header_values(name)),
            None => client.resolve(peer, std::iter::empty()),
        }
    }
}

impl ReadStep {
    /// Reads an attribute of the head. Kept out of the loop, which would load every part of the
    /// head before its first step.
    #[inline(never)]
    fn read<'a>(&self, head: &'a impl Head, facts: &mut Facts<'a>) -> Result<(), Ambiguity> {
        let target = (self.id, self.multiplicity);
        match &self.from {
            AttributeOrigin::Path => ambiguity::set_path(facts, Some(self.id), head.path()),
            AttributeOrigin::Header(name) => ambiguity::set_header(facts, target, head, name),
            AttributeOrigin::Cookie(name) => ambiguity::set_cookie(facts, target, head, name),
            AttributeOrigin::Query(name) => ambiguity::set_query(facts, target, head.query(), name),
            AttributeOrigin::Host => {
                // `host` takes any value.
                let _ = facts.set_id(self.id, host(head)?);
                Ok(())
            }
            AttributeOrigin::Address | AttributeOrigin::Method | AttributeOrigin::Claim(_) => {
                Ok(())
            }
        }
    }
}

impl AttributeOrigin {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.split_once('.') {
            None if name == "ip" => Self::Address,
            None if name == "method" => Self::Method,
            None if name == "path" => Self::Path,
            None if name == "host" => Self::Host,
            Some(("header", name)) => Self::Header(name.parse().ok()?),
            Some(("cookie", name)) => Self::Cookie(name.into()),
            Some(("query", name)) => Self::Query(name.into()),
            Some(("jwt", name)) => Self::Claim(name.into()),
            _ => return None,
        })
    }

    fn from_source(source: &AttributeSource) -> Option<Self> {
        Some(match source {
            AttributeSource::Header(name) => Self::Header(name.parse().ok()?),
            AttributeSource::Cookie(name) => Self::Cookie(name.clone()),
            AttributeSource::Query(name) => Self::Query(name.clone()),
            AttributeSource::Jwt(name) => Self::Claim(name.clone()),
        })
    }
}

/// The value of the first parameter of that name in a query, decoded.
pub fn query_parameter(query: &str, name: &str) -> Option<String> {
    query::all(query, name).next().map(query::value)
}

/// How many parameters of that name a query has.
pub fn count_parameter(query: &str, name: &str) -> usize {
    query::all(query, name).count()
}

/// Replaces secrets in a request target or URL by `***`: the values of these query parameters, user
/// and password, and the fragment.
pub fn redact_parameters<'t>(target: &'t str, names: &[&str]) -> Cow<'t, str> {
    query::redacted(target, names)
}

/// The host as it was sent. If the target and `Host` differ, the request is ambiguous: services
/// read one or the other.
fn host(head: &impl Head) -> Result<&str, Ambiguity> {
    let header = head.header_values(&HOST).next();
    let header = header.map(|value| visible(value).unwrap_or_default().trim());
    let differs = head.host().zip(header).is_some_and(|(target, header)| {
        !canonical_host(target).eq_ignore_ascii_case(canonical_host(header))
    });
    if differs || !ambiguity::is_one(head, &HOST) {
        return Err(Ambiguity::Header(HOST));
    }
    Ok(head.host().or(header).unwrap_or_default())
}

/// A value that is printable ASCII.
fn visible(value: &[u8]) -> Option<&str> {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    str::from_utf8(value).ok().filter(|_| value.iter().all(is_visible))
}

/// Sets an attribute. Invalid UTF-8 is replaced: an absent value would escape its limit.
fn set_bytes<'a>(facts: &mut Facts<'a>, id: AttributeId, value: &'a [u8]) {
    // Only `ip` and `path` can be invalid, and neither comes from a header.
    let _ = match str::from_utf8(value) {
        Ok(value) => facts.set_id(id, value),
        Err(_) => facts.write_id(id, |out| out.push_str(&String::from_utf8_lossy(value))),
    };
}

/// Sets a claim of the request's token. If the token did not verify, marks the attribute as
/// unverified.
fn set_claim(
    facts: &mut Facts<'_>,
    id: AttributeId,
    claims: &Result<Option<Claims>, Unverified>,
    name: &str,
) {
    let mut wrong = None;
    match claims {
        Ok(None) => {}
        // Only `ip` and `path` can be invalid, and neither comes from a claim.
        Ok(Some(claims)) => {
            let _ = facts.write_id(id, |out| wrong = claims.write(name, out).err());
        }
        Err(why) => wrong = Some(*why),
    }
    if let Some(why) = wrong {
        facts.set_unverified(id, why);
    }
}
