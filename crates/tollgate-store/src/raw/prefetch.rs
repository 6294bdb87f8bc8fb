//! Prefetching of cache lines.

/// Bytes in a cache line.
pub(crate) const LINE: usize = 64;

/// Prefetches the cache line at `address`, if the processor can. The address may be invalid.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it has no visible effect and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
