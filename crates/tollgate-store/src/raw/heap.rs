//! Returns free memory that the allocator keeps to the system.

/// Gives free pages of the heap back to the system, and says whether there were any.
///
/// glibc keeps what many connections freed: its arenas shrink only from their end, and one live
/// allocation there keeps all the pages below. Other allocators return memory by themselves; there
/// this does nothing. A thread that allocates meanwhile may wait some milliseconds.
pub fn release_free_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        // SAFETY: it takes the locks of glibc's own heap, touches free pages of it alone, and may
        // be called from any thread. Under another allocator that heap is merely empty.
        unsafe { malloc_trim(0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    false
}
