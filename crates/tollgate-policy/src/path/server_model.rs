//! Models of servers: the escapes that each decodes, and the order in which it normalises a path.

use super::readings::{is_control, overlong};
use super::{escaped, is_pchar, is_unreserved};
use crate::path::{is_clear, push_escape};

/// The way one server decodes a path.
#[derive(Clone, Copy)]
pub(super) struct ServerModel {
    decodes: DecodedEscapes,
    /// Whether the server cuts segments at `;`.
    cuts_parameters: bool,
    backslashes: BackslashHandling,
    controls: ControlHandling,
}

/// The escapes that a server decodes before it looks for dot segments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DecodedEscapes {
    Nothing,
    Unreserved,
    Pchar,
    Everything,
}

/// The order in which a server merges slashes and resolves dot segments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NormalisationOrder {
    SlashesFirst,
    DotsFirst,
    /// The server does neither and routes by the path as sent.
    Neither,
}

/// The backslashes that a server reads as slashes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BackslashHandling {
    None,
    Unescaped,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ControlHandling {
    Kept,
    Removed,
    EndThePath,
}

/// Returns the orders to try: all for an ambiguous path, one for others.
pub(super) const fn orders(is_ambiguous: bool) -> &'static [NormalisationOrder] {
    if is_ambiguous {
        &[
            NormalisationOrder::SlashesFirst,
            NormalisationOrder::DotsFirst,
            NormalisationOrder::Neither,
        ]
    } else {
        &[NormalisationOrder::SlashesFirst]
    }
}

/// Returns the servers whose readings may differ: few for an ordinary path, more for an ambiguous
/// one.
pub(super) fn servers(bytes: &[PathByte], is_ambiguous: bool) -> Vec<ServerModel> {
    use {BackslashHandling as B, ControlHandling as C, DecodedEscapes as D};
    let has = |is_it: fn(u8) -> bool| bytes.iter().any(|one| is_it(one.byte()));
    // 0x9c may end an overlong backslash.
    let has_backslash = is_ambiguous && has(|byte| byte == b'\\' || byte == 0x9c);
    let has_control = is_ambiguous && has(is_control);
    let backslashes: &[B] =
        if has_backslash { &[B::None, B::Unescaped, B::All] } else { &[B::None] };
    let parameters: &[bool] = if has(|byte| byte == b';') { &[false, true] } else { &[false] };
    let controls: &[C] =
        if has_control { &[C::Kept, C::Removed, C::EndThePath] } else { &[C::Kept] };
    let decodings: &[D] = if is_ambiguous {
        &[D::Unreserved, D::Everything, D::Pchar, D::Nothing]
    } else {
        &[D::Unreserved, D::Pchar]
    };
    let mut servers = Vec::new();
    for &decodes in decodings {
        for &cuts_parameters in parameters {
            for &backslashes in backslashes {
                servers.extend(controls.iter().map(|&controls| ServerModel {
                    decodes,
                    cuts_parameters,
                    backslashes,
                    controls,
                }));
            }
        }
    }
    servers
}

/// One byte of a path, and whether it was escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathByte {
    Clear(u8),
    Escaped(u8),
}

impl PathByte {
    const fn byte(self) -> u8 {
        match self {
            Self::Clear(byte) | Self::Escaped(byte) => byte,
        }
    }
}

/// Splits a path into bytes and recognises escapes.
pub(super) fn path_bytes(path: &[u8]) -> Vec<PathByte> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match escaped(after).filter(|_| byte == b'%') {
            Some(byte) => {
                rest = &after[2..];
                PathByte::Escaped(byte)
            }
            None => PathByte::Clear(byte),
        });
    }
    bytes
}

/// Removes the authority, as servers do that resolve the path against a base URL. They read two
/// leading slashes as the start of a host: `//h/login` is `/login`. Returns `None` without two
/// leading slashes.
pub(super) fn without_authority(decoded: &[PathByte]) -> Option<&[PathByte]> {
    const SLASH: PathByte = PathByte::Clear(b'/');
    let [SLASH, SLASH, ..] = decoded else { return None };
    let start = decoded.iter().position(|one| *one != SLASH).unwrap_or(decoded.len());
    let authority = &decoded[start..];
    let end = authority.iter().position(|one| *one == SLASH).unwrap_or(authority.len());
    Some(&authority[end..])
}

/// Removes trailing dots and spaces, as Windows does in file names. Caddy's path matcher does so
/// before it resolves dot segments. Returns `None` if there are none.
pub(super) fn without_dots_at_end(bytes: &[PathByte]) -> Option<&[PathByte]> {
    let is_kept = |one: &PathByte| !matches!(one.byte(), b'.' | b' ');
    let end = bytes.iter().rposition(is_kept).map_or(0, |last| last + 1);
    (end < bytes.len()).then(|| &bytes[..end])
}

impl NormalisationOrder {
    /// Returns a decoded path as a server with this order reads it, in normal form.
    pub(super) fn read(self, decoded: &[PathByte]) -> String {
        let is_absolute = decoded.first() == Some(&PathByte::Clear(b'/'));
        let segments: Vec<&[PathByte]> = decoded[usize::from(is_absolute)..]
            .split(|one| *one == PathByte::Clear(b'/'))
            .collect();
        let mut out = String::new();
        if is_absolute {
            out.push('/');
        }
        let kept = self.resolve(&segments);
        for (place, segment) in kept.iter().enumerate() {
            if place > 0 {
                out.push('/');
            }
            for one in *segment {
                match *one {
                    PathByte::Clear(byte) if is_clear(byte) || byte == b'%' => {
                        out.push(char::from(byte))
                    }
                    PathByte::Clear(byte) | PathByte::Escaped(byte) => push_escape(&mut out, byte),
                }
            }
        }
        if out.is_empty() {
            out.push('/');
        }
        out
    }

    /// Returns the remaining segments; the last one is empty if the path ends in a slash.
    fn resolve<'t>(self, segments: &[&'t [PathByte]]) -> Vec<&'t [PathByte]> {
        const DOT: PathByte = PathByte::Clear(b'.');
        let last = segments.len().saturating_sub(1);
        let mut kept: Vec<&[PathByte]> = Vec::with_capacity(segments.len());
        for (place, &segment) in segments.iter().enumerate() {
            let dots = match segment {
                _ if self == Self::Neither => 0,
                [DOT] => 1,
                [DOT, DOT] => 2,
                [] if self == Self::SlashesFirst && place < last => continue,
                _ => 0,
            };
            match dots {
                0 => kept.push(segment),
                1 => {}
                _ => drop(kept.pop()),
            }
            if dots > 0 && place == last {
                kept.push(&[]);
            }
        }
        if self == Self::DotsFirst {
            let end = kept.len().saturating_sub(1);
            let mut place = 0;
            kept.retain(|segment| {
                place += 1;
                !segment.is_empty() || place > end
            });
        }
        kept
    }
}

impl ServerModel {
    /// Decodes and cuts the path as this server does.
    pub(super) fn decode(&self, bytes: &[PathByte]) -> Vec<PathByte> {
        let mut out = Vec::with_capacity(bytes.len());
        let (mut is_parameter, mut last_four) = (false, 0_u32);
        for &one in bytes {
            is_parameter = match one {
                PathByte::Clear(b'/') => false,
                PathByte::Clear(b'\\') if self.backslashes != BackslashHandling::None => false,
                PathByte::Clear(b';') if self.cuts_parameters => true,
                _ => is_parameter,
            };
            let byte = one.byte();
            if is_control(byte) {
                match self.controls {
                    ControlHandling::Kept => {}
                    ControlHandling::Removed => continue,
                    ControlHandling::EndThePath => break,
                }
            }
            if is_parameter {
                continue;
            }
            if one == PathByte::Clear(b'\\') && self.backslashes != BackslashHandling::None {
                out.push(PathByte::Clear(b'/'));
                continue;
            }
            let is_decoded = match self.decodes {
                DecodedEscapes::Nothing => false,
                DecodedEscapes::Unreserved => is_unreserved(byte),
                DecodedEscapes::Pchar => is_pchar(byte),
                // A decoded `%` stays escaped, so that it differs from a literal `%`.
                DecodedEscapes::Everything => byte != b'%',
            };
            out.push(if is_decoded { PathByte::Clear(byte) } else { one });
            last_four = last_four << 8 | u32::from(byte);
            if self.decodes == DecodedEscapes::Everything
                && let Some((character, length)) = overlong(last_four)
            {
                out.truncate(out.len().saturating_sub(length));
                out.push(PathByte::Clear(character));
            }
        }
        if self.backslashes == BackslashHandling::All {
            for one in &mut out {
                if one.byte() == b'\\' {
                    *one = PathByte::Clear(b'/');
                }
            }
        }
        out
    }
}
