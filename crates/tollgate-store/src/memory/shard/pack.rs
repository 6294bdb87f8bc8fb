//! Packs states into the words of a cell, exactly or not at all; then the state is spilled.
//!
//! The top bit of the first word means "no state here", so packed states leave it clear. The
//! params that a state was written under, such as the denominator of a fraction, are named by the
//! cell's params id.

use tollgate_core::algorithm::{
    CalendarWindow, DatedTat, FixedWindow, Gcra, LeakyBucket, SlidingWindow, Taken, Tat,
    TokenBucket, calendar_window, fixed_window, sliding_window, token_bucket,
};
use tollgate_core::{Algorithm, LimitParams, LimitState, MAX_US, Outcome, Receipt};

/// Bits of an instant: [`MAX_US`] is 2^53 - 1.
const INSTANT_BITS: u32 = 53;
/// Bits beside an instant and the top bit.
const FRACTION_BITS: u32 = 10;
/// Bits of a fraction that fit beside a second instant.
const FRACTION_HIGH_BITS: u32 = 11;
/// Bits of the second with which a calendar window begins.
const SECOND_BITS: u32 = 34;
/// Bits beside it and the top bit.
const CALENDAR_COUNT_BITS: u32 = 63 - SECOND_BITS;

/// An algorithm whose usual state is `W` words.
pub(crate) trait PackedState<const W: usize>: Algorithm {
    /// The state as words with the top bit clear, or `None` when it does not fit.
    fn pack(&self, state: &Self::State) -> Option<[u64; W]>;
    /// The state that these params packed.
    fn unpack(&self, words: [u64; W]) -> Self::State;
    /// [Takes](Algorithm::take) `cost` of packed words. `None`, if only
    /// [`decide`](Algorithm::decide) can tell, or the state must be dated again.
    #[inline(always)]
    fn take_words(&self, words: [u64; W], now_us: u64, cost: u64) -> Option<WordsTaken<W>> {
        let mut state = self.unpack(words);
        if self.redate(&mut state, now_us) {
            return None;
        }
        let taken = self.take(&mut state, now_us, cost)?;
        self.pack_taken(&state, taken)
    }
    /// [Takes](Algorithm::take) `cost` with few branches, for state of the current window. `None`
    /// for other states too.
    #[inline(always)]
    fn take_fast(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Option<Taken> {
        if self.redate(state, now_us) { None } else { self.take(state, now_us, cost) }
    }
    /// [`take_fast`](Self::take_fast) of packed words.
    #[inline(always)]
    fn take_words_fast(&self, words: [u64; W], now_us: u64, cost: u64) -> Option<WordsTaken<W>> {
        let mut state = self.unpack(words);
        let taken = self.take_fast(&mut state, now_us, cost)?;
        self.pack_taken(&state, taken)
    }
    /// The result of taking, with the state after it packed.
    #[inline(always)]
    fn pack_taken(&self, state: &Self::State, taken: Taken) -> Option<WordsTaken<W>> {
        Some(match taken {
            Taken::Charged(outcome, receipt) => {
                WordsTaken::Charged(self.pack(state)?, outcome, receipt)
            }
            Taken::Refused(outcome) => WordsTaken::Refused(outcome),
        })
    }
    /// The params, if they are this algorithm's.
    fn of(params: &LimitParams) -> Option<&Self>;
    /// [`of`](Self::of), to be changed.
    fn of_mut(params: &mut LimitParams) -> Option<&mut Self>;
    /// The state, if it is this algorithm's.
    fn state_of(state: &mut LimitState) -> Option<&mut Self::State>;
    /// The state as a [`LimitState`].
    fn widen(state: Self::State) -> LimitState;
}

/// The result of [`PackedState::take_words`].
pub(crate) enum WordsTaken<const W: usize> {
    /// The words after the charge.
    Charged([u64; W], Outcome, Receipt),
    Refused(Outcome),
}

/// One expression for all algorithms that pack their state, and another for the rest.
macro_rules! match_packed {
    ($params:expr, $algorithm:ident => $inline:expr, else $spilled:expr) => {
        match $params {
            LimitParams::Gcra($algorithm) => $inline,
            LimitParams::LeakyBucket($algorithm) => $inline,
            LimitParams::FixedWindow($algorithm) => $inline,
            LimitParams::SlidingWindow($algorithm) => $inline,
            LimitParams::TokenBucket($algorithm) => $inline,
            LimitParams::CalendarWindow($algorithm) => $inline,
            _ => $spilled,
        }
    };
}
pub(crate) use match_packed;

/// One expression for all algorithms whose usual state is one word, and another for the rest.
macro_rules! match_one_word {
    ($params:expr, $algorithm:ident => $inline:expr, else $other:expr) => {
        match $params {
            LimitParams::Gcra($algorithm) => $inline,
            LimitParams::SlidingWindow($algorithm) => $inline,
            LimitParams::FixedWindow($algorithm) => $inline,
            LimitParams::LeakyBucket($algorithm) => $inline,
            LimitParams::CalendarWindow($algorithm) => $inline,
            _ => $other,
        }
    };
}
pub(crate) use match_one_word;

/// Whether every state under these params fits a cell, debts aside.
pub(crate) fn always_packs(params: &LimitParams) -> bool {
    match params {
        LimitParams::Gcra(one) => one.pack(&DatedTat::default()).is_some(),
        LimitParams::LeakyBucket(one) => one.pack(&DatedTat::default()).is_some(),
        LimitParams::TokenBucket(one) => {
            one.bucket().scale() <= 1 << (FRACTION_BITS + FRACTION_HIGH_BITS)
        }
        LimitParams::FixedWindow(window) => {
            window.pack(&fixed_window::State { index: 0, count: window.capacity() }).is_some()
        }
        LimitParams::CalendarWindow(window) => window.capacity() >> CALENDAR_COUNT_BITS == 0,
        LimitParams::SlidingWindow(window) => {
            let count = window.capacity();
            let full = sliding_window::State { index: 0, previous: count, current: count };
            window.pack(&full).is_some()
        }
        _ => true,
    }
}

/// Unpacks the words of any algorithm. Words of another algorithm read as a new key's state.
pub(crate) fn unpack_any(params: &LimitParams, words: &[u64]) -> LimitState {
    fn typed<A: PackedState<W>, const W: usize>(algorithm: &A, words: &[u64]) -> LimitState {
        words.try_into().map_or(LimitState::New, |words| A::widen(algorithm.unpack(words)))
    }
    match_packed!(params, algorithm => typed(algorithm, words), else LimitState::New)
}

/// The variants of an algorithm and its state.
macro_rules! variant {
    ($algorithm:ident, $variant:ident($state:ty)) => {
        fn of(params: &LimitParams) -> Option<&Self> {
            match params {
                LimitParams::$algorithm(algorithm) => Some(algorithm),
                _ => None,
            }
        }

        #[inline(always)]
        fn of_mut(params: &mut LimitParams) -> Option<&mut Self> {
            match params {
                LimitParams::$algorithm(algorithm) => Some(algorithm),
                _ => None,
            }
        }

        #[inline(always)]
        fn state_of(state: &mut LimitState) -> Option<&mut $state> {
            match state {
                LimitState::$variant(state) => Some(state),
                _ => None,
            }
        }

        fn widen(state: $state) -> LimitState {
            LimitState::$variant(state)
        }
    };
}

macro_rules! tat_in_one_word {
    ($($algorithm:ident),*) => {$(
        impl PackedState<1> for $algorithm {
            #[inline]
            fn pack(&self, state: &DatedTat) -> Option<[u64; 1]> {
                // A debt names how far it reaches. An instant of zero is a new key's.
                let ahead_us = if state.tat.us == 0 { 0 } else { self.bucket().ahead_us() };
                let tat = self.bucket().to_scaled(state.tat)?;
                (state.ahead_us == ahead_us).then_some([tat])
            }

            #[inline]
            fn unpack(&self, [word]: [u64; 1]) -> DatedTat {
                let tat = self.bucket().from_scaled(word);
                DatedTat { tat, ahead_us: if tat.us == 0 { 0 } else { self.bucket().ahead_us() } }
            }

            #[inline(always)]
            fn take_words(&self, [word]: [u64; 1], now_us: u64, cost: u64) -> Option<WordsTaken<1>> {
                let (mut after, bucket) = (word, self.bucket());
                Some(match bucket.take_scaled(&mut after, now_us, cost)? {
                    Taken::Charged(outcome, receipt) => {
                        WordsTaken::Charged([after], outcome, receipt)
                    }
                    // A clock error may date state so far ahead. An admission excludes it.
                    Taken::Refused(_) if word >= (now_us + bucket.leap_us()) * bucket.scale() => {
                        return None;
                    }
                    Taken::Refused(outcome) => WordsTaken::Refused(outcome),
                })
            }

            #[inline(always)]
            fn take_words_fast(&self, words: [u64; 1], now_us: u64, cost: u64) -> Option<WordsTaken<1>> {
                self.take_words(words, now_us, cost)
            }

            variant!($algorithm, Tat(DatedTat));
        }
    )*};
}

tat_in_one_word!(Gcra, LeakyBucket);

impl PackedState<2> for TokenBucket {
    #[inline]
    fn pack(&self, state: &token_bucket::State) -> Option<[u64; 2]> {
        let token_bucket::State { full, latest_us } = *state;
        let fits = full.us <= MAX_US
            && latest_us <= MAX_US
            && full.fraction < 1 << (FRACTION_BITS + FRACTION_HIGH_BITS);
        (fits && (full.fraction == 0 || full.count == self.bucket().count())).then(|| {
            let fraction = u64::from(full.fraction);
            let low = fraction & ((1 << FRACTION_BITS) - 1);
            [
                full.us << FRACTION_BITS | low,
                latest_us | (fraction >> FRACTION_BITS) << INSTANT_BITS,
            ]
        })
    }

    #[inline]
    fn unpack(&self, [first, second]: [u64; 2]) -> token_bucket::State {
        let low = first & ((1 << FRACTION_BITS) - 1);
        let fraction = (second >> INSTANT_BITS) << FRACTION_BITS | low;
        token_bucket::State {
            full: tat(first >> FRACTION_BITS, fraction as u32, self.bucket().count()),
            latest_us: second & MAX_US,
        }
    }

    variant!(TokenBucket, TokenBucket(token_bucket::State));
}

impl PackedState<1> for FixedWindow {
    #[inline]
    fn pack(&self, state: &fixed_window::State) -> Option<[u64; 1]> {
        let index_bits = self.index_bits();
        let count_bits = 63 - index_bits;
        (state.index >> index_bits == 0 && state.count >> count_bits == 0)
            .then(|| [state.index << count_bits | state.count])
    }

    #[inline]
    fn unpack(&self, [word]: [u64; 1]) -> fixed_window::State {
        let count_bits = 63 - self.index_bits();
        fixed_window::State { index: word >> count_bits, count: word & ((1 << count_bits) - 1) }
    }

    variant!(FixedWindow, FixedWindow(fixed_window::State));
}

impl PackedState<1> for CalendarWindow {
    #[inline]
    fn pack(&self, state: &calendar_window::State) -> Option<[u64; 1]> {
        let fits = state.start_s >> SECOND_BITS == 0 && state.count >> CALENDAR_COUNT_BITS == 0;
        fits.then_some([state.start_s << CALENDAR_COUNT_BITS | state.count])
    }

    #[inline]
    fn unpack(&self, [word]: [u64; 1]) -> calendar_window::State {
        calendar_window::State {
            start_s: word >> CALENDAR_COUNT_BITS,
            count: word & ((1 << CALENDAR_COUNT_BITS) - 1),
        }
    }

    variant!(CalendarWindow, CalendarWindow(calendar_window::State));
}

impl PackedState<1> for SlidingWindow {
    #[inline]
    fn pack(&self, state: &sliding_window::State) -> Option<[u64; 1]> {
        let index_bits = self.index_bits();
        let count_bits = (63 - index_bits) / 2;
        let fits =
            state.index >> index_bits == 0 && (state.previous | state.current) >> count_bits == 0;
        fits.then(|| {
            [state.index << (2 * count_bits) | state.previous << count_bits | state.current]
        })
    }

    #[inline]
    fn unpack(&self, [word]: [u64; 1]) -> sliding_window::State {
        let count_bits = (63 - self.index_bits()) / 2;
        let mask = (1 << count_bits) - 1;
        sliding_window::State {
            index: word >> (2 * count_bits),
            previous: word >> count_bits & mask,
            current: word & mask,
        }
    }

    #[inline(always)]
    fn take_fast(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Option<Taken> {
        self.take_in_window(state, now_us, cost)
    }

    #[inline(always)]
    fn take_words_fast(&self, [word]: [u64; 1], now_us: u64, cost: u64) -> Option<WordsTaken<1>> {
        let mut state = self.unpack([word]);
        Some(match self.take_fast(&mut state, now_us, cost)? {
            Taken::Charged(outcome, receipt) => {
                // The count of this window is in the lowest bits, which hold the limit.
                debug_assert_eq!(self.pack(&state), Some([word + cost]), "the state packs");
                WordsTaken::Charged([word + cost], outcome, receipt)
            }
            Taken::Refused(outcome) => WordsTaken::Refused(outcome),
        })
    }

    variant!(SlidingWindow, SlidingWindow(sliding_window::State));
}

#[inline]
fn tat(us: u64, fraction: u32, count: u32) -> Tat {
    Tat { us, fraction, count: if fraction == 0 { 0 } else { count } }
}

#[cfg(all(test, not(loom)))]
mod tests;
