//! Names of fields: those that end at each hop, and those that look like another.

use http::HeaderName;
use http::header::{
    CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// Whether a field concerns one connection only and is not passed on, whatever `Connection` says.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 7] = [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    NAMES.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Whether a name may be taken for another. Hardly any is, and then nothing has to be compared.
pub(super) fn is_suspicious(name: &HeaderName) -> bool {
    name.as_str().bytes().any(|byte| matches!(byte, b'_' | b'.'))
}

/// Whether some servers take `name` for `field`: they read `_` and `.` as `-`.
pub(super) fn is_alias(field: &HeaderName, name: &HeaderName) -> bool {
    let folded = |byte: u8| if matches!(byte, b'_' | b'.') { b'-' } else { byte };
    field != name && field.as_str().bytes().map(folded).eq(name.as_str().bytes().map(folded))
}
