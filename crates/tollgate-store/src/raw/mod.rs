//! The only unsafe code: clocks, a spin lock, arrays read without it, prefetching, freeing memory.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod heap;
pub mod lock;
pub(crate) mod pin;
pub(crate) mod prefetch;
pub(crate) mod slots;
