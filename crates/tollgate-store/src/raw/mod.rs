//! The only unsafe code: reading the time stamp counter and the boot-time clock, prefetching a
//! cache line, a lock, and returning free memory.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod heap;
pub(crate) mod lock;
pub(crate) mod prefetch;
