//! Clocks: the only file that reads one.
//!
//! `Instant::now` costs more than the rest of a decision. If the processor has an invariant time
//! stamp counter that the kernel trusts, this clock reads the counter instead. A straight line maps
//! ticks to time. About once a second a new line starts at the end of the old one, and aims at the
//! time of `Instant` a second later. So the clock follows `Instant` to within microseconds and
//! never steps; it only runs a little faster or slower.

use std::sync::OnceLock;
#[cfg(feature = "redis")]
use std::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall time at the start plus monotonic time since; never runs backwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessClock;

impl ProcessClock {
    /// The current instant, in microseconds since the Unix epoch.
    #[inline]
    pub fn now_us(self) -> u64 {
        START.get_or_init(Start::now).now_us()
    }

    /// This clock for decisions, if it reads the processor's counter.
    pub fn counter(self) -> Option<CounterClock> {
        START.get_or_init(Start::now).counter.as_ref().map(CounterClock)
    }
}

/// The [process's clock](ProcessClock) for decisions: faster, because it is known to run, and the
/// processor may read its counter some nanoseconds out of order.
///
/// So two threads may see times a microsecond out of order. Decisions tolerate that: state with a
/// future date is waited out, and never admits more.
#[derive(Clone, Copy, Debug)]
pub struct CounterClock(&'static tsc::Counter);

impl CounterClock {
    /// The current instant, in microseconds since the Unix epoch.
    #[inline(always)]
    pub fn now_us(self) -> u64 {
        self.0.now_us::<false>()
    }
}

/// The instant `after` from now, by the tokio runtime's clock: a deadline.
#[cfg(feature = "redis")]
pub(crate) fn instant_after(after: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + after
}

/// Wall time at the start plus the tokio runtime's time since, which tests can pause: sleeping
/// tasks and this clock agree.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start_us: u64,
    start: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// Creates a clock that now shows `now_us`.
    pub fn starting_at(now_us: u64) -> Self {
        Self { start_us: now_us, start: tokio::time::Instant::now() }
    }

    /// The current instant, in microseconds since the Unix epoch.
    pub fn now_us(&self) -> u64 {
        let elapsed_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.start_us.saturating_add(elapsed_us)
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::starting_at(ProcessClock.now_us())
    }
}

/// Microseconds of the boot-time clock, which also counts while the machine is suspended, and is
/// never set. Only differences are meaningful.
#[cfg(all(feature = "redis", target_os = "linux"))]
#[inline]
pub(crate) fn boot_us() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes only to a local variable; kernels have this clock since 2.6.39.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(failed, 0, "the boot-time clock can be read");
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000
}

/// Falls back to the monotonic clock on systems without a boot-time clock.
#[cfg(all(feature = "redis", not(target_os = "linux")))]
pub(crate) fn boot_us() -> u64 {
    // Does not start at zero, because leases subtract from the first instants.
    static START_INSTANT: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    let start = *START_INSTANT.get_or_init(Instant::now);
    1_000_000 + elapsed_ns(start) / 1_000
}

static START: OnceLock<Start> = OnceLock::new();

#[derive(Debug)]
struct Start {
    wall_us: u64,
    instant: Instant,
    counter: Option<tsc::Counter>,
}

impl Start {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        let instant = Instant::now();
        Self { wall_us, instant, counter: tsc::Counter::start(instant, wall_us) }
    }

    #[inline(always)]
    fn now_us(&self) -> u64 {
        match &self.counter {
            Some(counter) => counter.now_us::<true>(),
            None => self.wall_us + elapsed_ns(self.instant) / 1_000,
        }
    }
}

/// Nanoseconds since `start`, up to 584 years.
fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Other processors and systems have no counter.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod tsc {
    use std::time::Instant;

    pub(super) use NoCounter as Counter;

    #[derive(Debug)]
    pub(super) enum NoCounter {}

    impl NoCounter {
        pub(super) fn start(_: Instant, _: u64) -> Option<Self> {
            None
        }

        pub(super) fn now_us<const ORDERED: bool>(&self) -> u64 {
            match *self {}
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tsc {
    use super::elapsed_ns;
    use std::arch::x86_64::{__cpuid, __rdtscp, _rdtsc};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering, fence};
    use std::time::{Duration, Instant};

    /// Fixed point of the line: microseconds per tick and since the start, times 2^64.
    const POINT: u32 = 64;
    /// The time for which the counter is measured before use.
    const WATCH: Duration = Duration::from_millis(2);
    const SECOND_NS: u64 = 1_000_000_000;
    /// The most that the clock may run faster or slower to meet `Instant`: 1/2,048, or 500 ppm.
    const SLEW_SHIFT: u32 = 11;

    /// A line from ticks to time, read without a lock. An odd or changed `version` means that the
    /// reader must retry.
    #[derive(Debug)]
    pub(super) struct Counter {
        version: AtomicU64,
        /// The ticks at the start of the line.
        ticks: AtomicU64,
        /// The time at the start of the line. `part` is the fraction.
        us: AtomicU64,
        part: AtomicU64,
        /// Microseconds per tick, times 2^64.
        slope: AtomicU64,
        /// The length of the line in ticks.
        stretch: u64,
        start: Instant,
        /// The time at `start`.
        start_us: u64,
        start_ticks: u64,
        laying: Mutex<()>,
    }

    impl Counter {
        /// `None` unless the counter ticks evenly and the kernel keeps its own time by it.
        pub(super) fn start(start: Instant, start_us: u64) -> Option<Self> {
            if !(has_rdtscp() && is_invariant() && is_trusted()) {
                return None;
            }
            let (first_ns, first_ticks) = read_both(start);
            while start.elapsed() < WATCH {
                std::hint::spin_loop();
            }
            let (ns, ticks) = read_both(start);
            let slope = slope(ns.checked_sub(first_ns)?, ticks.checked_sub(first_ticks)?)?;
            let (us, part) = split(at_ns(ns));
            let counter = Self {
                version: AtomicU64::new(0),
                ticks: AtomicU64::new(ticks),
                us: AtomicU64::new(start_us + us),
                part: AtomicU64::new(part),
                slope: AtomicU64::new(slope),
                stretch: at_ns(SECOND_NS).checked_div(slope.into())? as u64,
                start,
                start_us,
                start_ticks: ticks.wrapping_sub((at_ns(ns) / u128::from(slope)) as u64),
                laying: Mutex::new(()),
            };
            Some(counter)
        }

        #[inline(always)]
        pub(super) fn now_us<const ORDERED: bool>(&self) -> u64 {
            loop {
                // An odd version without its last bit never comes back.
                let version = self.version.load(Ordering::Acquire) & !1;
                let from = self.ticks.load(Ordering::Relaxed);
                let us = self.us.load(Ordering::Relaxed);
                let part = self.part.load(Ordering::Relaxed);
                let slope = self.slope.load(Ordering::Relaxed);
                let ticks = if ORDERED { read() } else { read_unordered() }.wrapping_sub(from);
                fence(Ordering::Acquire);
                if version == self.version.load(Ordering::Relaxed) {
                    if ticks > self.stretch {
                        return self.off_line(us, part, slope, ticks);
                    }
                    return us + split(along(part.into(), slope, ticks)).0;
                }
                std::hint::spin_loop();
            }
        }

        /// The time before the start or after the end of a line. After the end, a new line starts.
        #[cold]
        #[inline(never)]
        pub(super) fn off_line(&self, us: u64, part: u64, slope: u64, ticks: u64) -> u64 {
            // Another thread started the line after this one had read the counter.
            let is_before = ticks.cast_signed() < 0;
            if !is_before {
                self.lay();
            }
            let ticks = if is_before { 0 } else { ticks };
            us + split(along(part.into(), slope, ticks)).0
        }

        /// Starts a new line at the end of the old one, aimed at the time of `Instant` in a second.
        fn lay(&self) {
            let Ok(_guard) = self.laying.try_lock() else {
                return;
            };
            let (real_ns, ticks) = read_both(self.start);
            let from = self.ticks.load(Ordering::Relaxed);
            let old = self.slope.load(Ordering::Relaxed);
            let elapsed_us = self.us.load(Ordering::Relaxed) - self.start_us;
            let line = join(elapsed_us, self.part.load(Ordering::Relaxed));
            let shown_ns = split(along(line, old, ticks.saturating_sub(from)) * 1_000).0;
            if ticks.saturating_sub(from) <= self.stretch {
                return;
            }
            // The longer the process runs, the more exact the pace is.
            let pace = slope(real_ns, ticks.wrapping_sub(self.start_ticks)).unwrap_or(old);
            let most = pace >> SLEW_SHIFT;
            let (new, leap_ns) = match real_ns.checked_sub(shown_ns) {
                // Far behind: the clock was not read for long, or the machine slept. Jumps ahead.
                Some(behind_ns) if behind_ns > SECOND_NS >> SLEW_SHIFT => (pace, behind_ns),
                Some(behind_ns) => (pace + correction(behind_ns, pace).min(most), 0),
                None => (pace - correction(shown_ns - real_ns, pace).min(most), 0),
            };
            self.version.fetch_add(1, Ordering::AcqRel);
            fence(Ordering::Release);
            // Threads that still use the old line have read the counter before this.
            let begin = read();
            let here = along(line, old, begin.saturating_sub(from)) + at_ns(leap_ns);
            let (us, part) = split(here);
            self.ticks.store(begin, Ordering::Relaxed);
            self.us.store(self.start_us + us, Ordering::Relaxed);
            self.part.store(part, Ordering::Relaxed);
            self.slope.store(new, Ordering::Relaxed);
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// The change of slope that corrects `off_ns` within a second.
    fn correction(off_ns: u64, pace: u64) -> u64 {
        ((u128::from(off_ns) * u128::from(pace)) / u128::from(SECOND_NS)) as u64
    }

    /// The point of a line at `ticks` after `line`.
    #[inline(always)]
    fn along(line: u128, slope: u64, ticks: u64) -> u128 {
        line + u128::from(ticks) * u128::from(slope)
    }

    /// Splits into whole microseconds and the fraction.
    #[inline(always)]
    fn split(line: u128) -> (u64, u64) {
        ((line >> POINT) as u64, line as u64)
    }

    fn join(us: u64, part: u64) -> u128 {
        u128::from(us) << POINT | u128::from(part)
    }

    /// Converts nanoseconds to fixed point.
    fn at_ns(ns: u64) -> u128 {
        (u128::from(ns) << POINT) / 1_000
    }

    /// Microseconds per tick; `None` outside 0.1 to 10 GHz.
    fn slope(ns: u64, ticks: u64) -> Option<u64> {
        let slope = at_ns(ns).checked_div(ticks.into())?;
        (slope > at_ns(1) / 10 && slope < at_ns(10)).then_some(slope as u64)
    }

    /// Reads both clocks at one instant: the closest pair of a few tries.
    fn read_both(start: Instant) -> (u64, u64) {
        let tries = (0..8).map(|_| {
            let before = read();
            let ns = elapsed_ns(start);
            let after = read();
            (after.wrapping_sub(before), ns, before + after.wrapping_sub(before) / 2)
        });
        let closest = tries.min_by_key(|&(width, ..)| width);
        closest.map_or((0, 0), |(_, ns, ticks)| (ns, ticks))
    }

    /// Reads the counter, ordered after earlier instructions, so that time never runs backwards
    /// between threads. A fence and RDTSC would also delay later instructions.
    #[inline(always)]
    fn read() -> u64 {
        let mut core = 0;
        // SAFETY: `Counter::start` checked that the processor has the instruction, which writes
        // only to a local variable.
        unsafe { __rdtscp(&mut core) }
    }

    /// Reads the counter at about this time: earlier instructions may still run, and later ones
    /// may have run.
    #[inline(always)]
    fn read_unordered() -> u64 {
        // SAFETY: every processor with the instruction above has this one, which only returns.
        unsafe { _rdtsc() }
    }

    /// CPUID 8000_0001h, EDX bit 27: the counter can be read in order.
    fn has_rdtscp() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & 1 << 27 != 0
    }

    /// CPUID 8000_0007h, EDX bit 8: the counter ticks at one rate in every power state.
    fn is_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }

    /// Whether the kernel keeps time by the counter, which then is synchronous on all cores.
    fn is_trusted() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(SOURCE).is_ok_and(|source| {
            matches!(source.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page")
        })
    }
}

#[cfg(test)]
mod tests;
