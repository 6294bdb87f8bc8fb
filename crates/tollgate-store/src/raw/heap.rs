//! Returns free heap memory to the system.

/// Returns free heap pages to the system. Returns whether there were any.
///
/// glibc keeps the memory that many connections freed: its arenas shrink only from their end, where
/// one live allocation keeps all pages. Other allocators return memory by themselves; with them
/// this function does nothing. Other threads that allocate meanwhile may wait some milliseconds.
pub fn release_free_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        // SAFETY: it locks glibc's own heap, touches only its free pages, and may be called from
        // any thread. Under another allocator that heap is empty.
        unsafe { malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    false
}
