//! The only unsafe code: clocks, a spin lock, prefetching, and freeing memory.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod heap;
pub(crate) mod lock;
pub(crate) mod prefetch;
