//! Keys: the values that have separate counts.

use std::borrow::Cow;
use std::cell::RefCell;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use tollgate_core::push_varint;

/// A value with a count of its own: text, bytes, a number, an address, or a tuple of these.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(100));
/// let ip: IpAddr = [192, 0, 2, 7].into();
/// assert!(limiter.check("alice").is_admitted());
/// assert!(limiter.check(42_u64).is_admitted());
/// assert!(limiter.check(ip).is_admitted());
/// assert!(limiter.check(("tenant", 7)).is_admitted());
/// assert!(limiter.check((ip, "/login")).is_admitted());
/// assert!(limiter.check(()).is_admitted()); // one count for everybody
/// ```
///
/// Different values have different counts: `("ab", "c")`, `("a", "bc")` and `"abc"` are three keys,
/// and so are `7` and `"7"`. Equal values share a count, whatever their type: `7_u8` and `7_i64`,
/// `"alice"` and `b"alice"`, an [`IpAddr`] and its [`Ipv4Addr`]. An IPv4 address inside an IPv6
/// address is another key; [`IpAddr::to_canonical`] makes both the same.
///
/// Text and bytes are used in place. Numbers and addresses are written to the stack, and tuples to
/// a buffer that the thread keeps. A type of your own borrows the bytes of one of these:
///
/// ```
/// use tollgate::{Key, Limiter, Quota};
///
/// struct UserId(u64);
///
/// impl Key for UserId {
///     fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
///         self.0.key_bytes()
///     }
/// }
///
/// assert!(Limiter::new(Quota::per_minute(100)).check(UserId(42)).is_admitted());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    note = "keys are text, bytes, integers, IP addresses, and tuples of these"
)]
pub trait Key {
    /// The bytes of this value. Different values give different bytes.
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send;
}

/// The first byte of every key that is not plain bytes. UTF-8 has no such byte.
const MARK: u8 = 0xFF;

/// The second byte, after [`MARK`].
#[derive(Clone, Copy)]
#[repr(u8)]
enum KeyTag {
    /// Bytes that themselves begin with [`MARK`].
    Bytes,
    NonNegative,
    Negative,
    V4,
    V6,
    /// The parts of a tuple, each after its length.
    Tuple,
}

impl Key for str {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        self.as_bytes()
    }
}

impl Key for [u8] {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        match self.first() {
            Some(&MARK) => BytesKey::Escaped(KeyBuffer::new(KeyTag::Bytes, |out| {
                out.extend_from_slice(self);
            })),
            _ => BytesKey::Plain(self),
        }
    }
}

/// Implements a key for types that dereference to another key.
macro_rules! deref_keys {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> Key for $type {
            #[inline]
            fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
                (**self).key_bytes()
            }
        }
    )*};
}

deref_keys! {
    [] String, [] Vec<u8>, [T: Key + ?Sized] &T, [T: Key + ?Sized] &mut T, [T: Key + ?Sized] Box<T>,
    [T: Key + ?Sized] Rc<T>, [T: Key + ?Sized] Arc<T>, [T: Key + ToOwned + ?Sized] Cow<'_, T>,
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        self.as_slice().key_bytes()
    }
}

macro_rules! unsigned_keys {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
                ShortKey::number(KeyTag::NonNegative, *self as u128)
            }
        }
    )*};
}

macro_rules! signed_keys {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
                let kind = if *self < 0 { KeyTag::Negative } else { KeyTag::NonNegative };
                ShortKey::number(kind, self.unsigned_abs() as u128)
            }
        }
    )*};
}

unsigned_keys!(u8, u16, u32, u64, u128, usize);
signed_keys!(i8, i16, i32, i64, i128, isize);

impl Key for Ipv4Addr {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        ShortKey::v4(*self)
    }
}

impl Key for Ipv6Addr {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        ShortKey::v6(*self)
    }
}

impl Key for IpAddr {
    #[inline]
    fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
        match self {
            Self::V4(address) => ShortKey::v4(*address),
            Self::V6(address) => ShortKey::v6(*address),
        }
    }
}

macro_rules! tuple_keys {
    ($(($($part:ident $index:tt),*)),*) => {$(
        impl<$($part: Key),*> Key for ($($part,)*) {
            #[inline]
            fn key_bytes(&self) -> impl AsRef<[u8]> + Send {
                KeyBuffer::new(KeyTag::Tuple, |_out| {
                    $(push_part(_out, self.$index.key_bytes().as_ref());)*
                })
            }
        }
    )*};
}

tuple_keys! {
    (), (A 0), (A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3), (A 0, B 1, C 2, D 3, E 4),
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// Appends a part of a tuple after its length.
fn push_part(out: &mut Vec<u8>, part: &[u8]) {
    push_varint(out, part.len() as u64);
    out.extend_from_slice(part);
}

enum BytesKey<'a> {
    Plain(&'a [u8]),
    Escaped(KeyBuffer),
}

impl AsRef<[u8]> for BytesKey<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Escaped(buffer) => buffer.as_ref(),
        }
    }
}

/// A mark, a kind and at most 16 bytes, at the end of an array.
struct ShortKey {
    bytes: [u8; 18],
    start: usize,
}

impl ShortKey {
    /// A number in its fewest bytes, so that its type does not matter.
    #[inline]
    fn number(kind: KeyTag, magnitude: u128) -> Self {
        Self::new(kind, magnitude, magnitude.leading_zeros() as usize / 8)
    }

    #[inline]
    fn v4(address: Ipv4Addr) -> Self {
        Self::new(KeyTag::V4, u128::from(address.to_bits()), 12)
    }

    #[inline]
    fn v6(address: Ipv6Addr) -> Self {
        Self::new(KeyTag::V6, address.to_bits(), 0)
    }

    #[inline]
    fn new(kind: KeyTag, value: u128, start: usize) -> Self {
        let mark = [MARK, kind as u8];
        let mut bytes = [0; 18];
        if start < mark.len() {
            bytes[2..].copy_from_slice(&value.to_be_bytes());
            bytes[start..start + 2].copy_from_slice(&mark);
        } else {
            // Written in one word with the value: the hash reads words, and the processor stalls on
            // a word whose bytes were just written one by one.
            let marked = u128::from(u16::from_be_bytes(mark)) << (8 * (16 - start));
            bytes[2..].copy_from_slice(&(value | marked).to_be_bytes());
        }
        Self { bytes, start }
    }
}

impl AsRef<[u8]> for ShortKey {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Limit of a kept buffer, so that one long key does not keep its memory.
const SPARE_BYTES_MAX: usize = 4_096;
/// Limit of kept buffers: the usual number of nested tuples or waiting keys.
const SPARES_MAX: usize = 16;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A key in a buffer of its thread. Dropping it keeps the buffer for the next key.
struct KeyBuffer(Vec<u8>);

impl KeyBuffer {
    fn new(kind: KeyTag, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        // A thread that is ending has no buffers.
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
        let mut buffer = spare.ok().flatten().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(&[MARK, kind as u8]);
        write(&mut buffer);
        Self(buffer)
    }
}

impl AsRef<[u8]> for KeyBuffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for KeyBuffer {
    fn drop(&mut self) {
        let buffer = mem::take(&mut self.0);
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if buffer.capacity() <= SPARE_BYTES_MAX && spares.len() < SPARES_MAX {
                spares.push(buffer);
            }
        });
    }
}
