//! Penalties: a key that keeps being refused is blocked, each time for longer.

use crate::{InvalidParams, MAX_US};

/// A penalty: after `after` refusals the key is blocked for `block`, then for `factor` times as
/// long each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Penalty {
    after: u32,
    block_us: u64,
    factor_milli: u64,
    max_us: u64,
}

/// The violations and the block of a key. The default is that of a key that was never refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PenaltyState {
    /// The refusals counted since the last block.
    pub violations: u32,
    /// The number of blocks so far.
    pub blocks: u32,
    /// The instant of the last counted refusal, or the end of the last block: whichever is later.
    pub mark_us: u64,
    /// Whether the mark is the end of a block.
    pub blocked: bool,
}

impl Penalty {
    /// The largest factor, a thousand. A larger one would hardly differ from jumping to the
    /// maximum.
    pub const FACTOR_MILLI_MAX: u64 = 1_000_000;

    /// Creates a penalty. `factor_milli` is the factor times 1,000. `after` must be at least 1, the
    /// factor between 1 and 1,000, `max` at least `block`.
    pub fn try_new(
        after: u32,
        block_us: u64,
        factor_milli: u64,
        max_us: u64,
    ) -> Result<Self, InvalidParams> {
        let factor_fits = (1_000..=Self::FACTOR_MILLI_MAX).contains(&factor_milli);
        if after == 0 || block_us == 0 || !factor_fits || max_us < block_us {
            return Err(InvalidParams::PenaltyOutOfRange);
        }
        Ok(Self { after, block_us, factor_milli, max_us: max_us.min(MAX_US) })
    }

    /// The arguments of the mirror's `params`: after, block, the factor times 1,000, and max.
    pub const fn to_lua_params(&self) -> [u64; 4] {
        [self.after as u64, self.block_us, self.factor_milli, self.max_us]
    }

    /// The end of the current block, if the key is blocked.
    pub fn blocked_until_us(&self, state: &PenaltyState, now_us: u64) -> Option<u64> {
        (state.blocked && now_us < state.mark_us).then_some(state.mark_us)
    }

    /// Counts a refusal outside a block. Returns the end of the block if it starts one.
    pub fn count(&self, state: &mut PenaltyState, now_us: u64) -> Option<u64> {
        if now_us >= self.idle_at_us(state) {
            *state = PenaltyState::default();
        }
        state.violations += 1;
        state.mark_us = state.mark_us.max(now_us);
        state.blocked = false;
        if state.violations < self.after {
            return None;
        }
        let end_us = now_us.saturating_add(self.block_for_us(state.blocks)).min(MAX_US);
        let blocks = state.blocks.saturating_add(1);
        *state = PenaltyState { violations: 0, blocks, mark_us: end_us, blocked: true };
        Some(end_us)
    }

    /// The instant from which violations and blocks are forgotten.
    pub fn idle_at_us(&self, state: &PenaltyState) -> u64 {
        match (state.violations, state.blocks) {
            (0, 0) => 0,
            _ => state.mark_us.saturating_add(self.max_us),
        }
    }

    /// `min(block * factor^blocks, max)`, each step rounded up to a microsecond.
    fn block_for_us(&self, blocks: u32) -> u64 {
        let mut block_us = u128::from(self.block_us);
        if self.factor_milli > 1_000 {
            for _ in 0..blocks {
                if block_us >= u128::from(self.max_us) {
                    break;
                }
                block_us = (block_us * u128::from(self.factor_milli)).div_ceil(1_000);
            }
        }
        u64::try_from(block_us).unwrap_or(u64::MAX).min(self.max_us)
    }
}

#[cfg(test)]
mod tests;
