//! TG117: everybody is a trusted proxy.
//!
//! Reported at the network that holds every address, once. Quiet for all others, however large.

use super::{Findings, view::LintView};
use crate::diagnostic::Code;
use crate::suggest::quoted;

pub(super) const CODE: &Code = &Code::new(
    "TG117",
    "everybody trusted as a proxy",
    "Whoever connects can name any address as the client's, and so has as many buckets as it likes and can fill those of others.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let proxies = view.compiled.file.trusted_proxies.as_ref();
    let mut all = proxies.iter().flat_map(|list| list.as_slice());
    if let Some(everybody) = all.find(|network| network.trim().ends_with("/0")) {
        let message = format!("{} lets every peer name the client's address", quoted(everybody));
        let help = "name the networks of the proxies in front, such as 10.0.0.0/8";
        findings.warn(everybody.at, message, help);
    }
}
