//! A request described by an operator: attributes, parts of a request, and the peer.

use http::HeaderName;
use http::header::COOKIE;
use std::fmt;
use std::net::IpAddr;
use tollgate::engine::Rules;
use tollgate_observe::keys::is_hash;
use tollgate_policy::facts::{Facts, FactsBuffer, Unverified, digest};
use tollgate_policy::hex::percent_encode;
use tollgate_policy::settings::{AmbiguousPaths, AttributeSource};
use tollgate_tower::{Ambiguity, Head, Reader, Verifier};

/// A request to explain.
///
/// `method`, `path`, `host`, `header.*`, `cookie.*` and `query.*` are parts of an HTTP request.
/// Attributes are read from them as in the gateway. Any other name is an attribute itself.
#[derive(Clone, Debug, Default)]
pub struct DescribedRequest {
    method: String,
    path: String,
    query: Option<String>,
    host: Option<String>,
    headers: Vec<(HeaderName, String)>,
    /// Attributes given directly.
    given: Vec<DescribedAttribute>,
    peer: Option<IpAddr>,
}

/// One attribute, or one part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedAttribute {
    /// The name, such as `user` or `header.x-plan`.
    pub name: String,
    /// The value.
    pub value: String,
    /// The hash that the operator sent instead of the value. It is shown instead of the value,
    /// which then has the form of a key.
    pub hash: Option<String>,
}

impl From<(String, String)> for DescribedAttribute {
    /// Converts an attribute. A hash stands for a value that is not known here.
    fn from((name, value): (String, String)) -> Self {
        let hash = is_hash(&value).then(|| value.clone());
        Self { name, value, hash }
    }
}

/// The description is not a valid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {detail}")]
pub struct InvalidDescription {
    /// The invalid attribute.
    pub field: String,
    /// The reason.
    pub detail: String,
}

impl InvalidDescription {
    fn new(field: &str, why: &dyn fmt::Display) -> Self {
        Self { field: field.to_owned(), detail: why.to_string() }
    }
}

impl DescribedRequest {
    /// Creates the request with these attributes, sent by this peer.
    ///
    /// # Errors
    ///
    /// If a header has no valid name.
    pub fn new(
        attributes: Vec<DescribedAttribute>,
        peer: Option<IpAddr>,
    ) -> Result<Self, InvalidDescription> {
        let mut request = Self { peer, ..Self::default() };
        let (mut cookies, mut parameters) = (Vec::new(), Vec::new());
        let encoded = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            percent_encode(text.as_bytes(), is_plain)
        };
        for one in attributes {
            if one.hash.is_some() {
                request.given.push(one);
                continue;
            }
            match (&*one.name, one.name.split_once('.')) {
                ("method", _) => request.method = one.value,
                ("host", _) => request.host = Some(one.value).filter(|host| !host.is_empty()),
                ("path", _) => match one.value.split_once('?') {
                    Some((path, query)) => {
                        path.clone_into(&mut request.path);
                        parameters.insert(0, query.to_owned());
                    }
                    None => request.path = one.value,
                },
                (_, Some(("header", name))) => match name.parse() {
                    Ok(name) => request.headers.push((name, one.value)),
                    Err(_) => {
                        return Err(InvalidDescription::new(
                            &one.name,
                            &"not the name of a header",
                        ));
                    }
                },
                (_, Some(("cookie", name))) => {
                    cookies.push(format!("{name}={}", encoded(&one.value)));
                }
                (_, Some(("query", name))) => {
                    parameters.push(format!("{}={}", encoded(name), encoded(&one.value)));
                }
                _ => request.given.push(one),
            }
        }
        if !cookies.is_empty() {
            request.headers.push((COOKIE, cookies.join("; ")));
        }
        request.query = Some(parameters.join("&")).filter(|query| !query.is_empty());
        Ok(request)
    }

    /// The facts of the request, read like the gateway. `verifier` verifies its token.
    ///
    /// # Errors
    ///
    /// If the gateway would answer 400 to this request.
    pub fn facts<'a>(
        &'a self,
        rules: &'a Rules,
        ambiguous_paths: AmbiguousPaths,
        verifier: Option<&Verifier>,
        now_us: u64,
    ) -> Result<Facts<'a>, InvalidDescription> {
        let claims = |token: &str| match verifier {
            Some(verifier) => verifier.verify(token, now_us),
            None => Err(Unverified::NoKeys),
        };
        let mut facts = rules.facts(FactsBuffer::default());
        let read =
            Reader::default().read(rules, self, self.peer, ambiguous_paths, claims, &mut facts);
        read.map_err(|why: Ambiguity| {
            let detail = format!("such a request is answered with 400: {why}");
            InvalidDescription { field: why.reason().to_owned(), detail }
        })?;
        for one in &self.given {
            let set = match one.hash {
                Some(_) => facts.set_canonical(&one.name, &one.value),
                None => facts.set(&one.name, &one.value),
            };
            set.map_err(|why| InvalidDescription::new(&one.name, &why))?;
        }
        self.set_from_claims(rules, &mut facts);
        rules.identify(&mut facts);
        if let Some(tier) = self.named_tier(rules) {
            facts.set_tier(tier);
        }
        Ok(facts)
    }

    /// Sets the attributes that `identity` derives from claims given by name.
    fn set_from_claims<'a>(&'a self, rules: &Rules, facts: &mut Facts<'a>) {
        for (name, source) in &rules.http_policy().identity {
            let AttributeSource::Jwt(claim) = source else { continue };
            let claim = self.given(&format!("jwt.{claim}"));
            if let Some(claim) = claim.filter(|_| self.given(name).is_none()) {
                // Only `ip` and `path` can be invalid, and claims set neither.
                let _ = facts.set(name, &claim.value);
            }
        }
    }

    /// Whether the operator names the tier.
    pub fn names_tier(&self) -> bool {
        self.given("tier").is_some()
    }

    /// The tier that the operator names. If the policy has an attribute called `tier`, the operator
    /// names a value of that instead.
    pub(super) fn named_tier(&self, rules: &Rules) -> Option<&str> {
        let is_attribute = rules.policy().attribute("tier").is_some();
        self.given("tier").filter(|_| !is_attribute).map(|tier| &*tier.value)
    }

    fn given(&self, name: &str) -> Option<&DescribedAttribute> {
        self.given.iter().find(|one| one.name == name)
    }

    /// The value of an attribute for display: a secret as its digest, a hash unchanged.
    pub(super) fn shown(&self, rules: &Rules, name: &str, value: &str) -> String {
        match self.given(name).and_then(|one| one.hash.as_ref()) {
            Some(hash) => hash.clone(),
            None if rules.http_policy().holds_secret(name) => digest(value),
            None => value.to_owned(),
        }
    }

    /// The part of the request that the attribute comes from, or would come from.
    pub(super) fn origin(&self, rules: &Rules, name: &str) -> String {
        if self.given(name).is_some() {
            return "given".to_owned();
        }
        let identity = rules.http_policy().identity.iter().find(|(known, _)| **known == *name);
        match (identity.map(|(_, source)| source), name.split_once('.')) {
            (Some(AttributeSource::Header(name)), _) => {
                format!("header {}", name.to_ascii_lowercase())
            }
            (Some(AttributeSource::Cookie(name)), _) => format!("cookie {name}"),
            (Some(AttributeSource::Query(name)), _) => format!("query parameter {name}"),
            (Some(AttributeSource::Jwt(name)), _) => self.claim_origin(name),
            (None, Some(("query", name))) => format!("query parameter {name}"),
            (None, Some((part @ ("header" | "cookie"), name))) => format!("{part} {name}"),
            (None, Some(("jwt", name))) => self.claim_origin(name),
            (None, None) if name == "ip" => self.address_origin(rules),
            (None, None) if matches!(name, "method" | "path" | "host") => "request line".to_owned(),
            _ => "nothing; only the check API and Envoy can send it".to_owned(),
        }
    }

    fn claim_origin(&self, claim: &str) -> String {
        match self.given(&format!("jwt.{claim}")) {
            Some(_) => format!("claim {claim}, given"),
            None => format!("claim {claim} of the bearer token"),
        }
    }

    /// The origin of the client's address, with the trusted proxies on the way.
    fn address_origin(&self, rules: &Rules) -> String {
        let client = &rules.http_policy().client;
        let Some(peer) = self.peer else { return "peer".to_owned() };
        let Some(header) = client.header() else { return "peer".to_owned() };
        let name: Option<HeaderName> = header.parse().ok();
        let lines: Vec<&[u8]> = name.iter().flat_map(|name| self.header_values(name)).collect();
        match client.resolve_hop(peer, lines) {
            (_, 0) if client.is_trusted(peer) => {
                format!("peer: {header} has no usable address")
            }
            (_, 0) => format!("peer, not a trusted proxy: {header} is ignored"),
            (_, hop) => format!("{header}, item {hop} from the right"),
        }
    }
}

impl Head for DescribedRequest {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn header_values<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        let name = name.clone();
        let lines = self.headers.iter().filter(move |(known, _)| *known == name);
        lines.map(|(_, value)| value.as_bytes())
    }
}
