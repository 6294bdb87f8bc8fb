//! Which keys arrive, in which order.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use std::hint::black_box;

/// Arrivals that are drawn before anything is measured; longer rows go round.
const DRAWN: usize = 1 << 21;

/// Where requests come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// One key.
    Hot,
    /// Each of so many keys as often as any other.
    Uniform(usize),
    /// The n-th of so many keys with a weight of `n^-0.99`.
    Zipf(usize),
}

impl Traffic {
    /// The keys in the order in which they arrive.
    ///
    /// Each arrival is a string of its own and they lie one behind the other, as a server has the key of the request that it has just
    /// parsed. Looking keys up in an array by a random index would add a cache miss or two to every contender alike,
    /// and so would make their ratios look better or worse than they are.
    pub fn draw(self) -> Vec<String> {
        let mut random = StdRng::seed_from_u64(7);
        match self {
            Self::Hot => vec![key(0)],
            Self::Uniform(keys) => draw(|| random.random_range(0..keys)),
            Self::Zipf(keys) => {
                let zipf = Zipf::new(keys as f64, 0.99).expect("the weights are valid");
                let places = shuffled(keys, &mut random);
                draw(|| places[zipf.sample(&mut random) as usize - 1])
            }
        }
    }

    /// Every key that can arrive, to fill a contender with.
    pub fn keys(self) -> Vec<String> {
        let keys = match self {
            Self::Hot => 1,
            Self::Uniform(keys) | Self::Zipf(keys) => keys,
        };
        shuffled(keys, &mut StdRng::seed_from_u64(8)).into_iter().map(key).collect()
    }
}

/// The n-th key.
pub fn key(n: usize) -> String {
    format!("user:{n:010}")
}

fn draw(mut next: impl FnMut() -> usize) -> Vec<String> {
    (0..DRAWN).map(|_| key(next())).collect()
}

/// So that a popular key's number says nothing about where it lies.
fn shuffled(keys: usize, random: &mut impl Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys).collect();
    for n in (1..keys).rev() {
        places.swap(n, random.random_range(0..=n));
    }
    places
}

/// A stretch of traffic for one thread.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals<'a> {
    /// Not empty.
    pub keys: &'a [String],
    /// Where to start, so that two threads do not follow each other.
    pub from: usize,
    /// How many, going round if need be.
    pub count: usize,
    /// Whether another thread is using the contender as well.
    pub shared: bool,
}

impl<'a> Arrivals<'a> {
    /// Calls `decide` for each; the answer says how many it admitted.
    #[inline]
    pub fn admit(self, mut decide: impl FnMut(&'a String) -> bool) -> usize {
        let (mut at, mut admitted) = (self.from, 0);
        for _ in 0..self.count {
            admitted += usize::from(decide(black_box(&self.keys[at])));
            at = if at + 1 == self.keys.len() { 0 } else { at + 1 };
        }
        admitted
    }

    /// The same, `N` at a time; what does not fill a batch is left out.
    #[inline]
    pub fn admit_batches<const N: usize>(
        self,
        mut decide: impl FnMut(&[&'a String; N]) -> usize,
    ) -> usize {
        let (mut at, mut admitted) = (self.from, 0);
        for _ in 0..self.count / N {
            let batch = std::array::from_fn(|_| {
                let key = black_box(&self.keys[at]);
                at = if at + 1 == self.keys.len() { 0 } else { at + 1 };
                key
            });
            admitted += decide(&batch);
        }
        admitted
    }
}
