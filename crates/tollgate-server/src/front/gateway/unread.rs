//! What is left of a request that nobody will read.

use crate::net::Upload;
use hyper::{Version, body::Body as _, header::EXPECT, http::request::Parts};
use std::time::Duration;

/// A body of no more than this is read to its end for nobody, so that its connection goes on.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;
/// And for no longer than this.
const SKIPPED_WITHIN: Duration = Duration::from_secs(1);

/// Reads what is left of a refused request, where that is little and on its way. Whether its connection can go on.
pub(super) async fn skip(head: &Parts, upload: Upload) -> bool {
    if upload.is_end_stream() || head.version >= Version::HTTP_2 {
        return true;
    }
    let is_small = upload.size_hint().upper().is_some_and(|most| most <= SKIPPED_BYTES_MAX);
    // One that was not asked for may come or not.
    if !is_small || head.headers.contains_key(EXPECT) {
        return false;
    }
    tokio::time::timeout(SKIPPED_WITHIN, upload.skip()).await.unwrap_or(false)
}
