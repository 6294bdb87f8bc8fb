//! Header classes: how a proxy treats each header. The gateway uses this one table for HTTP/1.1 and
//! HTTP/2, for requests, responses and trailers.

use crate::Override;

/// The class of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderClass {
    /// Any other header, which is forwarded as it is.
    EndToEnd,
    /// `Connection`, which may list others that concern the connection.
    Connection,
    /// A header for one connection, which is not forwarded (RFC 9110, section 7.6.1): `Keep-Alive`,
    /// `Proxy-Connection`, `TE`, `Upgrade`, and by custom the headers of proxy authentication and
    /// `HTTP2-Settings`. Not `Trailer`, since trailers are forwarded.
    HopByHop,
    /// `Content-Length` or `Transfer-Encoding`: where the body ends. Each hop writes its own.
    Framing,
    /// `Host`.
    Host,
    /// `Expect`, which the gateway answers itself.
    Expect,
    /// `Date`.
    Date,
    /// `X-Forwarded-For`: the proxies that a request came by.
    ForwardedFor,
    /// `X-Forwarded-Proto`.
    ForwardedProto,
    /// `X-Forwarded-Host`.
    ForwardedHost,
    /// `Forwarded` and other headers that only trusted proxies may send.
    Forwarded,
    /// `X-Real-IP`, which the gateway writes.
    RealIp,
    /// A header by which some services replace the path or the method.
    Override(Override),
    /// The headers that tell clients about a quota.
    Quota,
    /// `Via`: the proxies that forwarded the message.
    Via,
    /// A header that identifies the client or says how to read the content, so it cannot be a
    /// trailer: `Authorization`, `Cookie`, `Set-Cookie`, `Content-Type`, `Content-Encoding`,
    /// `Trailer`.
    BeforeBody,
}

impl HeaderClass {
    /// The class of the header with this name, in any case.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        let is = |known: &str| is_header(name, known);
        let Some(first) = name.first() else { return Self::EndToEnd };
        match (first | 0x20, name.len()) {
            (b'a', 13) if is("authorization") => Self::BeforeBody,
            (b'c', 6) if is("cookie") => Self::BeforeBody,
            (b'c', 10) if is("connection") => Self::Connection,
            (b'c', 12) if is("content-type") => Self::BeforeBody,
            (b'c', 14) if is("content-length") => Self::Framing,
            (b'c', 16) if is("content-encoding") => Self::BeforeBody,
            (b'd', 4) if is("date") => Self::Date,
            (b'e', 6) if is("expect") => Self::Expect,
            (b'f', 9) if is("forwarded") => Self::Forwarded,
            (b'h', 4) if is("host") => Self::Host,
            (b'h', 14) if is("http2-settings") => Self::HopByHop,
            (b'k', 10) if is("keep-alive") => Self::HopByHop,
            (b'p', 16) if is("proxy-connection") => Self::HopByHop,
            (b'p', 18) if is("proxy-authenticate") => Self::HopByHop,
            (b'p', 19) if is("proxy-authorization") => Self::HopByHop,
            (b'r', 9..) if begins(name, "ratelimit") => Self::Quota,
            (b's', 10) if is("set-cookie") => Self::BeforeBody,
            (b't', 2) if is("te") => Self::HopByHop,
            (b't', 7) if is("trailer") => Self::BeforeBody,
            (b't', 17) if is("transfer-encoding") => Self::Framing,
            (b'u', 7) if is("upgrade") => Self::HopByHop,
            (b'v', 3) if is("via") => Self::Via,
            (b'x', 9..) => Self::of_extension(name),
            _ => Self::EndToEnd,
        }
    }

    /// The class of a name that begins with `X`.
    #[inline]
    fn of_extension(name: &[u8]) -> Self {
        if begins(name, "x-forwarded-") {
            return match &name[12..] {
                rest if is_header(rest, "for") => Self::ForwardedFor,
                rest if is_header(rest, "proto") => Self::ForwardedProto,
                rest if is_header(rest, "host") => Self::ForwardedHost,
                _ => Self::Forwarded,
            };
        }
        if is_header(name, "x-real-ip") {
            return Self::RealIp;
        }
        if begins(name, "x-ratelimit") || begins(name, "x-tollgate-source") {
            return Self::Quota;
        }
        Override::of(name).map_or(Self::EndToEnd, Self::Override)
    }

    /// Whether the header is never forwarded, whether `Connection` lists it or not.
    #[inline]
    pub fn is_hop_by_hop(self) -> bool {
        matches!(self, Self::Connection | Self::HopByHop | Self::Framing)
    }

    /// Whether a proxy removes the header if `Connection` lists it. Otherwise a client could remove
    /// headers that concern more than the connection.
    pub fn may_be_listed(self) -> bool {
        matches!(
            self,
            Self::EndToEnd | Self::HopByHop | Self::Expect | Self::Date | Self::Override(_)
        )
    }

    /// Whether the header may be a trailer: it does not frame the message, identify the client or
    /// say how to read the content.
    pub fn may_trail(self) -> bool {
        matches!(self, Self::EndToEnd | Self::Date | Self::Quota)
    }
}

/// Whether a header has this name, in any case. Compares eight bytes at a time, since this runs for
/// every header of every message.
///
/// `known` has only lower-case letters, digits and `-`. Setting bit 5 makes letters lower case, and
/// does not turn any other character of a name into a letter.
#[inline(always)]
pub fn is_header(name: &[u8], known: &str) -> bool {
    const FOLD: u64 = u64::MAX / 255 * 0x20;
    const FOLD_HALF: u32 = u32::MAX / 255 * 0x20;
    let known = known.as_bytes();
    if name.len() != known.len() {
        return false;
    }
    let (Some((_, last)), Some((_, known_last))) =
        (name.split_last_chunk::<8>(), known.split_last_chunk::<8>())
    else {
        let (Some(start), Some(end), Some(known_start), Some(known_end)) = (
            name.first_chunk::<4>(),
            name.last_chunk::<4>(),
            known.first_chunk::<4>(),
            known.last_chunk::<4>(),
        ) else {
            return name.iter().zip(known).all(|(byte, known)| byte | 0x20 == known | 0x20);
        };
        let is_equal = |name: &[u8; 4], known: &[u8; 4]| {
            u32::from_le_bytes(*name) | FOLD_HALF == u32::from_le_bytes(*known) | FOLD_HALF
        };
        return is_equal(start, known_start) && is_equal(end, known_end);
    };
    let is_equal = |name: &[u8; 8], known: &[u8; 8]| {
        u64::from_le_bytes(*name) | FOLD == u64::from_le_bytes(*known) | FOLD
    };
    let mut words = name.as_chunks::<8>().0.iter().zip(known.as_chunks::<8>().0);
    is_equal(last, known_last) && words.all(|(name, known)| is_equal(name, known))
}

fn begins(name: &[u8], prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| is_header(start, prefix))
}

#[cfg(test)]
mod tests;
