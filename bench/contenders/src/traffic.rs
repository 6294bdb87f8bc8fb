//! Generates the keys of arrivals, and their order.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use std::hint::black_box;

/// Arrivals drawn before measuring; longer rows repeat them.
const DRAWN: usize = 1 << 21;

/// The distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// One key.
    Hot,
    /// This many keys, uniformly distributed.
    Uniform(usize),
    /// This many keys; the n-th has weight `n^-0.99`.
    Zipf(usize),
}

impl Traffic {
    /// The keys in order of arrival.
    ///
    /// Each arrival is a string of its own, and the strings are contiguous, like the key of a
    /// request that a server has just parsed. An array of keys with random indexes would add a
    /// cache miss or two to every contender, and so distort the ratios.
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

    /// Every key that can arrive, to fill a contender.
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

/// Shuffles keys, so that the number of a popular key does not reveal its position.
fn shuffled(keys: usize, random: &mut impl Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys).collect();
    for n in (1..keys).rev() {
        places.swap(n, random.random_range(0..=n));
    }
    places
}

/// The traffic of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals<'a> {
    /// The keys; not empty.
    pub keys: &'a [String],
    /// The start index, so that two threads do not follow each other.
    pub from: usize,
    /// The number of arrivals; repeats the keys if needed.
    pub count: usize,
    /// Whether another thread also uses the contender.
    pub shared: bool,
}

impl<'a> Arrivals<'a> {
    /// Calls `decide` for each arrival. Returns the number admitted.
    #[inline]
    pub fn admit(self, mut decide: impl FnMut(&'a String) -> bool) -> usize {
        let (mut at, mut admitted) = (self.from, 0);
        for _ in 0..self.count {
            admitted += usize::from(decide(black_box(&self.keys[at])));
            at = if at + 1 == self.keys.len() { 0 } else { at + 1 };
        }
        admitted
    }

    /// Like `admit`, `N` arrivals at a time; leaves out an incomplete batch.
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
