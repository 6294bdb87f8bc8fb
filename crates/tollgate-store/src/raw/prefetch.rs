//! Asking the memory for a line before it is needed.

/// Starts fetching the line at `address`, where the processor has a way to ask for it. Nothing has
/// to be there.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is only a hint; it reads nothing that the program could see and cannot
        // fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Starts fetching the line that holds `value`.
#[inline(always)]
pub(crate) fn prefetch_ref<T>(value: &T) {
    prefetch(core::ptr::from_ref(value).addr());
}
