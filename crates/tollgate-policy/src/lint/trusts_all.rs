//! TG117: `trusted_proxies` with every address.
//!
//! Reported once, at the network that contains every address. Smaller networks are not reported.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};

pub(super) const CODE: &Code = &Code::new(
    "TG117",
    "every address trusted as a proxy",
    "Every client can claim any address, so it gets as many buckets as it likes and can fill those of others.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let proxies = view.compiled.file.trusted_proxies.as_ref();
    let mut all = proxies.iter().flat_map(|list| list.as_slice());
    if let Some(everybody) = all.find(|network| network.trim().ends_with("/0")) {
        let message = format!("{} lets every peer choose its client address", quoted(everybody));
        let help = "name the networks of your proxies, such as 10.0.0.0/8";
        findings.warn(everybody.at, message, help);
    }
}
