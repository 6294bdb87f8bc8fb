//! TG101: a key by address without `trusted_proxies`.
//!
//! Without `trusted_proxies` the address is that of the peer. Behind a load balancer, all clients
//! share its address and one bucket, and forward-auth refuses every request. Reported once for the
//! file, at the first such key, since one field fixes all of them.
//!
//! Not reported: files in which only `grpc` and `resp` listen, since their callers send the
//! address. Also not reported: files with `trusted_proxies`, limits that are off, and keys with
//! another attribute beside `ip`. Each key of `first_of` is checked by itself.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::settings::Front;

pub(super) const CODE: &Code = &Code::new(
    "TG101",
    "IP address as the only key, without trusted proxies",
    "Behind a proxy or load balancer all clients have one address and share one bucket. Forward-auth \
     refuses every proxy.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    if !view.compiled.settings.client_address.trusted().is_empty() || !view.reads_requests() {
        return;
    }
    let first = view.limits.iter().filter(|item| item.is_on()).find_map(|item| {
        let alone = item.keys().find_map(|mut key| {
            key.next().filter(|(attribute, _)| *attribute == "ip" && key.next().is_none())
        });
        alone.map(|found| (item, found.1))
    });
    let Some((item, at)) = first else { return };
    let name = quoted(&item.limit.name);
    let message = if view.listens(Front::Gateway) {
        format!(
            "{name} counts by `ip`, but without `trusted_proxies` all clients behind a proxy share one bucket"
        )
    } else {
        format!(
            "{name} counts by `ip`, but without `trusted_proxies` forward-auth refuses every proxy"
        )
    };
    let help =
        "name your proxies, such as `trusted_proxies: [10.0.0.0/8]`; if you have none, allow TG101";
    findings.warn(at, message, help);
}
