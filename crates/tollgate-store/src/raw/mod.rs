//! The only unsafe code there is: reading the time stamp counter, and asking for a cache line ahead of its use.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod prefetch;
