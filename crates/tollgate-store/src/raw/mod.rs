//! The only unsafe code there is: reading the time stamp counter and the boot-time clock, asking for a cache line ahead of its use, a lock, and giving
//! free memory back.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod heap;
pub(crate) mod lock;
pub(crate) mod prefetch;
