//! TG120: TLS settings for upstreams without TLS.
//!
//! Not reported if one upstream is https://.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::Code;
use crate::raw::Upstreams;

pub(super) const CODE: &Code = &Code::new(
    "TG120",
    "TLS settings for plaintext upstreams",
    "Requests go to the upstreams unencrypted, and nothing verifies who answers.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let servers = &view.compiled.settings.upstream;
    let Some(Upstreams::Form(form)) = view.compiled.file.upstream.as_ref().map(|at| &at.value)
    else {
        return;
    };
    if let Some(tls) = &form.tls
        && !servers.iter().any(|server| server.tls)
    {
        let message = "`tls` is set, but all servers are http://";
        findings.warn(tls.name_at, message, "write https:// in `servers`, or remove `tls`");
    }
}
