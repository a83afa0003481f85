//! Pruning: words of a segment and the rows to keep enter, the words of those rows leave, without a key. Both sides.

use crate::search::form::contract::Pruner;
use ciphervec_he::lattice::compact::{self, Width};

impl Pruner for Width {
    #[cfg(feature = "client")]
    fn spread(&self, words: &[u8], dimension: usize, kept: &[bool]) -> Vec<u8> {
        compact::spread(*self, words, dimension, kept)
    }

    fn prune(&self, words: &[u8], dimension: usize, keep: &[bool], out: &mut [u8]) {
        compact::prune(*self, words, dimension, keep, out);
    }
}
